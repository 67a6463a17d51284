"""The log of a command that has ended: secrets taken out, then its size, digest and figures, once and for all.

While a command runs, its output goes straight to the disk of this host; who looks at it meanwhile sees it masked. When
it has ended, and before anything is read from it for a report, the log is put right: what is kept from then on, and
what its digest is of, is masked.
"""

from __future__ import annotations

import codecs
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter
from pathlib import Path

from bot.counts import WINDOW, Counts, counts_of
from bot.masking import HELD_BACK, Masking
from bot.statefiles import open_plain

PIECE = 1 << 20

LEFT_OUT_BYTES = 100
"""Room for the line that says how much was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A log that nobody writes to any more."""

    size: int
    sha256: str
    counts: Counts | None


def settle(path: Path, masking: Masking, *, exit_code: int | None) -> Settled:
    """Puts the log at `path` right and says what it holds, in memory that does not grow with it.

    Can be repeated. What is no plain file (the run may have put anything there) counts as empty, and is left alone.
    """
    with _opened(path) as log:
        if log is None:
            return Settled(size=0, sha256=hashlib.sha256().hexdigest(), counts=None)
        size, digest, clean = _read_through(log, masking)
    if not clean:
        size, digest = _rewrite(path, masking)
    text = tail(path, WINDOW)
    return Settled(size=size, sha256=digest, counts=counts_of(text, whole=size <= WINDOW, exit_code=exit_code))


def digest_of(path: Path) -> tuple[int, str] | None:
    """Size and SHA-256 of a plain file, read in pieces; None for anything else."""
    with _opened(path) as file:
        if file is None:
            return None
        total, size = hashlib.sha256(), 0
        while piece := file.read(PIECE):
            total.update(piece)
            size += len(piece)
        return size, total.hexdigest()


def tail(path: Path, most: int) -> str:
    """The last whole lines of a log, at most `most` bytes, undecodable bytes shown as such."""
    with _opened(path) as log:
        if log is None:
            return ""
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - most))
        raw = log.read(most)
    return _from_a_line(raw, cut_off=size > most)


def masked(handle: int, start: int, stop: int, masking: Masking, *, grows: bool) -> Iterator[bytes]:
    """The bytes from `start` to `stop` of an open file, in pieces, with an asterisk for each byte of a secret: what
    may be seen of a log that is not put right yet. Enough around them is looked at to know what is one. `grows`: of a
    secret at its end there may be more to come."""
    size = os.fstat(handle).st_size
    while start < stop:
        end = min(start + PIECE, stop)
        first, last = max(0, start - HELD_BACK), min(size, end + HELD_BACK)
        raw = _part(handle, first, last)
        text = masking.in_place(raw.decode("utf-8", "surrogateescape"), more_to_come=grows and last == size)
        piece = text.encode("utf-8", "surrogateescape")[start - first : end - first]
        if not piece:
            return  # it was cut off meanwhile
        yield piece
        start += len(piece)


def masked_tail(path: Path, most: int, masking: Masking, *, grows: bool) -> str:
    """As `tail`, of a log that is not put right yet."""
    with _opened(path) as log:
        if log is None:
            return ""
        size = os.fstat(log.fileno()).st_size
        raw = b"".join(masked(log.fileno(), max(0, size - most), size, masking, grows=grows))
    return _from_a_line(raw, cut_off=size > most)


def _part(handle: int, start: int, stop: int) -> bytes:
    parts = []
    while start < stop and (piece := os.pread(handle, stop - start, start)):
        parts.append(piece)
        start += len(piece)
    return b"".join(parts)


def _from_a_line(raw: bytes, *, cut_off: bool) -> str:
    text = raw.decode("utf-8", "backslashreplace")
    return text.partition("\n")[2] if cut_off and "\n" in text else text


def end_of(path: Path, most: int) -> bytes:
    """The end of a log in at most `most` bytes, whole lines where there are any, with a first line that says how much
    was left out; nothing of what is no plain file. Of a log that was settled, it is masked."""
    with _opened(path) as log:
        if log is None:
            return b""
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - most))
        raw = log.read(most)
    if size <= most:
        return raw
    raw = raw[LEFT_OUT_BYTES:]
    kept = raw.partition(b"\n")[2] or raw
    return b"[%d bytes were left out here; the run's directory has the whole log]\n" % (size - len(kept)) + kept


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader | None]:
    """The file, if it is a plain one: no link is followed, and no pipe is waited for."""
    descriptor = open_plain(path)
    if descriptor is None:
        yield None
        return
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _read_through(log: BufferedReader, masking: Masking) -> tuple[int, str, bool]:
    total, size, clean = hashlib.sha256(), 0, True

    def raw() -> Iterator[bytes]:
        nonlocal size
        while piece := log.read(PIECE):
            total.update(piece)
            size += len(piece)
            yield piece

    for text, masked in masking.pieces(_decoded(raw())):
        clean = clean and text == masked
    return size, total.hexdigest(), clean


def _rewrite(path: Path, masking: Masking) -> tuple[int, str]:
    """Replaces the log by what is left of it without secrets."""
    total, size = hashlib.sha256(), 0
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        with _opened(path) as log, _made(fresh) as out:
            for _, masked in masking.pieces(_decoded(iter(lambda: log.read(PIECE) if log else b"", b""))):
                raw = masked.encode("utf-8", "surrogateescape")
                total.update(raw)
                size += len(raw)
                out.write(raw)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return size, total.hexdigest()


def _made(path: Path) -> BufferedWriter:
    """A new file, for its owner alone."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def _decoded(raw: Iterator[bytes]) -> Iterator[str]:
    """Text from which the very bytes can be made again."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    for piece in raw:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)

"""Reads a run's directory for a page. The run itself may write there, so nothing in it is taken at its word."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bot.logs import masked
from bot.masking import Masking

# Never spec.json: it holds the command's whole environment.
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}"
_SHOWN = re.compile(rf"report\.md|report\.json|changes\.patch|{_NAME}\.log|checks/{_NAME}/worker\.log")
# Masked before it was signed, and to be had as it was signed.
_SIGNED = ("report.json",)
CHUNK = 1 << 16
FARTHEST = 1 << 24


@dataclass(frozen=True, slots=True)
class FileLine:
    name: str
    size: int


class OpenFile:
    """A regular file of a run's directory, as long as it was when it was opened. Close it, or use it in a `with`.

    With `masking` its secrets are blotted out as it is read, whether they were taken out of it already or not;
    `grows`: it is being written.
    """

    def __init__(self, handle: int, masking: Masking | None, *, grows: bool) -> None:
        self._handle = handle
        self._masking = masking
        self._grows = grows
        self.size = os.fstat(handle).st_size

    def read(self, start: int, stop: int) -> Iterator[bytes]:
        """The bytes from `start` to `stop`, in pieces."""
        if self._masking is None:
            return self._raw(start, stop)
        return masked(self._handle, start, stop, self._masking, grows=self._grows)

    def _raw(self, start: int, stop: int) -> Iterator[bytes]:
        while start < stop and (piece := os.pread(self._handle, min(CHUNK, stop - start), start)):
            yield piece
            start += len(piece)

    def tail(self, limit: int) -> str:
        """The last `limit` bytes as text, from the start of a line where something was cut off."""
        start = max(0, self.size - limit)
        text = b"".join(self.read(start, self.size)).decode("utf-8", "replace")
        return text.partition("\n")[2] if start else text

    def start_of_last(self, lines: int) -> int:
        """Where the last `lines` lines begin. Looks back FARTHEST bytes at most."""
        place, wanted, lowest = self.size, lines, max(0, self.size - FARTHEST)
        if self.size and b"".join(self._raw(self.size - 1, self.size)) == b"\n":
            place -= 1  # the newline that ends the last line begins no other
        while place > lowest and wanted > 0:
            start = max(lowest, place - CHUNK)
            piece = b"".join(self._raw(start, place))
            while wanted > 0 and (found := piece.rfind(b"\n")) >= 0:
                piece, wanted, place = piece[:found], wanted - 1, start + found
            place = place if wanted == 0 else start
        if lines == 0:
            return self.size
        return place + 1 if wanted == 0 else place

    def close(self) -> None:
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_file(folder: Path, name: str, masking: Masking | None, *, grows: bool) -> OpenFile | None:
    """The file, if it may be shown and is a regular one: not a link to someone's key, not a pipe that never ends."""
    if not _SHOWN.fullmatch(name):
        return None
    try:
        handle = _descend(folder, name.split("/"))
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    return OpenFile(handle, None if name in _SIGNED else masking, grows=grows)


def _descend(folder: Path, steps: list[str]) -> int:
    """Opens what lies there, step by step: none of them may be a link that leads away."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for number, step in enumerate(steps, 1):
        kind = os.O_NONBLOCK if number == len(steps) else os.O_DIRECTORY
        try:
            there = os.open(step, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=here)
        finally:
            os.close(here)
        here = there
    return here


def text_of(folder: Path, name: str, limit: int, masking: Masking, *, grows: bool) -> str | None:
    """The last `limit` bytes of a file as text, or None."""
    found = open_file(folder, name, masking, grows=grows)
    if found is None:
        return None
    with found:
        return found.tail(limit)


def files(folder: Path) -> list[FileLine]:
    """The files that can be looked at, by name."""
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []
    with suppress(OSError):
        names += [f"checks/{entry.name}/worker.log" for entry in os.scandir(folder / "checks")]
    names.sort()
    lines = []
    for name in names:
        found = open_file(folder, name, None, grows=False)
        if found is not None:
            lines.append(FileLine(name, found.size))
            found.close()
    return lines

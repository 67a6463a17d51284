"""Files that hold state: written whole or not at all, read as absent or broken; and the lock that says *alive*.

Standard library only and quick to import: the supervisor starts from here.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time

TYPE_CHECKING = False  # as in `typing`, whose import would take longer than all that is done here
if TYPE_CHECKING:
    from typing import Any

LARGEST = 16 << 20
"""Bytes. A larger state file is none of ours."""

LOCK_TRIES, LOCK_PAUSE = 50, 0.002
"""A reader holds the lock for microseconds while it asks; that long one waits for it to be gone."""


class Broken(dict[str, object]):
    """What a file that can't be read is read as: empty, and to be taken for *taken* or *alive*; `why` says more."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Replaces the file, flushed to disk: a reader sees the old text or the new, and a crash leaves one of them.

    Raises OSError; the old text is then still there. Mode 0600.
    """
    folder, name = os.path.split(os.fspath(path))
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        write_new(temporary, text.encode("utf-8", "backslashreplace"))
        clear_way(path)
        os.rename(temporary, path)
    except OSError:
        discard(temporary)
        raise
    sync_folder(folder)


def discard_drafts(folder: str | os.PathLike[str], *, older: float) -> None:
    """Removes temporary files of `write_text` that are `older` than so many seconds: whoever wrote them was killed."""
    for name in os.listdir(folder):
        parts = name.rsplit(".", 2)
        path = os.path.join(folder, name)
        if len(parts) == 3 and parts[0].startswith(".") and parts[1].isdecimal() and len(parts[2]) == 8:
            try:
                if time.time() - os.lstat(path).st_mtime > older:
                    os.unlink(path)
            except OSError:
                continue  # it was renamed meanwhile, or is none


def write_json(path: str | os.PathLike[str], value: object) -> None:
    """`write_text` of a value as JSON, in ASCII: every byte of an argument survives it."""
    write_text(path, _as_text(value))


def write_new_json(path: str | os.PathLike[str], value: object) -> None:
    """As `write_json`, for a file that must not exist, in a folder that the caller flushes."""
    write_new(os.fspath(path), _as_text(value).encode("utf-8", "backslashreplace"))


def _as_text(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"


def read_json(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The object in the file; None where there is no file, `Broken` where it holds anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        return Broken(f"{os.fspath(path)}: {problem.strerror}")
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST:
            return Broken(f"{os.fspath(path)} is no state file")
        value = json.loads(os.read(descriptor, LARGEST))
    except (OSError, ValueError, RecursionError) as problem:
        return Broken(f"{os.fspath(path)}: {problem}")
    finally:
        os.close(descriptor)
    return value if isinstance(value, dict) else Broken(f"{os.fspath(path)} holds no object")


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether there is such a file, as far as we may look."""
    return os.path.exists(path)


def write_new(path: str, data: bytes) -> None:
    """Makes the file, which must not exist, and flushes it. Mode 0600; raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def discard(path: str | os.PathLike[str]) -> None:
    """Removes the file where there is one; a folder in its place is put aside, as a hidden one."""
    try:
        try:
            os.unlink(path)
        except IsADirectoryError:
            folder, name = os.path.split(os.fspath(path))
            os.rename(path, os.path.join(folder, f".{name}.{os.urandom(4).hex()}"))
    except OSError:
        pass


def clear_way(path: str | os.PathLike[str]) -> None:
    """Discards what stands where a plain file belongs: a run may leave a pipe, a link or a folder there."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            discard(path)
    except FileNotFoundError:
        pass


def sync_folder(folder: str) -> None:
    """Flushes the folder itself, so that a rename in it is on disk."""
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class LastState:
    """A state file whose last version finds room on a full disk: in a reserve that was made while there was some."""

    def __init__(self, path: str, size: int = 16384) -> None:
        folder, name = os.path.split(path)
        self._path, self._size = path, size
        self._reserve = os.path.join(folder, f".{name}.reserve")

    def reserve(self) -> None:
        """Makes the reserve where there is room for it."""
        discard(self._reserve)
        try:
            descriptor = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._size)
            finally:
                os.close(descriptor)
        except OSError:
            discard(self._reserve)

    def write(self, value: object) -> None:
        """Replaces the file; raises OSError where neither the disk nor the reserve, once, has room."""
        try:
            write_json(self._path, value)
        except OSError:
            self._write_into_reserve(json.dumps(value).encode())

    def _write_into_reserve(self, data: bytes) -> None:
        descriptor = os.open(self._reserve, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            write_all(descriptor, data.ljust(self._size))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        clear_way(self._path)
        os.rename(self._reserve, self._path)

    def release(self) -> None:
        discard(self._reserve)


def take_lock(path: str | os.PathLike[str]) -> int | None:
    """Takes the exclusive lock and returns its descriptor: to close it is to give it back. None: somebody has it."""
    clear_way(path)
    return _locked(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))


def take_folder_lock(path: str | os.PathLike[str]) -> int | None:
    """As `take_lock`, of a folder itself, which nobody can take away and make anew while there is something in it."""
    return _locked(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))


def _locked(descriptor: int) -> int | None:
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE)
        else:
            return descriptor
    os.close(descriptor)
    return None


def open_plain(path: str | os.PathLike[str]) -> int | None:
    """A descriptor to read a plain file with; None for an absent one, and for a link, a pipe or a device: whoever can
    write to a folder can put one there to lead a reader astray, or to hold it up for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def read_plain(path: str | os.PathLike[str]) -> bytes | None:
    """What a plain file holds; None for an absent one.

    Raises OSError for whatever else has its place, and for more than a state file holds: a run may have put it there.
    """
    descriptor = open_plain(path)
    if descriptor is None:
        if os.path.lexists(path):
            raise OSError(errno.EINVAL, "is no plain file", os.fspath(path))
        return None
    try:
        if os.fstat(descriptor).st_size > LARGEST:
            raise OSError(errno.EFBIG, "is too large", os.fspath(path))
        pieces = []
        while piece := os.read(descriptor, LARGEST):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def is_locked(path: str | os.PathLike[str]) -> bool:
    """Whether somebody holds the exclusive lock. It asks for a shared one and gives it back at once.

    What is no plain file is no lock, and nobody holds it.
    """
    descriptor = open_plain(path)
    return descriptor is not None and _is_held(descriptor)


def folder_is_locked(path: str | os.PathLike[str]) -> bool:
    """As `is_locked`, of a folder itself."""
    try:
        return _is_held(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError:
        return False


def _is_held(descriptor: int) -> bool:
    """Closes it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def time_text(seconds: float | None = None) -> str:
    """A moment (default: now) as `2026-01-05T09:00:00.123Z`."""
    seconds = time.time() if seconds is None else seconds
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"

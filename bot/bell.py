"""Hears from the kernel that a lock's file was closed for good. Imported by those who have to wait, only."""

from __future__ import annotations

import _thread
import ctypes
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes as long as all the rest
    from typing import Self

NET, UNBELLED = 0.05, 0.01
"""Seconds between two looks while nothing rings: the net under the bell, and without any bell."""

CLOSE_WRITE, CLOSE_NOWRITE = 0x08, 0x10
"""inotify(7): a file that was opened for writing, or not, was closed by the last who had it open."""


class Bell:
    """Rings when a file in the folder is closed for good, which is how a pass becomes free: inotify(7).

    It rings for the end of any holder, whoever wrote it, and for a killed one too. The kernel rings just before the
    lock goes, and not at all for a lock that is dropped without closing: so there is a look soon after each ring, and
    now and then without one. Where the kernel has no bell left for us (there are 128 a user), there are only looks.
    """

    __slots__ = ("_descriptor", "_pause", "_poll")

    def __init__(self, folder: str) -> None:
        self._poll = select.poll()
        self._pause = NET
        self._descriptor = _watch(folder)
        if self._descriptor is not None:
            self._poll.register(self._descriptor, select.POLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            # The kernel takes some 8 ms to take a bell down: not while others stand in line behind us.
            try:
                _thread.start_new_thread(os.close, (self._descriptor,))
            except RuntimeError:
                os.close(self._descriptor)

    def wait(self, seconds: float) -> None:
        """Returns when a look at the slots is worth while, after `seconds` at the latest."""
        longest = UNBELLED if self._descriptor is None else NET
        self._pause = min(self._pause * 4, longest)
        if self._poll.poll(min(self._pause, seconds) * 1000) and self._descriptor is not None:
            os.read(self._descriptor, 1 << 16)
            self._pause = 0.0002


def _watch(folder: str) -> int | None:
    """An inotify descriptor that tells of files closed in `folder`, or None where there is none to be had."""
    try:
        libc = ctypes.CDLL(None)
        descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, AttributeError):
        return None
    if descriptor >= 0 and libc.inotify_add_watch(descriptor, os.fsencode(folder), CLOSE_WRITE | CLOSE_NOWRITE) < 0:
        os.close(descriptor)
        return None
    return descriptor if descriptor >= 0 else None

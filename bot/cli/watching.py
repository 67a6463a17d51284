"""Waits for something to happen in a run's directory, or for its end: inotify(7) and the supervisor's pidfd."""

from __future__ import annotations

import ctypes
import os
import select
from types import TracebackType
from typing import Self

from bot.liveness import pidfd_of_supervisor
from bot.rundir import RunDir

IN_MODIFY, IN_MOVED_TO, IN_CREATE = 0x2, 0x80, 0x100

NET = 0.5
"""Seconds until a look without any news: a user may have used up their inotify instances."""


class Watch:
    """Hears of the files in a run's directory while it is open."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._poll = select.poll()
        self._handles: list[int] = []

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None)
        notify = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if notify >= 0:
            libc.inotify_add_watch(notify, os.fsencode(self._run.path), IN_MODIFY | IN_MOVED_TO | IN_CREATE)
            self._add(notify)
        if (supervisor := pidfd_of_supervisor(self._run.path)) is not None:
            self._add(supervisor)
        return self

    def _add(self, handle: int) -> None:
        self._handles.append(handle)
        self._poll.register(handle, select.POLLIN)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for handle in self._handles:
            os.close(handle)

    def pause(self) -> None:
        """Returns when something has happened, or after half a second."""
        for handle, _ in self._poll.poll(NET * 1000):
            try:
                os.read(handle, 65536)
            except OSError:  # a pidfd has nothing to read: the supervisor has ended, and will not twice
                self._poll.unregister(handle)

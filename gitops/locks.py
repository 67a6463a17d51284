"""Kernel locks that are waited for with a deadline, and that git can be given along."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 600.0


class LockTimeout(Exception):
    """Somebody else held the lock for longer than the caller could wait."""


@contextmanager
def held(path: Path, flags: int, timeout: float) -> Iterator[int]:
    """The lock on the file or folder at `path`, which is opened with `flags`; gives its descriptor.

    The lock is free once every copy of the descriptor is closed: a child that has one keeps it if we are killed.
    `LockTimeout` after `timeout` seconds.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    _lock(descriptor, timeout, path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, timeout: float, path: Path) -> None:
    """Lock `descriptor`, waiting in the kernel. Closes it and raises `LockTimeout` if that takes too long."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    else:
        return
    locked, settled = threading.Event(), threading.Lock()
    given_up = False

    def wait() -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with settled:
            if given_up:
                os.close(descriptor)
            else:
                locked.set()

    # flock knows no time-out: a thread waits for it, and lets go at once what comes too late.
    threading.Thread(target=wait, name="lock", daemon=True).start()
    locked.wait(timeout)
    with settled:
        given_up = not locked.is_set()
    if given_up:
        raise LockTimeout(f"{path} was locked by somebody else for more than {timeout:g} s.")

"""The doorbell: other commands of this host tell the running server that something may be ready, through a FIFO.

It carries hints only: what is rung while no server runs is found by the next one's first sweep.
"""

from __future__ import annotations

import os
import select
import stat
import threading
from collections.abc import Callable
from pathlib import Path

NAME = "doorbell"


class Doorbell:
    """Hears `<kind> <key>` lines and hands them on."""

    def __init__(self, home: Path, heard: Callable[[str, str], None]) -> None:
        self._path = home / NAME
        self._heard = heard
        self._stop_read, self._stop_write = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._loop, name="doorbell", daemon=True)

    def start(self) -> None:
        self._path.unlink(missing_ok=True)
        os.mkfifo(self._path, 0o600)
        # Opened for writing as well, so that it never reads as ended when the last ringer leaves.
        self._fifo = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread.start()

    def stop(self) -> None:
        os.write(self._stop_write, b"x")
        self._thread.join()
        for handle in (self._fifo, self._stop_read, self._stop_write):
            os.close(handle)
        self._path.unlink(missing_ok=True)

    def _loop(self) -> None:
        poll = select.poll()
        poll.register(self._fifo, select.POLLIN)
        poll.register(self._stop_read, select.POLLIN)
        rest = b""
        while True:
            ready = {handle for handle, _ in poll.poll()}
            if self._stop_read in ready:
                return
            *lines, rest = (rest + os.read(self._fifo, 4096)).split(b"\n")
            rest = rest[-200:]
            for line in lines:
                kind, _, key = line.decode("utf-8", "replace").partition(" ")
                if kind in {"run", "lane", "waiting", "answer", "sweep", "poll", "claims", "scan"}:
                    self._heard(kind, key)


def ring(home: Path, kind: str, key: str = "") -> bool:
    """Tells the server of this home; False where none listens. Never waits."""
    try:
        handle = os.open(home / NAME, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if not stat.S_ISFIFO(os.fstat(handle).st_mode):
            return False
        os.write(handle, f"{kind} {key}\n".encode())  # shorter than PIPE_BUF: never mixed with another's
    except OSError:
        return False
    finally:
        os.close(handle)
    return True

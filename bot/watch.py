"""Hears from the kernel that a supervised command has ended: a pidfd becomes readable when its supervisor exits."""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Callable
from pathlib import Path

from bot import liveness


class Watcher:
    """One thread that waits for all supervisors at once. It only tells; what the end means is read from the files."""

    def __init__(self, ended: Callable[[str], None]) -> None:
        self._ended = ended
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._watched: dict[str, tuple[int, str]] = {}
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name="watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        os.write(self._wake_write, b"x")
        self._thread.join()
        with self._lock:
            for handle, _ in self._watched.values():
                os.close(handle)
            self._watched.clear()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def watch(self, key: str, folder: Path) -> None:
        """Calls `ended(key)` once the supervisor of `folder` is gone; at once where it is gone already."""
        with self._lock:
            if str(folder) in self._watched:
                return
            handle = liveness.pidfd_of_supervisor(folder)
            if handle is not None:
                self._watched[str(folder)] = (handle, key)
                self._selector.register(handle, selectors.EVENT_READ, str(folder))
                os.write(self._wake_write, b"x")
                return
        self._ended(key)

    def _loop(self) -> None:
        while not self._stopping:
            for ready, _ in self._selector.select():
                if ready.data is None:
                    os.read(self._wake_read, 4096)
                else:
                    self._tell(ready.data)

    def _tell(self, folder: str) -> None:
        with self._lock:
            handle, key = self._watched.pop(folder)
            self._selector.unregister(handle)
            os.close(handle)
        self._ended(key)

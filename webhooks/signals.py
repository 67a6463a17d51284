"""Signals reach the server's loop, whichever thread they come to."""

from __future__ import annotations

import os
from typing import Any

from waitress import wasyncore


class Signals(wasyncore.file_dispatcher):  # type: ignore[misc]
    """Wakes the loop when a signal has come. Python's handlers run in the main thread alone, and the kernel may have
    given the signal to another one (it does where the main thread has one to see to already): that wakes no poll."""

    def __init__(self, channels: dict[int, Any]) -> None:
        reads, self.wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        super().__init__(reads, channels)
        os.close(reads)  # it has a copy

    def writable(self) -> bool:
        return False

    def handle_read(self) -> None:
        self.recv(4096)

    def close(self) -> None:
        super().close()
        os.close(self.wake)

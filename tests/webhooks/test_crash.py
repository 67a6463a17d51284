"""A door that is killed in the middle of its work keeps every promise that it made."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from tests.webhooks.senders import House, answer, comment, head, signed

ROOT = Path(__file__).parents[2]
BODY = comment().ljust(8192)
SENDERS = 12


class Killed:
    """A door's process, and the ids that it accepted before it was killed."""

    def __init__(self, home: Path) -> None:
        argv = [sys.executable, "-m", "tests.webhooks.door_process", str(home)]
        self._process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        self._address = "127.0.0.1", int(self._process.stdout.readline())
        self._lock = threading.Lock()
        self.statuses: dict[str, int] = {}

    def after(self, count: int, names: list[str]) -> dict[str, int]:
        """Sends all of `names` at once over many connections, kills after `count` answers; returns the answers."""
        threads = [threading.Thread(target=self._send, args=(names[n::SENDERS], count)) for n in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self._kill()
        self._process.wait(60)
        if self._process.stdout:
            self._process.stdout.close()
        return self.statuses

    def _send(self, names: list[str], count: int) -> None:
        try:
            with socket.create_connection(self._address, timeout=60) as peer:
                for name in names:
                    headers = {**signed(BODY, delivery=name), "content-length": str(len(BODY))}
                    peer.sendall(head(headers) + BODY)
                    status = answer(peer).status
                    with self._lock:
                        self.statuses[name] = status
                        if len(self.statuses) == count:
                            self._kill()
        except (OSError, IndexError, ValueError):  # it is dead, in the middle of an answer or before one
            return

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)


def test_every_delivery_that_was_accepted_is_there_once_after_a_kill(tmp_path: Path) -> None:
    accepted: set[str] = set()
    for round_ in range(4):
        names = [f"{round_}-{n}" for n in range(1500)]
        statuses = Killed(tmp_path).after(100 + 120 * round_, names)
        assert set(statuses.values()) == {202}
        assert len(statuses) < len(names)  # it did die in the middle
        accepted |= set(statuses)
        house = House(tmp_path)
        kept = Counter(entry.delivery for entry in house.inbox.listing(limit=100_000))
        house.close()
        assert accepted <= set(kept)
        assert set(kept.values()) == {1}


def test_what_had_no_answer_can_be_sent_again(tmp_path: Path) -> None:
    names = [str(n) for n in range(600)]
    statuses = Killed(tmp_path).after(200, names)
    unanswered = [name for name in names if name not in statuses]
    again = Killed(tmp_path).after(len(unanswered), unanswered)
    assert len(again) == len(unanswered)
    assert set(again.values()) <= {200, 202}  # 200: it was kept, and the answer lost
    house = House(tmp_path)
    kept = Counter(entry.delivery for entry in house.inbox.listing(limit=100_000))
    house.close()
    assert kept == Counter(names)

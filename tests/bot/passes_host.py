"""A host of its own for the tests of the pass pool: a folder, an environment, and the wrapper started from outside."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bot.cpus import host_size

ROOT = Path(__file__).parents[2]
WRAPPER = (sys.executable, "-I", "-S", str(ROOT / "bot/cli/pass_.py"))
WORKER = (sys.executable, "-I", "-S", str(ROOT / "tests/bot/passes_worker.py"))
SIZE = host_size()

HELD_UNTIL_TOLD = ("sh", "-c", "echo started; read line; exit 0")
"""A command that says that it has started, and ends when its stdin does."""


class Host:
    """One pool, and what takes part in it."""

    def __init__(self, folder: Path) -> None:
        self.pool = folder / "pool"
        self.folder = folder
        self.environ = {"PATH": os.environ["PATH"], "LEADSMAN_POOL_DIR": str(self.pool), "LANG": "C.UTF-8"}
        self._started: list[subprocess.Popen[str]] = []

    def run(self, *words: str, check: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
        """`leadsman pass WORDS...`, to its end."""
        given = {"env": self.environ, "capture_output": True, "text": True, "timeout": 90, **options}
        return subprocess.run([*WRAPPER, *words], check=check, **given)

    def hold(self, *options: str, command: Sequence[str] = HELD_UNTIL_TOLD, **more: Any) -> subprocess.Popen[str]:
        """`leadsman pass run OPTIONS -- COMMAND`, started."""
        return self.start([*WRAPPER, "run", *options, "--", *command], **more)

    def start(self, argv: Sequence[str], **more: Any) -> subprocess.Popen[str]:
        given = {"env": self.environ, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(argv, **{**given, "text": True, **more})
        self._started.append(process)
        return process

    def held(self, *options: str, **more: Any) -> subprocess.Popen[str]:
        """As `hold`, returning once the command runs."""
        process = self.hold(*options, **more)
        assert "started\n" == process.stdout.readline()
        return process

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.run("status", "--json", check=True).stdout)
        return status

    def locked(self) -> list[int]:
        """The slots whose kernel lock somebody holds, looked at from outside."""
        return [int(path.stem.removeprefix("slot-")) for path in self.pool.glob("slot-*.lock") if is_locked(path)]

    def queueing(self) -> bool:
        return is_locked(self.pool / "turnstile.lock")

    def end_all(self) -> None:
        for process in self._started:
            process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            process.wait()


def release(process: subprocess.Popen[str]) -> int:
    """Lets a HELD_UNTIL_TOLD end, and answers its wrapper's exit code."""
    process.stdin.close()
    return process.wait(60)


def is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def until(condition: Callable[[], Any], seconds: float = 60) -> float:
    """Waits for the condition, and answers how long it took; fails after `seconds`."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, f"not within {seconds} s"
        signal.sigtimedwait([], 0.002)
    return time.monotonic() - start

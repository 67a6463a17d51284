"""Starts real runs in a store of their own, waits for them by the kernel's word, and ends what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot import processes
from bot.launchers import Started, start
from bot.liveness import end, is_over, reading, settled
from bot.rundir import RunDir, all_runs, create, find, new_run_id, read_json
from tests.bot.console import SCRIPT, Ended, leadsman

WAIT = 90.0
"""Seconds that a test waits for what must come; no test waits that long for what must not."""


class Harbour:
    """A folder with a store of runs, and all that a test does with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "home" / "runs"
        self.environ = {"TMUX_TMPDIR": str(folder)}

    def leadsman(self, *argv: str, seconds: float = WAIT, **environ: str) -> Ended:
        return leadsman(*argv, cwd=self.folder, environ={**self.environ, **environ}, seconds=seconds)

    def popen(self, *argv: str, **options: Any) -> subprocess.Popen[bytes]:
        """`leadsman` that is not waited for, in a process group of its own."""
        environ = {**os.environ, "LEADSMAN_HOME": str(self.folder / "home"), **self.environ}
        return subprocess.Popen(
            [SCRIPT, *argv],
            cwd=self.folder,
            env=environ,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def hand_off(self, *argv: str, options: tuple[str, ...] = ("--driver", "setsid")) -> RunDir:
        """Hands a command off with the command line; its run."""
        done = self.leadsman("handoff", *options, "--", *argv)
        assert done.code == 0, done
        return find(self.store, done.out.split()[1])

    def spec(self, *argv: str, **more: Any) -> Any:
        run_id = new_run_id(datetime.now(UTC), os.urandom(3))
        env = {"PATH": os.environ["PATH"], "LEADSMAN_RUN_ID": run_id}
        env["LEADSMAN_STATUS_LOG"] = str(self.store / run_id / "status.log")
        env["LEADSMAN_RUN_DIR"] = str(self.store / run_id)
        fixed = {"run_id": run_id, "task": "test", "argv": list(argv), "cwd": str(self.folder), "env": env}
        return {**fixed, "time_limit": None, "driver": "setsid", **more}

    def make(self, *argv: str, **more: Any) -> RunDir:
        return create(self.store, self.spec(*argv, **more))

    def start(self, *argv: str, **more: Any) -> RunDir:
        """Starts a run as the server does."""
        run = self.make(*argv, **more)
        started = start(run.path, "setsid")
        assert started.error is None, started
        return run

    def started(self, *argv: str, **more: Any) -> tuple[RunDir, Started]:
        run = self.make(*argv, **more)
        return run, start(run.path, "setsid")

    def ended(self, run: RunDir) -> dict[str, Any]:
        """The run's last status, waited for."""
        status = settled(run.path, WAIT)
        assert is_over(status), f"run {run.run_id} has not ended within {WAIT} s: {status}"
        return status

    def clear(self) -> None:
        for run in all_runs(self.store):
            end(run.path)


def supervisor(run: RunDir) -> int:
    return int(reading(run.path)["supervisor_pid"])


def command(run: RunDir) -> int:
    return int(reading(run.path)["pid"])


def alive(pid: int) -> bool:
    """Whether a process of that pid runs; one that only waits to be collected does not."""
    process = processes.look(pid)
    return process is not None and not process.zombie


def await_end(pid: int) -> None:
    """Returns when that process has ended; the kernel says so."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        import select

        poll = select.poll()
        poll.register(handle, select.POLLIN)
        assert poll.poll(WAIT * 1000), f"process {pid} has not ended within {WAIT} s"
    finally:
        os.close(handle)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Kills a process for good: returns when it has ended."""
    os.kill(pid, number)
    await_end(pid)


def record(run: RunDir) -> dict[str, Any]:
    found = read_json(run.waiting)
    assert found, f"{run.waiting} holds no record"
    return found


class Fifo:
    """A FIFO by which a run tells a test where it is: no test has to guess how long something takes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        os.set_blocking(self._end, True)

    def line(self) -> str:
        """The next line that somebody writes into it, without its line break."""
        import select

        text = b""
        while not text.endswith(b"\n"):
            assert select.select([self._end], [], [], WAIT)[0], f"nothing came through {self.path} within {WAIT} s"
            text += os.read(self._end, 1)
        return text.decode().rstrip("\n")


PYTHON = sys.executable

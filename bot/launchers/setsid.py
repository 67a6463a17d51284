"""Starts the supervisor in a session of its own."""

from __future__ import annotations

import fcntl
import os
import select
import sys
import time
from pathlib import Path

from bot.rundir import RunDir

SUPERVISOR = Path(__file__).parents[1] / "supervisor.py"

PATIENCE = 60.0
"""Seconds until a start that says nothing counts as failed. It takes some 20 ms."""

LOCK = 3
"""The descriptor on which the supervisor inherits its lock: held before it starts, it is never free while it lives."""


def window(run: RunDir, lock: int) -> None:  # as every launcher is called
    """Nothing to look at but the log."""


def spawn(run: RunDir, lock: int) -> str:
    """Starts the supervisor with the held lock; `running`, or why the command does not, once that is certain."""
    hears, says = os.pipe2(os.O_CLOEXEC)
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10) for descriptor in (says, lock)]  # clear of 0 to 3
    os.close(says)
    argv = [sys.executable, "-I", "-S", str(SUPERVISOR), str(run.path), str(LOCK)]
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, str(run.worker_log), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600),
        (os.POSIX_SPAWN_DUP2, high[0], 1),
        (os.POSIX_SPAWN_DUP2, high[1], LOCK),
    ]
    try:
        pid = os.posix_spawn(sys.executable, argv, _environment(run), file_actions=files)
    except OSError as problem:
        os.close(hears)
        return f"The run's supervisor can't be started: {problem}."
    finally:
        for descriptor in high:
            os.close(descriptor)
    os.waitpid(pid, 0)  # it has forked, and what goes on is no child of ours
    try:
        return _hear(hears) or f"The run's supervisor said nothing; {run.worker_log} may say why."
    finally:
        os.close(hears)


def _environment(run: RunDir) -> dict[str, str]:
    """The supervisor's own; the command's is in the spec. The id shows whoever looks which run it is."""
    return {"LANG": "C.UTF-8", "LEADSMAN_RUN_ID": run.run_id, "LEADSMAN_RUN_DIR": str(run.path)}


def _hear(pipe: int) -> str:
    """All that is said on the pipe before it is closed, or until our patience is at its end."""
    said, until = b"", time.monotonic() + PATIENCE
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while poll.poll(max(0.0, until - time.monotonic()) * 1000):
        piece = os.read(pipe, 4096)
        if not piece:
            break
        said += piece
    return said.decode("utf-8", "surrogateescape")

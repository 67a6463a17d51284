"""Which runs are live: each counts until its end is proved, by its lock or by a word that only a finished one says."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from bot.rundir import RunDir, read_json
from bot.words import VERBS

FINISHED = ("done", "failed", "landed")
"""Last words that only a finished worker writes. `landed-failed` is none: that one waits for recovery."""

OF_AN_END = (*FINISHED, "landed-failed")

TAIL = 64 * 1024
"""Bytes of a log's end in which the last word is looked for."""


def live_among(runs_dir: Path, run_ids: Iterable[str]) -> int:
    """How many of these runs are not proved to have ended. One that has not begun counts: it is about to."""
    return sum(1 for run_id in run_ids if not has_ended(RunDir(runs_dir / run_id)))


def has_ended(run: RunDir) -> bool:
    """Whether the run's end is proved."""
    if not os.path.lexists(run.status):
        return False
    locked = _locked(run.alive_lock)
    return not locked if locked is not None else _last_word(run) in FINISHED


def _locked(path: Path) -> bool | None:
    """Whether somebody holds the lock; None where that can't be told: it can't be opened, or was taken away."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as problem:
        return True if problem.errno in (errno.EAGAIN, errno.EACCES) else None
    finally:
        os.close(descriptor)
    return False


def _last_word(run: RunDir) -> str:
    """The newest recognised word of `status.log` where it is of an end; else the state that its supervisor wrote."""
    last = ""
    for line in _tail(run.status_log).splitlines():
        text = line.strip()
        verb, colon, _ = (text.partition("]")[2].lstrip() if text.startswith("[") else text).partition(":")
        if colon and verb in (*VERBS, *OF_AN_END):
            last = verb
    return last if last in OF_AN_END else str((read_json(run.status) or {}).get("state") or "")


def _tail(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return ""
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, TAIL, max(0, size - TAIL)).decode("utf-8", "replace")
    except OSError:  # a folder, a FIFO
        return ""
    finally:
        os.close(descriptor)

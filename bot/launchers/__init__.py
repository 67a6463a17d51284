"""Starts a run so that it outlives whoever started it; the table says in which ways."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bot.launchers import setsid, tmux
from bot.rundir import RunDir, read_json, take_lock, write_json
from bot.statefiles import clear_way

LAUNCHERS: dict[str, Callable[[RunDir, int], str | None]] = {"setsid": setsid.window, "tmux": tmux.window}
"""driver -> what shows the run while it is alive: makes it, and returns its name, or None where there is none."""


class Started(NamedTuple):
    """How a start went. `error`: why the command does not run; None where it does, or did."""

    driver: str
    session: str | None
    supervisor_pid: int | None
    error: str | None


def start(run_dir: Path, driver: str, *, lock: int | None = None, again: bool = False) -> Started:
    """Starts the run that `spec.json` describes; returns once its command runs, or never will.

    A run that is alive, or was started before, is left as it is, unless `again`. `lock` is the run's lock where the
    caller holds it already (`take_lock`); it is given away. Safe in a program with threads, and leaves it no child.
    """
    run = RunDir(run_dir)
    lock = take_lock(run.alive_lock) if lock is None else lock
    if lock is None:
        return _as_it_is(run)
    try:
        if not again and (read_json(run.status) or {}).get("state", "created") != "created":
            return _as_it_is(run)
        for log in (run.worker_log, run.status_log):
            clear_way(log)  # an earlier round may have put anything there
        session = LAUNCHERS[driver](run, lock)
        driver = driver if session else "setsid"
        spec = read_json(run.spec) or {}
        if spec and (spec.get("driver"), spec.get("session")) != (driver, session):
            write_json(run.spec, {**spec, "driver": driver, "session": session})
        said = setsid.spawn(run, lock)
    finally:
        os.close(lock)
    return _as_it_is(run)._replace(error=None if said == "running" else said)


def _as_it_is(run: RunDir) -> Started:
    status = read_json(run.status) or {}
    return Started(str(status.get("driver") or ""), status.get("session"), status.get("supervisor_pid"), None)

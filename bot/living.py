"""What is alive of a run, where its supervisor can't be asked any more: found by what only it can have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bot import processes
from bot.processes import Process
from bot.rundir import RunDir
from bot.status import status_of

if TYPE_CHECKING:
    from bot.status import Status


def remains(path: Path) -> list[Process]:
    """What is alive of the run and may be ended: all that `living` finds, without what we were called by."""
    everyone = processes.everyone()
    found = _of_run(RunDir(path), everyone) - processes.above(os.getpid(), everyone)
    return [everyone[pid] for pid in sorted(found) if not everyone[pid].zombie]


def living(path: Path) -> list[Process]:
    """What is alive of the run: by `LEADSMAN_RUN_ID` in its environment, its session, the command's pid and start time,
    and whatever is below those. Never the supervisor, other runs or ourselves.

    What called us is among it where the run asks about itself; not after a reboot, which no run outlives.
    """
    run = RunDir(path)
    everyone = processes.everyone()
    found = _of_run(run, everyone) - {os.getpid()}
    if (status_of(run) or {}).get("boot_id") != processes.boot_id():
        found -= processes.above(os.getpid(), everyone)
    return [everyone[pid] for pid in sorted(found) if not everyone[pid].zombie]


def _of_run(run: RunDir, everyone: dict[int, Process]) -> set[int]:
    status = status_of(run) or {}
    found = {pid for pid in everyone if _names(pid, run.run_id)}
    if status.get("boot_id") == processes.boot_id():  # after a reboot the recorded pids mean nothing
        command = everyone.get(status.get("pid") or 0)
        found |= {command.pid} if command and command.started == status.get("pid_started") else set()
        found |= _of_session(status, everyone, found)
    supervisors = {pid for pid in everyone if processes.supervises(pid)}
    found -= supervisors
    return found | {process.pid for process in processes.below(found, everyone, barring=supervisors)}


def _names(pid: int, run_id: str) -> bool:
    return os.fsencode(f"LEADSMAN_RUN_ID={run_id}") in processes.environment_of(pid)


def _of_session(status: Status, everyone: dict[int, Process], known: set[int]) -> set[int]:
    """What is in the supervisor's session. Its number is given to nobody else while one of its processes lives, and may
    be a stranger's after that: unless one of it is `known`, or the supervisor, only the command's own group counts."""
    session, since = status.get("supervisor_pid"), status.get("supervisor_started")
    leader = everyone.get(session or 0)
    if not session or since is None or (leader is not None and leader.started != since):
        return set()
    members = {process for process in everyone.values() if process.session == session and process.started >= since}
    is_ours = leader is not None or any(process.pid in known for process in members)
    return {process.pid for process in members if is_ours or process.group == status.get("pid")}

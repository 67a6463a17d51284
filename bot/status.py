"""The status of a run as it was written down: what is sound of `status.json`, where a run can write anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.rundir import Broken, RunDir, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Status = dict[str, Any]
    """`status.json`; in a reading (`bot.liveness`), with the truth of now in it."""

OVER = ("done", "failed", "cancelled", "blocked", "lost")
"""States of a run that has ended; a blocked one waits for a decision, in its worktree, without a process."""

STATES = ("created", "running", *OVER)

PIDS = ("pid", "supervisor_pid")

KINDS: dict[str, type] = {
    **dict.fromkeys(
        ("round", "rounds", "starts", "pid_started", "supervisor_started", "exit_code", "signal", *PIDS), int
    ),
    **dict.fromkeys(("run_id", "task", "state", "boot_id", "driver", "session", "stop_reason", "error"), str),
    **dict.fromkeys(("usage", "word", "asked_to_stop"), dict),
    **dict.fromkeys(("seconds", "waited"), float),
}
"""Fields of `status.json` that are read -> what they are. A run can write anything there."""


def status_of(run: RunDir) -> Status | None:
    """`status.json`, what is sound of it; None where there is none, `Broken` where it says no state."""
    found = read_json(run.status)
    if found is None or isinstance(found, Broken):
        return found
    status = sound(found)
    if status.get("state") not in STATES:
        return Broken(f"{run.status} says no state that there is")
    return {**status, "run_id": status.get("run_id") or run.path.name, "round": status.get("round") or 1}


def sound(status: Mapping[str, Any]) -> Status:
    """A status without the fields that are not of their kind."""
    return {name: value for name, value in status.items() if value is None or _is_sound(name, value)}


def _is_sound(name: str, value: object) -> bool:
    return type(value) is KINDS.get(name, type(value)) and (name not in PIDS or 0 < value < 1 << 31)  # type: ignore[operator]

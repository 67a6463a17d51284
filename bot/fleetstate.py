"""What the fleet does now, worked out from the index and the run directories; the server keeps it in `status.json`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bot.livecount import has_ended
from bot.rundir import RunDir, read_json, write_json
from bot.serverstate import NAME, said
from bot.slots import Slots, dispatched, paused
from bot.statefiles import time_text
from bot.store import runs
from bot.store.engine import Store

SHOWN = 200
"""How many waiting runs are named; all are counted."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How full the host is, for an answer."""

    slots: int
    held: int
    peak: int
    pending: int
    paused_by: str
    """Empty where nobody paused new runs."""


def counts(connection: sa.Connection, slots: Slots) -> Counts:
    pause = paused(connection)
    held = len(runs.leased(connection))
    by = pause.by if pause else ""
    return Counts(len(slots.names), held, max(slots.peak, held), runs.pending(connection), by)


class FleetState:
    """Says what the fleet does now."""

    def __init__(
        self, store: Store, home: Path, slots: Slots, *, cap: int, configuration: Callable[[], dict[str, str]]
    ) -> None:
        self._store = store
        self._home = home
        self._slots = slots
        self._cap = cap
        self._configuration = configuration

    def write(self, _key: str = "") -> None:
        """Brings `status.json` up to date; what it says already is not written again."""
        now = self.now()
        before = {**(said(self._home) or {}), "updated": None}
        if now != before:
            write_json(self._home / NAME, {**now, "updated": time_text()})

    def now(self) -> dict[str, Any]:
        """`active_runs` hold a slot and are not proved to have ended, `running` have a process, `pending` wait."""
        with self._store.read() as connection:
            held = runs.leased(connection)
            rows: dict[str, runs.Row] = {row.run_id: row for row in runs.open_runs(connection, leased=True)}
            waiting = runs.waiting(connection, limit=SHOWN)
            pause = paused(connection)
            pending, reports = runs.pending(connection), runs.reported(connection)
            given = dispatched(connection)
        folders = {run_id: RunDir(self._home / "runs" / run_id) for _, _, run_id, _ in held}
        live = [run for run in folders.values() if not has_ended(run)]
        return {
            "active_runs": len(live),
            "running": sum(1 for run in live if _has_a_process(run)),
            "pending": pending,
            "max_concurrent": self._cap,
            "peak": self._slots.peak,
            "dispatched": given,
            "reports": reports,
            "paused": {"by": pause.by, "at": pause.at} if pause else None,
            "slots": self._held(held),
            "runs": [_run(rows[run_id], slot, folders[run_id]) for slot, _, run_id, _ in held if run_id in rows],
            "waiting": [_waits(row, place) for place, row in enumerate(waiting, 1)],
            "configuration": self._configuration(),
            "updated": None,
        }

    def _held(self, held: Sequence[tuple[str, str, str, str]]) -> dict[str, str | None]:
        """slot -> the run that holds it; what is held beyond the slots there are now is held all the same."""
        by = {slot: run_id for slot, _, run_id, _ in held}
        return {**dict.fromkeys(self._slots.names), **by}


def _has_a_process(run: RunDir) -> bool:
    return (read_json(run.status) or {}).get("state") == "running"


def _run(row: runs.Row, slot: str, folder: RunDir) -> dict[str, Any]:
    status = read_json(folder.status) or {}
    return {
        "run_id": row.run_id,
        "slot": slot,
        "task": row.task,
        "subject": row.subject,
        "phase": row.phase,
        "reason": row.reason,
        "state": status.get("state", "created"),
        "round": status.get("round", 1),
        "started": status.get("started"),
        "asked_by": row.asked_by,
    }


def _waits(row: runs.Row, position: int) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "position": position,
        "task": row.task,
        "subject": row.subject,
        "reason": row.reason,
        "asked_by": row.asked_by,
    }

"""What the fleet does now, worked out from the index and the run directories; the server keeps it in `status.json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bot.livecount import has_ended
from bot.rundir import RunDir, read_json, write_json
from bot.serverstate import NAME, said
from bot.slots import Slots, dispatched, paused
from bot.statefiles import time_text
from bot.store import hosts, runs
from bot.store.engine import Store
from bot.store.hosts import HostRow

SHOWN = 200
"""How many waiting runs are named; all are counted."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How full the host is, for an answer."""

    slots: int
    held: int
    peak: int
    pending: int
    dispatched: int
    reports: int
    paused_by: str
    """Empty where nobody paused new runs."""


def counts(connection: sa.Connection, slots: Slots) -> Counts:
    pause = paused(connection)
    held = len(runs.leased(connection, host=slots.host))
    return Counts(
        slots=len(slots.names),
        held=held,
        peak=max(slots.peak, held),
        pending=runs.pending(connection),
        dispatched=dispatched(connection),
        reports=runs.reported(connection),
        paused_by=pause.by if pause else "",
    )


class FleetState:
    """Says what the fleet does now."""

    def __init__(
        self,
        store: Store,
        home: Path,
        slots: Slots,
        *,
        configuration: Callable[[], dict[str, str]],
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._home = home
        self._slots = slots
        self._clock = clock
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
            taken, everybody = runs.leased(connection), hosts.known(connection)
            cap = self._slots.cap(connection)
            rows: dict[str, runs.Row] = {row.run_id: row for row in runs.open_runs(connection, leased=True)}
            waiting = runs.waiting(connection, limit=SHOWN)
            pause = paused(connection)
            pending, reports = runs.pending(connection), runs.reported(connection)
            given = dispatched(connection)
        held = {one.lease.slot: one.run_id for one in taken if one.lease.host == self._slots.host}
        folders = {run_id: RunDir(self._home / "runs" / run_id) for run_id in held.values()}
        live = [run for run in folders.values() if not has_ended(run)]
        return {
            "active_runs": len(live),
            "running": sum(1 for run in live if _has_a_process(run)),
            "pending": pending,
            "max_concurrent": cap,
            "peak": self._slots.peak,
            "dispatched": given,
            "reports": reports,
            "paused": {"by": pause.by, "at": pause.at} if pause else None,
            # What is held beyond the slots there are now is held all the same.
            "slots": {**dict.fromkeys(self._slots.names), **held},
            "runs": [_run(rows[run_id], slot, folders[run_id]) for slot, run_id in held.items() if run_id in rows],
            "hosts": _hosts(everybody, taken, rows, self._clock()),
            "waiting": [_waits(row, place) for place, row in enumerate(waiting, 1)],
            "configuration": self._configuration(),
            "updated": None,
        }


def _hosts(
    everybody: Sequence[HostRow], taken: Sequence[runs.Taken], rows: Mapping[str, runs.Row], now: float
) -> list[dict[str, Any]]:
    """The hosts that share the store, with what the index knows of their runs; none where there is only this one.

    When a host was last heard of is told of one that is gone: of the others it changes all the time.
    """
    told = []
    for host in everybody:
        theirs = [one for one in taken if one.lease.host == host.name]
        if theirs or host.is_live(now):
            known = [(one.lease.slot, rows[one.run_id]) for one in theirs if one.run_id in rows]
            told.append(
                {
                    "name": host.name,
                    "slots": host.slots,
                    "held": len(theirs),
                    "load": host.load,
                    "gone_since": None if host.is_live(now) else time_text(host.seen_at),
                    "runs": [
                        {"run_id": row.run_id, "slot": slot, "task": row.task, "subject": row.subject}
                        | {"phase": row.phase, "reason": row.reason}
                        for slot, row in known
                    ],
                }
            )
    return told if len(told) > 1 else []


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

"""Offers free slots to the runs that wait, in the order they came; one that may not start lets the next one try."""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_hex

import sqlalchemy as sa

from bot.admission import Host, admit
from bot.dispatch import Hint, Hints
from bot.fleet import FleetSettings
from bot.journal import Journal
from bot.model import Lease, Refused
from bot.store import runs, schema
from bot.store.engine import Store

PAUSED = "paused"
"""Key in `settings`: who paused new runs, and when."""


class Slots:
    """The slots of this host."""

    def __init__(
        self,
        store: Store,
        settings: FleetSettings,
        *,
        parallel: Callable[[str], int],
        load: Callable[[], tuple[float | None, int]],
        hints: Hints,
        journal: Journal,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._settings = settings
        self._parallel = parallel
        self._load = load
        self._hints = hints
        self._journal = journal
        self._clock = clock

    def offer(self, _key: str = "") -> float | None:
        """Leases slots to whoever may start. What may not stays waiting, with the reason; nothing is dropped."""
        admitted: list[runs.Row] = []
        overloaded = False
        with self._store.write() as connection:
            for row in runs.waiting(connection):
                match self._admit(connection, row):
                    case Refused(reason, what_would_pass):
                        overloaded |= reason == "host_overloaded"
                        self._refuse(connection, row, f"{reason}: {what_would_pass}")
                    case str(slot):
                        lease = Lease(slot, token_hex(8))
                        runs.take_slot(connection, lease, row.run_id, row.repo, self._clock())
                        runs.note(connection, row.run_id, phase="claim", reason="")
                        admitted.append(row)
        for row in admitted:
            self._journal.say("admitted", run=row.run_id, repo=row.repo)
            self._hints.put(Hint("run", row.run_id))
        return 15.0 if overloaded else None  # load falls without telling anybody; all else is told by who frees it

    def _admit(self, connection: sa.Connection, row: runs.Row) -> str | Refused:
        """Live runs are read anew for each candidate."""
        taken = {slot: repo for slot, _, _, repo in runs.leased(connection)}
        load, cpus = self._load()
        host = Host(
            slots=[f"wt-{n}" for n in range(1, self._settings.slots + 1)],
            taken=taken,
            live=len(taken),
            cap=self._settings.cap,
            paused=is_paused(connection),
            load_p95=load,
            cpus=cpus,
            max_load_per_cpu=self._settings.max_load_per_cpu,
            retrying=runs.retrying(connection),
            retry_cap=self._settings.max_retrying,
            parallel={row.repo: self._parallel(row.repo)},
        )
        return admit(host, row.repo)

    def _refuse(self, connection: sa.Connection, row: runs.Row, why: str) -> None:
        if row.reason != why:
            runs.note(connection, row.run_id, reason=why)
            if not row.reason:  # said once: a queue that moves must not edit every comment that waits in it
                self._hints.put(Hint("answer", row.answer))
            self._journal.say("refused", run=row.run_id, repo=row.repo, why=why)


def is_paused(connection: sa.Connection) -> bool:
    known = schema.settings.c
    return connection.execute(sa.select(known.value).where(known.key == PAUSED)).first() is not None

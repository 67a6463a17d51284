"""What happened to claims: `claim`, `claim_lost`, `release`, `concede`, `sweep`, in `events.jsonl` and in the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.errors import Unavailable
from bot.journal import Journal
from bot.store import schema
from bot.store.engine import Store

EVENTS = frozenset({"claim", "claim_lost", "release", "concede", "sweep"})
table = schema.claim_events


@dataclass(frozen=True, slots=True)
class Noted:
    """One thing that happened to a claim. `at` is in seconds since 1970."""

    at: float
    event: str
    key: str
    run_id: str
    facts: str


class ClaimBook:
    """Writes both. What can't be written stops nothing: the claim's truth is its ref."""

    def __init__(self, store: Store, journal: Journal, clock: Callable[[], float]) -> None:
        self._store = store
        self._journal = journal
        self._clock = clock

    def say(self, event: str, *, run: str, key: str, **facts: object) -> None:
        self._journal.say(event, run=run, key=key, **facts)
        if event not in EVENTS:
            return
        row = {"at": self._clock(), "event": event, "key": key, "run_id": run, "facts": json.dumps(facts, default=str)}
        try:
            with self._store.write() as connection:
                connection.execute(table.insert().values(**row))
        except Unavailable as problem:
            self._journal.say("unbooked", run=run, why=str(problem))

    def of(self, key: str) -> Sequence[Noted]:
        """What happened to the claims of `key`, the oldest first."""
        columns = (table.c.at, table.c.event, table.c.key, table.c.run_id, table.c.facts)
        with self._store.read() as connection:
            rows = connection.execute(sa.select(*columns).where(table.c.key == key).order_by(table.c.id))
            return [Noted(*row) for row in rows]

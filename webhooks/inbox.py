"""The inbox: every delivery once, as it came, on disk before it is answered; and the queue that it makes.

Remembering is a group commit: callers that come at the same time share one transaction and one flush to disk. The first
of them commits for all that wait, so there is no thread to start, to stop or to die.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import Any, Literal

import sqlalchemy as sa

from bot.errors import Unavailable
from bot.store.engine import Store
from bot.store.schema import deliveries

log = logging.getLogger(__name__)

State = Literal["queued", "done", "ignored", "failed"]

ROOM_AT_ONCE = 256
"""How many deliveries are let in between two counts of the queue. Other hosts fill the same one."""

UNSAID = frozenset({"authorization", "cookie", "proxy-authorization", "x-hub-signature"})
"""Headers that are not kept, beside every one that names a signature."""


class Verdict(Enum):
    """What became of a delivery at the inbox; the value is the word of the answer."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    MISMATCH = "mismatch"
    FULL = "full"
    AWAY = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery as it came. `lane`: what it is about; one lane is worked in order.

    `ignored`: why it is kept to be looked up, and not queued; empty = it is queued.
    """

    source: str
    delivery: str
    event: str
    headers: Mapping[str, str]
    body: bytes
    lane: str
    ignored: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A remembered delivery without its contents. Times are seconds since 1970."""

    id: int
    source: str
    delivery: str
    event: str
    lane: str
    size: int
    received_at: float
    state: State
    tries: int
    due_at: float
    ended_at: float | None
    note: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A remembered delivery, whole."""

    entry: Entry
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class _Waiting:
    """A caller's place in the next transaction."""

    delivery: Delivery
    digest: str
    verdict: Verdict = Verdict.AWAY
    settled: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.delivery.source, self.delivery.delivery


_ENTRY = (
    *(deliveries.c[name] for name in Entry.__dataclass_fields__ if name != "size"),
    sa.func.length(deliveries.c.body).label("size"),
)
_KEY = sa.tuple_(deliveries.c.source, deliveries.c.delivery)
_INSERT = deliveries.insert()
_KNOWN = sa.select(deliveries.c.source, deliveries.c.delivery, deliveries.c.digest, deliveries.c.state).where(
    _KEY.in_(sa.bindparam("keys", expanding=True))
)
_QUEUED = sa.select(sa.func.count()).select_from(deliveries).where(deliveries.c.state == "queued")


class Inbox:
    """Deliveries in the store. `limit`: how many may wait; `clock` gives seconds since 1970. Thread-safe."""

    def __init__(self, store: Store, clock: Callable[[], float], *, limit: int = 10_000) -> None:
        self._store = store
        self._clock = clock
        self._limit = limit
        self._arriving = threading.Lock()
        self._leading = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._room = 0

    def remember(self, delivery: Delivery) -> Verdict:
        """Keeps and queues `delivery`, on disk when this returns; or says why not. Nothing is kept then."""
        mine = _Waiting(delivery, sha256(delivery.body).hexdigest())
        with self._arriving:
            self._waiting.append(mine)
        with self._leading:  # who waits here finds, most of the time, that another one has already done it for all
            if not mine.settled:
                self._lead()
        return mine.verdict

    def _lead(self) -> None:
        with self._arriving:
            batch, self._waiting = self._waiting, []
        for waiting in batch:  # whatever happens now, it happened to them: none is to be tried again by the next
            waiting.settled = True
        try:
            self._store.check()  # a file that is gone is written to all the same, and nobody finds it again
            for waiting, verdict in zip(batch, self._commit(batch), strict=True):
                waiting.verdict = verdict
        except Unavailable as problem:
            log.warning("%d deliveries could not be kept: %s", len(batch), problem)

    def _commit(self, batch: list[_Waiting]) -> list[Verdict]:
        try:
            with self._store.write() as connection:
                if self._has_room(connection, len(batch)):
                    connection.execute(_INSERT, [self._row(waiting) for waiting in batch])
                    self._room -= len(batch)
                    return [Verdict.ACCEPTED] * len(batch)
        except Unavailable as problem:
            if not isinstance(problem.__cause__, sa.exc.IntegrityError):
                raise
        return self._commit_one_by_one(batch)  # one of them is known, or the queue is nearly full

    def _commit_one_by_one(self, batch: list[_Waiting]) -> list[Verdict]:
        with self._store.write() as connection:
            rows = connection.execute(_KNOWN, {"keys": list({waiting.key for waiting in batch})})
            known = {(row.source, row.delivery): (row.digest, row.state) for row in rows}
            verdicts = []
            for waiting in batch:
                verdict = self._judge(connection, waiting, known.get(waiting.key))
                if verdict is Verdict.ACCEPTED:
                    known[waiting.key] = waiting.digest, "queued"
                verdicts.append(verdict)
            return verdicts

    def _judge(self, connection: sa.Connection, waiting: _Waiting, seen: tuple[str, str] | None) -> Verdict:
        if seen is None:
            if not waiting.delivery.ignored and not self._has_room(connection, 1):
                return Verdict.FULL
            connection.execute(_INSERT, self._row(waiting))
            self._room -= 1
            return Verdict.ACCEPTED
        digest, state = seen
        if digest != waiting.digest:
            return Verdict.MISMATCH
        same = (deliveries.c.source == waiting.delivery.source) & (deliveries.c.delivery == waiting.delivery.delivery)
        if state == "queued":  # one that failed, and waits for its next try, waits no more
            failed = same & (deliveries.c.state == "queued") & (deliveries.c.tries > 0)
            connection.execute(deliveries.update().where(failed).values(due_at=self._clock()))
        if state != "failed":
            return Verdict.DUPLICATE
        connection.execute(deliveries.update().where(same).values(**self._anew("sent again")))
        return Verdict.ACCEPTED

    def _has_room(self, connection: sa.Connection, wanted: int) -> bool:
        if self._room < wanted:
            self._room = min(self._limit - connection.execute(_QUEUED).scalar_one(), ROOM_AT_ONCE)
        return self._room >= wanted

    def _row(self, waiting: _Waiting) -> dict[str, object]:
        delivery, now = waiting.delivery, self._clock()
        return {
            "source": delivery.source,
            "delivery": delivery.delivery,
            "event": delivery.event,
            "headers": json.dumps({name: text for name, text in delivery.headers.items() if _may_be_kept(name)}),
            "body": delivery.body,
            "digest": waiting.digest,
            "lane": delivery.lane,
            "received_at": now,
            "state": "ignored" if delivery.ignored else "queued",
            "due_at": now,
            "ended_at": now if delivery.ignored else None,
            "note": delivery.ignored,
        }

    def _anew(self, note: str) -> dict[str, object]:
        return {"state": "queued", "tries": 0, "due_at": self._clock(), "ended_at": None, "note": note}

    def lanes(self) -> tuple[str, ...]:
        """The lanes in which something waits."""
        query = sa.select(deliveries.c.lane).where(deliveries.c.state == "queued").distinct()
        with self._store.read() as connection:
            return tuple(connection.execute(query).scalars())

    def head(self, lane: str) -> Kept | None:
        """The delivery of `lane` whose turn it is, due (`entry.due_at`) or not: one lane is worked in order."""
        where = (deliveries.c.state == "queued") & (deliveries.c.lane == lane)
        return self._one(where)

    def done(self, number: int, note: str = "") -> None:
        """`note`: why nothing came of it, where nothing did."""
        self._end(number, "done", note)

    def ignored(self, number: int, why: str) -> None:
        self._end(number, "ignored", why)

    def failed(self, number: int, why: str, retry_at: float | None) -> None:
        """It could not be worked: it stays first in its lane until `retry_at`; None = it is given up."""
        if retry_at is None:
            self._end(number, "failed", why)
        else:
            self._change(number, due_at=retry_at, tries=deliveries.c.tries + 1, note=why)

    def aside(self, entry: Entry, why: str, retry_at: float) -> str:
        """It waits for what may never come: from now on in a lane of its own, where nothing waits for it.

        Returns that lane.
        """
        lane = entry.lane if " " in entry.lane else f"{entry.lane} {entry.id}"
        self._change(entry.id, lane=lane, due_at=retry_at, tries=deliveries.c.tries + 1, note=why)
        return lane

    def _end(self, number: int, state: State, note: str) -> None:
        tries = deliveries.c.tries + 1
        self._change(number, state=state, ended_at=self._clock(), tries=tries, note=note)

    def _change(self, number: int, **values: Any) -> None:
        where = (deliveries.c.id == number) & (deliveries.c.state == "queued")
        with self._store.write() as connection:
            connection.execute(deliveries.update().where(where).values(**values))

    def known(self, keys: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Which of these (source, delivery) were remembered."""
        with self._store.read() as connection:
            rows = connection.execute(_KNOWN, {"keys": list(keys)})
            return frozenset((row.source, row.delivery) for row in rows)

    def replay(self, number: int) -> Entry | None:
        """Queues a delivery again, whatever became of it; None: there is no such one."""
        with self._store.write() as connection:
            connection.execute(deliveries.update().where(deliveries.c.id == number).values(**self._anew("replayed")))
        kept = self.get(number)
        return kept.entry if kept else None

    def get(self, number: int) -> Kept | None:
        return self._one(deliveries.c.id == number)

    def find(self, delivery: str) -> tuple[Entry, ...]:
        """Those with this id of their source's: one a source at most."""
        return self._entries(deliveries.c.delivery == delivery, limit=20)

    def listing(self, *, state: State | None = None, limit: int = 50) -> tuple[Entry, ...]:
        """The latest `limit`, latest first."""
        return self._entries(sa.true() if state is None else deliveries.c.state == state, limit=limit)

    def purge(self, older_than: float) -> int:
        """Forgets what came before `older_than` and waits no more; returns how many, a slice a transaction."""
        gone, last = 0, 0
        while True:
            query = (
                sa.select(deliveries.c.id, deliveries.c.state, deliveries.c.received_at)
                .where(deliveries.c.id > last)
                .order_by(deliveries.c.id)
                .limit(500)
            )
            with self._store.write() as connection:
                rows = connection.execute(query).all()
                old = [row.id for row in rows if row.received_at < older_than and row.state != "queued"]
                if old:
                    connection.execute(deliveries.delete().where(deliveries.c.id.in_(old)))
            gone += len(old)
            if not rows or rows[-1].received_at >= older_than:  # they are numbered as they come
                return gone
            last = rows[-1].id

    def _one(self, where: sa.ColumnElement[bool]) -> Kept | None:
        query = sa.select(*_ENTRY, deliveries.c.headers, deliveries.c.body).where(where)
        with self._store.read() as connection:
            row = connection.execute(query.order_by(deliveries.c.id).limit(1)).one_or_none()
        return None if row is None else Kept(_entry(row), json.loads(row.headers), bytes(row.body))

    def _entries(self, where: sa.ColumnElement[bool], *, limit: int) -> tuple[Entry, ...]:
        query = sa.select(*_ENTRY).where(where).order_by(deliveries.c.id.desc()).limit(limit)
        with self._store.read() as connection:
            return tuple(_entry(row) for row in connection.execute(query))


def _entry(row: Any) -> Entry:
    return Entry(**{name: getattr(row, name) for name in Entry.__dataclass_fields__})


def _may_be_kept(header: str) -> bool:
    return header not in UNSAID and "signature" not in header

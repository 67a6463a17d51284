"""Offers free slots to the runs that wait, in the order they came; one that may not start lets the next one try.

One offer is one transaction, and costs at most one look at each run that waits: what is the same for all of them (the
leases, the pause, the load) is read once, and again after each run that was admitted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import sqlalchemy as sa

from bot.admission import Elsewhere, Host, Peer, admit
from bot.dispatch import Hint, Hints
from bot.errors import Unavailable
from bot.fleet import FleetSettings
from bot.journal import Journal
from bot.livecount import live_among
from bot.model import Lease, Refused
from bot.store import books, hosts, runs, schema
from bot.store.engine import Store
from bot.store.hosts import GONE_AFTER, HostRow

PAUSED = "paused"
"""Key in `settings`: who paused new runs, and when, as JSON."""

DISPATCHED = "dispatched"
"""Key in `settings`: how many runs were ever given a slot."""

LOOK_AGAIN = 15.0
"""Seconds until a host that was overloaded, a store that could not be read, or what was left to another host is looked
at again: nobody tells."""

TOLD = "told"

ENDED = frozenset({"follow", "check", "publish", "blocked", "interrupted"})
"""Phases of a run whose command has ended: all that can be known of one on another host."""


@dataclass(frozen=True, slots=True)
class Pause:
    """No new runs start, on the whole host."""

    by: str
    at: str


class Slots:
    """The slots of this host."""

    def __init__(
        self,
        store: Store,
        settings: FleetSettings,
        runs_dir: Path,
        *,
        host: str,
        home: str = "",
        tell: Callable[[str], None] = lambda _kind: None,
        parallel: Mapping[str, int],
        load: Callable[[], tuple[float | None, int]],
        hints: Hints,
        journal: Journal,
        clock: Callable[[], float],
        cycle_ends: float | None = None,
        run_limit: int = 0,
    ) -> None:
        """`tell`: has the other hosts look, too. `cycle_ends`: when whoever started us wants to be done, by `clock`; no
        run starts that may not end by then, at `run_limit` seconds a run."""
        self.host = host
        self._home = home
        self._tell = tell
        self._cycle_ends = cycle_ends
        self._run_limit = run_limit
        self._store = store
        self._settings = settings
        self._runs_dir = runs_dir
        self._parallel = parallel
        self._load = load
        self._hints = hints
        self._journal = journal
        self._clock = clock
        self._unreadable = ""
        self.peak = 0
        """The most slots that were held at once since this server started."""

    @property
    def names(self) -> list[str]:
        return _names(self._settings.slots)

    def join(self) -> None:
        """Makes this host known to the others; before that it decides nothing."""
        with self._store.write() as connection:
            hosts.join(connection, self._myself(), self._home)

    def leave(self) -> None:
        """Tells the others not to wait for this host. What it runs goes on, and keeps its slots."""
        with suppress(Unavailable), self._store.write() as connection:
            hosts.leave(connection, self.host, self._clock())

    def cap(self, connection: sa.Connection) -> int:
        """How many runs may be live, on all hosts together."""
        others = [row for row in hosts.known(connection) if row.name != self.host]
        return self._cap(others)

    def _cap(self, others: Iterable[HostRow]) -> int:
        slots = self._settings.slots + sum(row.slots for row in others if self._counts(row))
        return self._settings.max_concurrent or slots

    def offer(self, key: str = "") -> float | None:
        """Leases slots to whoever may start. What may not stays waiting, with the reason; nothing is dropped.

        `key`: `TOLD` where another host asked for this look. It is not asked back: the two may see it differently.

        A store that can't be read admits nobody, and is said to be so until it can be.
        """
        try:
            self._store.check()
            with self._store.write() as connection:
                admitted, refused, look_again = self._decide(connection)
        except Unavailable as problem:
            return self._closed(problem)
        self._unreadable = ""
        for row, lease in admitted:
            self._journal.say("admitted", run=row.run_id, repo=row.repo, slot=lease.slot, host=lease.host)
            self._hints.put(Hint("run", row.run_id))
        for row, why in refused:
            if row.reason.partition(":")[0] == why.partition(":")[0]:
                continue  # the same reason with other figures
            self._journal.say("refused", run=row.run_id, repo=row.repo, why=why)
            if not row.reason:  # said once: a queue that moves must not edit every comment that waits in it
                self._hints.put(Hint("answer", row.answer))
        self._hints.put(Hint("state"))
        if look_again is not None and key != TOLD:
            self._tell("waiting")
        return look_again

    def _decide(
        self, connection: sa.Connection
    ) -> tuple[list[tuple[runs.Waiting, Lease]], list[tuple[runs.Waiting, str]], float | None]:
        admitted: list[tuple[runs.Waiting, Lease]] = []
        refused: list[tuple[runs.Waiting, str]] = []
        host = self._host(connection)
        look_again = None
        on_hold = books.all_holds(connection)
        for row in runs.waiting_for_a_slot(connection, self._clock()):
            match _on_hold(row, on_hold) or admit(host, row.repo):
                case Refused(reason, what_would_pass):
                    look_again = LOOK_AGAIN if reason == "host_overloaded" else look_again
                    if row.reason != (why := f"{reason}: {what_would_pass}"):
                        refused.append((row, why))
                case Elsewhere():
                    look_again = LOOK_AGAIN  # it may be gone by then
                case str(slot):
                    lease = Lease(slot, token_hex(8), self.host)
                    runs.take_slot(connection, lease, row.run_id, row.repo, self._clock())
                    runs.note(connection, row.run_id, phase="claim", reason="", host=self.host)
                    admitted.append((row, lease))
                    host = self._host(connection)
        if admitted:
            _count(connection, len(admitted))
        runs.note_reasons(connection, {row.run_id: why for row, why in refused})
        return admitted, refused, look_again

    def _host(self, connection: sa.Connection) -> Host:
        """What the decision looks at, as it is now, on all hosts."""
        now = self._clock()
        everybody = {row.name: row for row in hosts.known(connection)}
        myself = self._myself()
        hosts.speak(connection, myself, everybody.pop(self.host, None))
        held = runs.leased(connection)
        mine = [taken for taken in held if taken.lease.host == self.host]
        theirs = [
            taken for taken in held if taken.lease.host != self.host and self._counts(everybody.get(taken.lease.host))
        ]
        self.peak = max(self.peak, len(mine))
        live = live_among(self._runs_dir, [taken.run_id for taken in mine])
        peers = [_peer(row, held) for row in everybody.values() if row.is_live(now)]
        load, cpus = self._load()
        return Host(
            name=self.host,
            slots=self.names,
            taken={taken.lease.slot: taken.repo for taken in mine},
            peers=peers,
            elsewhere=[taken.repo for taken in theirs],
            live=live + sum(1 for taken in theirs if taken.phase not in ENDED),
            cap=self._cap(everybody.values()),
            paused=paused(connection) is not None,
            load_p95=load,
            cpus=cpus,
            max_load_per_cpu=self._settings.max_load_per_cpu,
            retrying=runs.retrying(connection),
            retry_cap=self._settings.max_retrying,
            parallel=self._parallel,
            remaining_seconds=None if self._cycle_ends is None else int(self._cycle_ends - now),
            run_limit=self._run_limit,
        )

    def _myself(self) -> HostRow:
        load, cpus = self._load()
        return HostRow(self.host, len(self.names), load, self._settings.max_load_per_cpu * cpus, self._clock())

    def _counts(self, row: HostRow | None) -> bool:
        """Whether the runs of another host still count: of one that is gone, until each must have met its time limit.
        Their slots stay its own all the same."""
        return row is None or self._clock() - row.seen_at <= max(GONE_AFTER, 2 * self._run_limit)

    def _closed(self, problem: Unavailable) -> float:
        if self._unreadable != str(problem):
            self._unreadable = str(problem)
            why = f"registry_unreadable: {problem}; `leadsman doctor --repair` rebuilds it"
            self._journal.say("refused", why=why)
        return LOOK_AGAIN


def _on_hold(row: runs.Waiting, on_hold: Mapping[str, str]) -> Refused | None:
    """A run that waited already when its thread was put on hold waits on: it would be a new one there."""
    by = on_hold.get(row.subject) or on_hold.get(row.repo)
    return Refused("on_hold", f"{by} put it on hold; `/unhold` lets it start.") if by else None


def _names(slots: int) -> list[str]:
    return [f"wt-{n}" for n in range(1, slots + 1)]


def _peer(row: HostRow, held: Sequence[runs.Taken]) -> Peer:
    taken = {one.lease.slot for one in held if one.lease.host == row.name}
    is_within = row.load is None or row.load <= row.most_load
    return Peer(row.name, row.slots, len(taken), is_able=is_within and not taken.issuperset(_names(row.slots)))


def paused(connection: sa.Connection) -> Pause | None:
    """Who paused new runs; None where nobody did. A note that can't be read is a pause, too."""
    known = schema.settings.c
    text = connection.execute(sa.select(known.value).where(known.key == PAUSED)).scalar()
    if text is None:
        return None
    try:
        found = json.loads(text)
        return Pause(str(found["by"]), str(found["at"]))
    except (ValueError, KeyError, TypeError):
        return Pause("somebody", "")


def dispatched(connection: sa.Connection) -> int:
    """How many runs were ever given a slot."""
    known = schema.settings.c
    return int(connection.execute(sa.select(known.value).where(known.key == DISPATCHED)).scalar() or 0)


def _count(connection: sa.Connection, more: int) -> None:
    total = dispatched(connection) + more
    connection.execute(schema.settings.delete().where(schema.settings.c.key == DISPATCHED))
    connection.execute(schema.settings.insert().values(key=DISPATCHED, value=str(total)))


def pause(connection: sa.Connection, by: str, at: str) -> bool:
    """Pauses new runs; False where they were paused before: the first to ask is the one that is named."""
    if paused(connection) is not None:
        return False
    connection.execute(schema.settings.insert().values(key=PAUSED, value=json.dumps({"by": by, "at": at})))
    return True


def unpause(connection: sa.Connection) -> bool:
    """Lets new runs start again; False where nothing was paused."""
    done = connection.execute(schema.settings.delete().where(schema.settings.c.key == PAUSED))
    return bool(done.rowcount)

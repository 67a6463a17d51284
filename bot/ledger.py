"""What the index says of one run, and what is written there of it: whose it is, how it stands, who called it off."""

from __future__ import annotations

from bot import liveness, stopping
from bot.ages import Ages
from bot.dispatch import Hint, Hints
from bot.journal import Journal
from bot.model import Cancelled, Lease
from bot.rundir import RunDir, read_json
from bot.store import runs
from bot.store.engine import Store


class Ledger:
    """The index, for the road of a run. `host`: the name of this one."""

    def __init__(self, store: Store, host: str, journal: Journal, hints: Hints) -> None:
        self._store = store
        self._host = host
        self._journal = journal
        self._hints = hints

    def row(self, run_id: str) -> runs.Row | None:
        with self._store.read() as connection:
            return runs.get(connection, run_id)

    def tries(self, run_id: str) -> int:
        """How often its present step was tried in vain."""
        with self._store.read() as connection:
            return runs.tries(connection, run_id)

    def give_back(self, lease: Lease) -> None:
        with self._store.write() as connection:
            runs.give_back(connection, lease)

    def step_back(self, run_id: str) -> bool:
        """Gives the slot of a run back, which waits for one again until it is due. False where hosts share the store:
        its files are here, so no other may take it."""
        if self._store.is_shared:
            return False
        with self._store.write() as connection:
            lease = runs.lease_of(connection, run_id)
            if lease is not None:
                runs.give_back(connection, lease)
            runs.note(connection, run_id, phase="waiting")
        return True

    def ask_to_stop(self, run_id: str, by: str, at: float) -> None:
        with self._store.write() as connection:
            runs.ask_to_stop(connection, run_id, by, at)

    def lease(self, run_id: str) -> Lease | None:
        with self._store.read() as connection:
            return runs.lease_of(connection, run_id)

    def may_be_ours(self, run_id: str) -> bool:
        """Whether the run is this host's, or nobody's yet. Another's is nothing to us: its files are there; and where
        hosts share a store, the files of one that waits are made by the host that takes it."""
        row = self.row(run_id)
        if row is None or row.host == self._host:
            return True
        return not row.host and (row.is_called_off or not self._store.is_shared)

    def adopt(self, run_id: str) -> bool:
        with self._store.write() as connection:
            return runs.adopt(connection, run_id, self._host)

    def note(self, run_id: str, **values: object) -> None:
        with self._store.write() as connection:
            runs.note(connection, run_id, **values)

    def cancelled(self, ages: Ages) -> str | None:
        """Who asked for the run's end: in its directory (the command line), or in the index (a comment)."""
        if (by := liveness.cancel_asked(ages.path)) is not None:
            return by
        row = self.row(ages.path.name)
        return row.cancel if row else None

    def asked(self, ages: Ages) -> stopping.Asked | None:
        """Whether it is asked to stop after its turn."""
        return stopping.asked_of(self.row(ages.path.name), ages.intent.limit)

    def called_off(self, ages: Ages) -> Cancelled | None:
        """What it comes to where its end was asked for and its command does not run, not yet or not any more."""
        if (by := self.cancelled(ages)) is not None:
            return Cancelled(by)
        if (asked := self.asked(ages)) is None:
            return None
        return stopping.outcome(asked, read_json(RunDir(ages.path).status) or {}, ages.intent.limit)

    def tell(self, run_id: str, phase: str, reason: str) -> None:
        """Lets the index and the answer say how the run stands, where that is news."""
        row = self.row(run_id)
        if row is None or (row.phase, row.reason) == (phase, reason):
            return
        self.note(run_id, phase=phase, reason=reason)
        if phase in ("blocked", "interrupted"):
            self._journal.say(phase, run=run_id, why=reason)
        self._hints.put(Hint("answer", row.answer))
        self._hints.put(Hint("state"))
        self._hints.put(Hint("board"))

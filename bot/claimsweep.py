"""Gives back what nobody works any more: claims that outlived their run, and those of bots that are gone.

A claim whose run is open is never touched while its host serves, and neither is a ticket without a bot's claim note: a
person moved it.
Ages are the tracker's: the journal's time of the claim note, against twice the run limit; exactly twice is not stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bot import epoch
from bot.claimbook import ClaimBook
from bot.claims import Claims
from bot.errors import Forbidden, Gone, Unavailable
from bot.store import hosts, runs
from bot.store.engine import Store
from bot.trackers import Move, Ticket, Tracker


class ClaimSweep:
    """Looks through the claimed tickets of the trackers. Repeated, it does nothing twice."""

    def __init__(
        self,
        trackers: Mapping[str, Tracker],
        projects: Mapping[str, Iterable[str]],
        claims: Claims,
        store: Store,
        book: ClaimBook,
        *,
        limit: int,
        clock: Callable[[], float],
    ) -> None:
        """`projects`: by tracker, its names of ours; `limit`: seconds a run may take, for claims of which nothing else
        is known."""
        self._trackers = trackers
        self._projects = projects
        self._claims = claims
        self._store = store
        self._book = book
        self._limit = limit
        self._clock = clock

    def sweep(self) -> None:
        for name, tracker in self._trackers.items():
            if not tracker.claiming.enabled:
                continue
            for project in self._projects[name]:
                try:
                    for listed in list(tracker.claimed(project)):
                        self._look(tracker, listed)
                except (Gone, Forbidden, Unavailable) as problem:
                    self._book.say("unswept", run="", key=f"{name}:{project}", why=str(problem))

    def _look(self, tracker: Tracker, listed: Ticket) -> None:
        try:
            ticket = tracker.ticket(listed.ref)
        except (Gone, Forbidden):
            return
        claim = epoch.holder(ticket.journal)
        if claim is None or ticket.stage != "claimed":
            return
        if (why := self._why(tracker, ticket, claim)) is not None:
            self.give_back(tracker, ticket, claim, why)

    def _why(self, tracker: Tracker, ticket: Ticket, claim: epoch.Claimed) -> str | None:
        """Why the claim is to be given back now, or None."""
        with self._store.read() as connection:
            row = runs.get(connection, claim.run_id)
            is_left = row is not None and hosts.is_gone(connection, row.host, self._clock())
        if row is not None and not (is_left and row.closed_at is None):
            return None if row.closed_at is None else f"run {claim.run_id} has ended ({row.reason})"
        limit = tracker.claiming.limit
        if limit is None:
            limit = self._claims.limit_of(ticket.ref, claim.run_id) or self._limit
        age = self._clock() - claim.entry.at.timestamp()
        if limit == 0 or age <= 2 * limit:
            return None
        return f"swept: {claim.by} claimed it {int(age)} s ago for run {claim.run_id}, and no report followed"

    def give_back(self, tracker: Tracker, ticket: Ticket, claim: epoch.Claimed, why: str) -> None:
        """First the ref, which is the fence: whoever wakes up with that claim publishes and says nothing. Then the
        ticket. In between, the next sweep finds the ticket as it is now."""
        if not self._claims.evict(ticket.ref, claim.run_id):
            return  # another run has the ref meanwhile; its own claim note comes
        claimable = tracker.claiming.claimable
        may = ticket.allowed is None or claimable.casefold() in {name.casefold() for name in ticket.allowed}
        move: Move | None = "claimable" if may else None
        tracker.write(ticket.ref, epoch.release_note(why), to=move, of=claim.entry.author)
        self._book.say("sweep", run=claim.run_id, key=str(ticket.ref), why=why)

"""Gives back what nobody works any more: claims that outlived their run, and those of bots that are gone.

A claim whose run is open is never touched while its host serves, and neither is a ticket without a bot's claim note: a
person moved it.
Ages are the tracker's: the journal's time of the claim note, against twice the run limit; exactly twice is not stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from bot import epoch
from bot.claimbook import ClaimBook
from bot.claims import Claims
from bot.errors import Forbidden, Gone, Unavailable
from bot.model import AnyTicket, Held, Subject
from bot.store import hosts, runs
from bot.store.engine import Store
from bot.trackers import MOST_AWAY, Move, Ticket, Tracker

YOUNG = 60.0
"""Seconds. No claim that says to be younger is looked into by a run that it keeps out: of many bots before one ticket
all but one would."""


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
                    self._sweep(tracker, project)
                except (Gone, Forbidden, Unavailable) as problem:
                    self._book.say("unswept", run="", key=f"{name}:{project}", why=str(problem))

    def _sweep(self, tracker: Tracker, project: str) -> None:
        """What is in the way of one ticket keeps back no other, unless nothing answers."""
        away = 0
        for listed in list(tracker.claimed(project)):
            try:
                self._look(tracker, tracker.ticket(listed.ref))
                away = 0
            except (Gone, Forbidden) as problem:
                self._book.say("unswept", run="", key=str(listed.ref), why=str(problem))
            except Unavailable as problem:
                self._book.say("unswept", run="", key=str(listed.ref), why=str(problem))
                away += 1
                if away == MOST_AWAY:
                    raise

    def clears(self, subject: Subject, held: Held) -> bool:
        """Gives back the claim that keeps a run out, where nobody works it: no sweep finds it on a ticket that is not
        in the claim status. Whether the ticket may be tried again."""
        if not isinstance(subject, AnyTicket) or not held.run_id or self._is_worked(held):
            return False
        tracker = self._trackers[subject.tracker]
        try:
            return tracker.claiming.enabled and self._clear(tracker, tracker.ticket(subject), held)
        except (Gone, Forbidden, Unavailable) as problem:
            self._book.say("unswept", run="", key=str(subject), why=str(problem))
            return False

    def _is_worked(self, held: Held) -> bool:
        """By our own books and the holder's word, which cost no request."""
        with self._store.read() as connection:
            row = runs.get(connection, held.run_id)
            is_left = row is not None and hosts.is_gone(connection, row.host, self._clock())
        if row is not None:
            return row.closed_at is None and not is_left
        try:
            return self._clock() - datetime.fromisoformat(held.since).timestamp() < YOUNG
        except (ValueError, OverflowError):
            return False

    def _clear(self, tracker: Tracker, ticket: Ticket, held: Held) -> bool:
        if epoch.holder(ticket.journal) is not None:
            return self._look(tracker, ticket)
        return tracker.claiming.limit != 0 and self._claims.clear(ticket.ref, held.run_id)

    def _look(self, tracker: Tracker, ticket: Ticket) -> bool:
        claim = epoch.holder(ticket.journal)
        why = None if claim is None else self._why(tracker, ticket, claim)
        return claim is not None and why is not None and self.give_back(tracker, ticket, claim, why)

    def _why(self, tracker: Tracker, ticket: Ticket, claim: epoch.Claimed) -> str | None:
        """Why the claim is to be given back now, or None."""
        with self._store.read() as connection:
            row = runs.get(connection, claim.run_id)
            is_left = row is not None and hosts.is_gone(connection, row.host, self._clock())
        if row is not None and not (is_left and row.closed_at is None):
            return None if row.closed_at is None else epoch.ended(claim.run_id, row.reason)
        limit = tracker.claiming.limit
        if limit is None:
            limit = self._claims.limit_of(ticket.ref, claim.run_id) or self._limit
        age = self._clock() - claim.entry.at.timestamp()
        if limit == 0 or age <= 2 * limit:
            return None
        return f"swept: {claim.by} claimed it {int(age)} s ago for run {claim.run_id}, and no report followed"

    def give_back(self, tracker: Tracker, ticket: Ticket, claim: epoch.Claimed, why: str) -> bool:
        """First the ref, which is the fence: whoever wakes up with that claim publishes and says nothing. Then the
        ticket, as it is now: until then its report may have come. In between, the next sweep finds it. False where
        another run has the ref meanwhile; its own claim note comes."""
        if not self._claims.evict(ticket.ref, claim.run_id):
            return False
        now = tracker.ticket(ticket.ref)
        holder = epoch.holder(now.journal)
        if holder is not None and holder.run_id == claim.run_id:
            self._release(tracker, now, claim, why)
            self._book.say("sweep", run=claim.run_id, key=str(ticket.ref), why=why)
        return True

    def _release(self, tracker: Tracker, ticket: Ticket, claim: epoch.Claimed, why: str) -> None:
        """A status that people gave it is left as it is, and one that may not be set keeps back no note."""
        claimable, of = tracker.claiming.claimable, claim.entry.author
        may = ticket.allowed is None or claimable.casefold() in {name.casefold() for name in ticket.allowed}
        move: Move | None = "claimable" if may and ticket.stage == "claimed" else None
        try:
            tracker.write(ticket.ref, epoch.release_note(why), to=move, of=of)
        except Forbidden as problem:
            if move is None:
                raise
            tracker.write(ticket.ref, epoch.release_note(f"{why}. {epoch.stays(str(problem))}"), of=of)

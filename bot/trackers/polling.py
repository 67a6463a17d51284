"""What changed on a tracker becomes events: each journal entry once, also across a restart.

A poll asks for the tickets that changed since a durable mark, reads each, and hands on what its journal says. The mark
is the tracker's own time. Times are shown in whole seconds and kept finer, and a change is seen only when it is
committed: so each poll looks back a little, and whoever takes the events knows what it was given by its id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from bot import codec
from bot.epoch import is_of_a_bot
from bot.errors import Forbidden, Gone, Unavailable
from bot.journal import Journal
from bot.model import Actor, AnyTicket, Commented, Event, Opened, Updated
from bot.store import schema
from bot.store.engine import Store
from bot.trackers import PAGE, Entry, Ticket, TicketSystem

OVERLAP = timedelta(seconds=60)
"""How far a poll looks back behind its mark."""

SETTLED = timedelta(seconds=5)
"""So long after a change was first seen, nothing more is written in its second, whatever the tracker's clock says."""

Keep = Callable[[Event], None]
"""Takes an event, on disk when it returns; one whose `delivery` it knows is dropped. Raises `Unavailable`."""

LookLater = Callable[[AnyTicket, datetime], None]
"""Has a ticket that can't be read now looked at again, from that moment of its journal on."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """Up to when changes were read, and from when on they count at all."""

    at: datetime
    begun: datetime

    def horizon(self, now: datetime) -> datetime:
        """From when on what changed is looked at. A tracker whose clock was ahead and is set right goes on before the
        mark."""
        return max(min(self.at, now) - OVERLAP, self.begun)


@dataclass(frozen=True, slots=True)
class _Look:
    """A ticket that was read: its last change, when that was first seen, by our clock, and whether it was read late
    enough to have shown all of that second."""

    updated_at: datetime
    first: datetime
    whole: bool = False


class Poll:
    """The projects of one tracker that are ours."""

    def __init__(
        self,
        tracker: TicketSystem,
        projects: Mapping[str, object],
        store: Store,
        *,
        keep: Keep,
        later: LookLater,
        journal: Journal,
        clock: Callable[[], float],
    ) -> None:
        self._tracker = tracker
        self._projects = tuple(projects)
        self._store = store
        self._keep = keep
        self._later = later
        self._journal = journal
        self._clock = clock
        self._looks: dict[AnyTicket, _Look] = {}

    def look(self) -> None:
        """Looks at every project once. What is in its way in one of them is said, and stops no other."""
        try:
            me = self._tracker.whoami()  # a key that is refused would read as anybody, and miss what only we may see
        except (Gone, Forbidden, Unavailable) as problem:
            self._journal.say("unpolled", tracker=self._tracker.name, why=str(problem))
            return
        for project in self._projects:
            try:
                self._look(project, me)
            except (Gone, Forbidden, Unavailable) as problem:
                self._journal.say("unpolled", tracker=self._tracker.name, project=project, why=str(problem))

    def _look(self, project: str, me: Actor) -> None:
        found = self._mark(project)
        if found is None:
            self._begin(project)
            return
        mark, horizon = found.at, found.horizon(self._now())
        since, skip = horizon, 0
        seen: set[tuple[int, datetime]] = set()
        while True:
            page = self._tracker.changed(project, since, skip)
            for ticket in page:
                # One that changed again meanwhile is read again: of many pages, the last may be minutes later.
                if (ticket.ref.number, ticket.updated_at) not in seen and not self._is_read(ticket):
                    self._read(ticket, horizon, me)
            seen |= {(ticket.ref.number, ticket.updated_at) for ticket in page}
            if page and page[-1].updated_at > mark:
                mark = page[-1].updated_at
                self._set_mark(project, _Mark(mark, found.begun))
            if len(page) < PAGE:
                return
            # The next page begins at the last one's time: by number, a ticket that changes meanwhile and so leaves its
            # place would draw another one over the border, unseen.
            last = page[-1].updated_at
            since, skip = (last, 0) if last > since else (since, skip + PAGE)

    def _begin(self, project: str) -> None:
        """The first time: what was before is history. So is what was in the second of the last change, unless that
        second is not over."""
        last = self._tracker.latest(project) or datetime.fromtimestamp(0, UTC)
        now = self._now()
        begun = last if now - last < SETTLED else last + timedelta(seconds=1)
        self._set_mark(project, _Mark(begun, begun))

    def _is_read(self, listed: Ticket) -> bool:
        look = self._looks.get(listed.ref)
        return look is not None and look.whole and look.updated_at == listed.updated_at

    def _read(self, listed: Ticket, horizon: datetime, me: Actor) -> None:
        """Each poll looks back: what was read when the second of its last change was over is not read again."""
        ref, begun = listed.ref, self._now()
        try:
            ticket = self._tracker.ticket(ref)
            self._tell(ticket, horizon, me)
            self._looks = {known: look for known, look in self._looks.items() if look.updated_at >= horizon}
            before = self._looks.get(ref)
            first = before.first if before is not None and before.updated_at == ticket.updated_at else begun
            self._looks[ref] = _Look(ticket.updated_at, first, begun - first >= SETTLED)
        except (Gone, Forbidden) as problem:
            self._journal.say("unread", ticket=str(ref), why=str(problem))
        except Unavailable as problem:
            self._journal.say("unread", ticket=str(ref), why=str(problem))
            self._later(ref, horizon)

    def look_at(self, number: int, since: datetime | None = None) -> None:
        """Reads one ticket: a webhook says that it changed. Raises `Unavailable`."""
        ref = self._tracker.find(number)
        if ref is None:
            return
        try:
            mark = self._mark(self._tracker.project_of(ref))
            if since is None and mark is None:
                return  # it was never polled: the first poll says from when on things count
            ticket = self._tracker.ticket(ref)
        except (Gone, Forbidden) as problem:
            self._journal.say("unread", ticket=str(ref), why=str(problem))
            return
        horizon = since if mark is None else since or mark.horizon(self._now())
        if horizon is not None:
            self._tell(ticket, horizon, self._tracker.me())

    def look_at_entry(self, number: int, entry: str) -> bool:
        """Tells one entry of a ticket's journal, "" the ticket itself. False: there is none such, or it is none that
        counts. Raises `Gone`, `Forbidden` or `Unavailable`."""
        ref = self._tracker.find(number)
        if ref is None:
            return False
        ticket, me = self._tracker.ticket(ref), self._tracker.me()
        if not entry:
            return self._tell_ticket(ticket, me)
        found = [one for one in ticket.journal if one.id == entry and not one.private and _is_news(one, me)]
        for one in found:
            self._tell_entry(ticket, one)
        return bool(found)

    def _tell_ticket(self, ticket: Ticket, me: Actor) -> bool:
        if ticket.created_at is None or ticket.author.id == me.id:
            return False
        what = Opened(ticket.title)
        self._keep(self._event(f"ticket-{ticket.ref.number}", ticket, ticket.author, what, ticket.created_at))
        return True

    def _tell(self, ticket: Ticket, horizon: datetime, me: Actor) -> None:
        if ticket.created_at is not None and ticket.created_at >= horizon:
            self._tell_ticket(ticket, me)
        for entry in ticket.journal:
            if entry.at >= horizon and _is_news(entry, me):
                self._tell_entry(ticket, entry)

    def _tell_entry(self, ticket: Ticket, entry: Entry) -> None:
        """A private note is not told: what it asks would be answered, or show its effect, in public."""
        if entry.private:
            return
        if entry.text:
            said = Commented(entry.id, entry.author, entry.text, None)
            self._keep(self._event(f"note-{entry.id}", ticket, entry.author, said, entry.at))
        what = Updated(
            entry.id, entry.old_status or ticket.status, entry.new_status or ticket.status, entry.assignee_changed
        )
        self._keep(self._event(f"change-{entry.id}", ticket, entry.author, what, entry.at))

    def _event(
        self, delivery: str, ticket: Ticket, actor: Actor, what: Opened | Commented | Updated, at: datetime
    ) -> Event:
        return Event(
            source=self._tracker.name,
            delivery=delivery,
            subject=ticket.ref,
            actor=actor,
            what=what,
            head_sha=None,
            at=at,
        )

    # ── the mark ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    def _key(self, project: str) -> str:
        return f"polled:{self._tracker.name}:{project}"

    def _mark(self, project: str) -> _Mark | None:
        row = schema.settings.c
        with self._store.read() as connection:
            text = connection.execute(sa.select(row.value).where(row.key == self._key(project))).scalar()
        return codec.load(_Mark, text) if text else None

    def _set_mark(self, project: str, mark: _Mark) -> None:
        with self._store.write() as connection:
            row = schema.settings
            connection.execute(row.delete().where(row.c.key == self._key(project)))
            connection.execute(row.insert().values(key=self._key(project), value=codec.dump(_Mark, mark)))


def _is_news(entry: Entry, me: Actor) -> bool:
    """Not what the bot did itself, nor any other bot for the protocol's sake."""
    return entry.author.id != me.id and not is_of_a_bot(entry)

"""Takes what is claimable: rules with `on = "schedule"` start on the tickets that stand there, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot import epoch
from bot.dispatch import Hint
from bot.errors import Forbidden, Gone, Unavailable
from bot.journal import Journal
from bot.model import AnyTicket, Claimable, Event, Held
from bot.projects import Project
from bot.trackers import MOST_AWAY, Ticket, Tracker
from handlers import rules
from handlers.decide import decide
from handlers.decision import Decision
from handlers.views import Desk

AGAIN_SECONDS = 600
"""After so long a ticket is tried again that a run was started for and that no claim came of."""

SAME_SECOND = timedelta(seconds=2)
"""Trackers show times in whole seconds: within so long after one was first seen, a second change may hide behind it."""

Carry = Callable[[Decision, Event], list[Hint]]


@dataclass(frozen=True, slots=True)
class _Look:
    """One state of a listed ticket, and when it was first seen, by our own clock."""

    updated_at: datetime
    first: datetime
    passed: bool = False


class Scan:
    """One look at a time: as many tickets are taken as there is room for runs, the most urgent first, then the oldest.

    One that is lost to another bot, blocked or refused is skipped, and the next is tried. A ticket that was looked at
    and did not start anything is read again when it has changed.
    """

    def __init__(
        self,
        desk: Desk,
        trackers: Mapping[str, Tracker],
        projects: Sequence[Project],
        *,
        room: Callable[[Project], int],
        carry: Carry,
        clears: Callable[[AnyTicket, Held], bool],
        journal: Journal,
    ) -> None:
        """`room`: how many more runs there may be in a project now; `clears`: gives back a claim that nobody works."""
        self._desk = desk
        self._trackers = trackers
        self._projects = [
            p for p in projects if p.ticketing[0] in trackers and trackers[p.ticketing[0]].claiming.enabled
        ]
        self._room = room
        self._carry = carry
        self._clears = clears
        self._journal = journal
        self._looks: dict[AnyTicket, _Look] = {}
        self.asking = ""
        """`anew` of every look that names none."""
        self.missed: list[str] = []
        """Of the last look: the projects and tickets that could not be looked at, and why."""

    def look(self, *, anew: str = "") -> list[Hint]:
        """Returns what may now be ready. `anew`: also takes what was tried before and has not changed since; it names
        the asking, so that one asking takes a ticket once."""
        anew = anew or self.asking
        hints: list[Hint] = []
        self.missed = []
        for project in self._projects:
            try:
                if any(rule.rule.on == "schedule" for rule in self._desk.tasks(project).rules):
                    hints += self._look(project, anew)
            except (Gone, Forbidden, Unavailable) as problem:
                self._miss(project.name, problem)
        return hints

    def _miss(self, what: str, problem: Exception) -> None:
        self.missed.append(f"{what}: {problem}")
        self._journal.say("unscanned", what=what, why=str(problem))

    def _look(self, project: Project, anew: str) -> list[Hint]:
        hints: list[Hint] = []
        room = self._room(project)
        if room <= 0:
            return hints
        name, identifier = project.ticketing
        tracker, away = self._trackers[name], 0
        for listed in tracker.claimable(identifier):
            look = self._seen(listed)
            if not anew and look.passed:
                continue
            try:
                started, away = self._take(tracker, listed, anew), 0
            except Unavailable as problem:
                away += 1
                if away == MOST_AWAY:
                    raise
                self._miss(str(listed.ref), problem)
                continue
            hints += started
            room -= bool(started)
            if room <= 0:
                break
        return hints

    def _take(self, tracker: Tracker, listed: Ticket, anew: str) -> list[Hint]:
        try:
            ticket = tracker.ticket(listed.ref)
            if (holder := epoch.holder(ticket.journal)) is not None and self._clears(ticket.ref, _held(holder)):
                ticket = tracker.ticket(listed.ref)
            if not anew and epoch.was_tried(ticket.journal):
                self._pass(listed)
                return []
            if (why := self._against(tracker, ticket)) is not None:
                self._skip(listed, why)
                return []
            event = self._event(tracker, ticket, anew)
            decision = decide(event, self._desk)
        except (Gone, Forbidden) as problem:
            self._skip(listed, str(problem))
            return []
        if isinstance(decision, Decision):
            return self._carry(decision, event)
        if rules.DOES_NOT_HOLD in decision.reason:
            self._pass(listed)
        return []

    def _seen(self, listed: Ticket) -> _Look:
        look = self._looks.get(listed.ref)
        if look is None or look.updated_at != listed.updated_at:
            look = self._looks[listed.ref] = _Look(listed.updated_at, self._desk.now())
        return look

    def _pass(self, listed: Ticket) -> None:
        """Leaves it out until it changes, once no other change can bear the same time."""
        look = self._seen(listed)
        if self._desk.now() - look.first >= SAME_SECOND:
            self._looks[listed.ref] = replace(look, passed=True)

    def _skip(self, listed: Ticket, why: str) -> None:
        self._journal.say("skipped", ticket=str(listed.ref), why=why)

    def _against(self, tracker: Tracker, ticket: Ticket) -> str | None:
        """Why nothing can start on it now, whatever the rules say."""
        if (holder := epoch.holder(ticket.journal)) is not None:
            return f"{holder.by} has it with run {holder.run_id}"
        if blockers := tracker.open_among(ticket.blocked_by):
            return f"it waits for {', '.join(map(str, blockers))}"
        claimed = tracker.claiming.claimed
        if ticket.allowed is not None and claimed.casefold() not in {name.casefold() for name in ticket.allowed}:
            return f"the workflow lets the bot not set {claimed}"
        return None

    def _event(self, tracker: Tracker, ticket: Ticket, anew: str) -> Event:
        """A ticket is taken once for what was last done to it; where no claim came of that, because a tracker or a
        remote was away, again after a while."""
        stamp = f"{epoch.stamp(ticket.journal)} {int(self._desk.now().timestamp() // AGAIN_SECONDS)}"
        return Event(
            source=tracker.name,
            delivery=f"scan-{ticket.ref.number}-{stamp.replace(' ', '-')}",
            subject=ticket.ref,
            actor=ticket.author,
            what=Claimable(f"{epoch.stamp(ticket.journal)} {anew}" if anew else stamp),
            head_sha=None,
            at=ticket.updated_at,
        )


def _held(holder: epoch.Claimed) -> Held:
    return Held(holder.by, holder.at, holder.run_id, "")

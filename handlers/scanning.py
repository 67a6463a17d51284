"""Takes what is claimable: rules with `on = "schedule"` start on the tickets that stand there, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from bot import epoch
from bot.dispatch import Hint
from bot.errors import Forbidden, Gone, Unavailable
from bot.journal import Journal
from bot.model import Claimable, Event, Ignored, TicketRef
from bot.projects import Project
from bot.trackers import Ticket, Tracker
from handlers.decide import decide
from handlers.decision import Decision, Start
from handlers.views import Desk

Carry = Callable[[Decision, Event], list[Hint]]


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
        journal: Journal,
    ) -> None:
        """`room`: how many more runs there may be in a project now."""
        self._desk = desk
        self._trackers = trackers
        self._projects = [p for p in projects if p.tracker_project and _claims(trackers, p.tracker)]
        self._room = room
        self._carry = carry
        self._journal = journal
        self._passed: dict[TicketRef, datetime] = {}
        self.asking = ""
        """`anew` of every look that names none."""

    def look(self, *, anew: str = "") -> list[Hint]:
        """Returns what may now be ready. `anew`: also takes what was tried before and has not changed since; it names
        the asking, so that one asking takes a ticket once."""
        anew = anew or self.asking
        hints: list[Hint] = []
        for project in self._projects:
            if not any(rule.rule.on == "schedule" for rule in self._desk.tasks(project).rules):
                continue
            try:
                hints += self._look(project, anew)
            except (Gone, Forbidden, Unavailable) as problem:
                self._journal.say("unscanned", project=project.name, why=str(problem))
        return hints

    def _look(self, project: Project, anew: str) -> list[Hint]:
        hints: list[Hint] = []
        room = self._room(project)
        if room <= 0:
            return hints
        tracker = self._trackers[str(project.tracker)]
        for listed in tracker.claimable(str(project.tracker_project)):
            if not anew and self._passed.get(listed.ref) == listed.updated_at:
                continue
            started = self._take(tracker, listed, anew)
            hints += started
            room -= bool(started)
            if room <= 0:
                break
        return hints

    def _take(self, tracker: Tracker, listed: Ticket, anew: str) -> list[Hint]:
        try:
            ticket = tracker.ticket(listed.ref)
            if epoch.holder(ticket.journal) is not None or tracker.open_among(ticket.blocked_by):
                return []
            event = Event(
                source=tracker.name,
                delivery=f"scan-{ticket.ref.number}-{epoch.stamp(ticket.journal)}",
                subject=ticket.ref,
                actor=ticket.author,
                what=Claimable(f"{epoch.stamp(ticket.journal)} {anew}".rstrip()),
                head_sha=None,
                at=ticket.updated_at,
            )
            decision = decide(event, self._desk)
        except (Gone, Forbidden) as problem:
            self._journal.say("skipped", ticket=str(listed.ref), why=str(problem))
            return []
        if isinstance(decision, Ignored) or not any(isinstance(one, Start) for one in decision.results):
            self._passed[listed.ref] = listed.updated_at
            return []
        return self._carry(decision, event)


def _claims(trackers: Mapping[str, Tracker], name: str | None) -> bool:
    return name is not None and name in trackers and trackers[name].claiming.enabled

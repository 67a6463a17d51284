"""The look through what is claimable, on plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from bot import epoch
from bot.dispatch import Hint
from bot.journal import Journal
from bot.model import Event, TicketRef
from bot.projects import Project
from bot.tasks import Rule
from bot.trackers import Claiming, Entry, Ticket, Tracker
from handlers.decision import Decision
from handlers.scanning import SAME_SECOND, Scan
from tests.handlers.desk import NOW, REPO, Room, actor

DANA = actor("dana")
PROJECT = Project(name="shop", forge="github", repository="acme/shop", tracker="work", tracker_project="demo")


def entry(number: int, text: str, *, by: str = "leadsman[bot]", at: datetime = NOW) -> Entry:
    return Entry(id=str(number), author=actor(by), text=text, private=False, at=at)


FAILED = (
    entry(1, epoch.claim_note("leadsman@here", "2026-03-01T11:59:59Z", "20260301-115959-aaaaaa", "http://here/x")),
    entry(2, epoch.release_note(f"{epoch.FAILED} failed (command)")),
)


TICKET = Ticket(
    ref=TicketRef(REPO, "work", 7), title="Mend", text="", author=DANA, status="New", stage="claimable",
    is_closed=False, category=None, priority=2, assignee=None, created_at=NOW, updated_at=NOW, journal=FAILED,
)  # fmt: skip
CLAIMING = Claiming(enabled=True, claimable="New", claimed="In Progress", after={})


@dataclass
class Site:
    """A tracker of one ticket, whose times are in whole seconds."""

    ticket_: Ticket = TICKET
    name: str = "work"
    kind: str = "redmine"
    claiming: Claiming = CLAIMING
    read: int = 0

    def claimable(self, project: str) -> Iterable[Ticket]:
        assert project == "demo"
        return [replace(self.ticket_, journal=())]

    def ticket(self, ref: TicketRef) -> Ticket:
        assert ref == self.ticket_.ref
        self.read += 1
        return self.ticket_

    def open_among(self, numbers: Iterable[int]) -> tuple[int, ...]:
        return tuple(numbers)

    def says(self, text: str, *, at: datetime) -> None:
        journal = (*self.ticket_.journal, entry(len(self.ticket_.journal) + 1, text, by="dana", at=at))
        self.ticket_ = replace(self.ticket_, journal=journal, updated_at=at.replace(microsecond=0))


@dataclass
class Looking:
    """A scan of that site, and what it started."""

    journal: Path
    room: Room = field(default_factory=Room)
    site: Site = field(default_factory=Site)
    started: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.room.rules = [Rule.model_validate({"on": "schedule", "task": "fix"})]
        self.room.tickets[self.site.ticket_.ref] = self.site.ticket_
        self.scan = Scan(
            self.room,
            {"work": cast("Tracker", self.site)},
            [PROJECT],
            room=lambda _project: 1,
            carry=self._carry,
            journal=Journal(self.journal, NOW.timestamp),
        )

    def _carry(self, _decision: Decision, event: Event) -> list[Hint]:
        self.started.append(event)
        return [Hint("waiting")]

    def after(self, wait: timedelta) -> int:
        """Looks so long after the start; returns how many runs it started until then."""
        self.room.time = NOW + wait
        self.scan.look()
        return len(self.started)


@pytest.fixture
def looking(tmp_path: Path) -> Looking:
    return Looking(tmp_path / "events.jsonl")


def test_a_note_of_the_same_second_as_the_failure_has_the_ticket_tried_again(looking: Looking) -> None:
    assert looking.after(timedelta(milliseconds=300)) == 0
    looking.site.says("Try again.", at=NOW + timedelta(milliseconds=600))
    assert looking.site.ticket_.updated_at == NOW, "the tracker shows nothing new in its list"
    assert looking.after(SAME_SECOND) == 1


def test_a_ticket_that_nobody_touched_is_not_read_again_once_no_change_can_hide(looking: Looking) -> None:
    for wait in (timedelta(0), SAME_SECOND, timedelta(minutes=1), timedelta(hours=1)):
        assert looking.after(wait) == 0
    assert looking.site.read == 2
    looking.site.says("Try again.", at=NOW + timedelta(hours=2))
    assert looking.after(timedelta(hours=3)) == 1


def test_the_clock_of_the_tracker_does_not_matter(looking: Looking) -> None:
    looking.site.ticket_ = replace(looking.site.ticket_, updated_at=datetime(2031, 1, 1, tzinfo=UTC))
    looking.after(timedelta(0))
    looking.after(SAME_SECOND)
    assert (looking.after(timedelta(minutes=1)), looking.site.read) == (0, 2)

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
from bot.errors import Unavailable
from bot.journal import Journal
from bot.model import AnyTicket, Event, Held, TicketRef
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


RUN = "20260301-115959-aaaaaa"
FAILED = (
    entry(1, epoch.claim_note("leadsman@here", "2026-03-01T11:59:59Z", RUN, "http://here/x")),
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
    unreadable: int = 0
    """Tickets that come before it, and can't be read."""

    def claimable(self, project: str) -> Iterable[Ticket]:
        assert project == "demo"
        before = [TicketRef(REPO, "work", 100 + n) for n in range(self.unreadable)]
        return [replace(self.ticket_, ref=ref, journal=()) for ref in (*before, self.ticket_.ref)]

    def ticket(self, ref: TicketRef) -> Ticket:
        self.read += 1
        if ref != self.ticket_.ref:
            raise Unavailable("the site is away")
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
    dead: bool = False
    """Whether nobody works what stands there as claimed."""

    def __post_init__(self) -> None:
        self.room.rules = [Rule.model_validate({"on": "schedule", "task": "fix"})]
        self.room.tickets[self.site.ticket_.ref] = self.site.ticket_
        self.scan = Scan(
            self.room,
            {"work": cast("Tracker", self.site)},
            [PROJECT],
            room=lambda _project: 1,
            carry=self._carry,
            clears=self._clears,
            journal=Journal(self.journal, NOW.timestamp),
        )

    def _clears(self, ref: AnyTicket, held: Held) -> bool:
        assert (self.site.ticket_.ref, "leadsman@here", RUN) == (ref, held.by, held.run_id)
        if self.dead:
            self.site.says(epoch.release_note("swept: nobody works it"), at=NOW)
        return self.dead

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


@pytest.mark.parametrize(("dead", "started"), [(False, 0), (True, 1)])
def test_a_dead_claim_on_a_claimable_ticket_is_given_back_and_the_ticket_is_taken(
    looking: Looking, dead: bool, started: int
) -> None:
    looking.site.ticket_ = replace(TICKET, journal=FAILED[:1])
    looking.dead = dead
    assert started == looking.after(timedelta(0))


def test_a_ticket_that_can_not_be_read_keeps_back_no_other_and_is_told(looking: Looking) -> None:
    looking.site.ticket_ = replace(TICKET, journal=())
    looking.site.unreadable = 2
    assert 1 == looking.after(timedelta(0))
    assert ["work:100: the site is away", "work:101: the site is away"] == looking.scan.missed
    looking.site.unreadable, looking.site.read = 9, 0
    assert 1 == looking.after(timedelta(hours=1))
    assert 3 == looking.site.read, "nothing answers: that is not tried on every ticket"
    assert "shop: the site is away" == looking.scan.missed[-1]

"""What stands on tickets that nobody works any more, on plain values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from bot import epoch
from bot.claimbook import ClaimBook
from bot.claims import Claims
from bot.claimsweep import YOUNG, ClaimSweep
from bot.errors import Forbidden, Unavailable
from bot.journal import Journal
from bot.model import Actor, Held, Repo, TicketRef
from bot.store import StoreSettings
from bot.store.engine import Store, open_store
from bot.trackers import Claiming, Entry, Stage, Ticket, Tracker

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
LIMIT = 1000
RUN = "20260105-090000-aaaaaa"
BOT, DANA = Actor("bot-two", "2"), Actor("dana", "3")
REPO = Repo("github", "acme/shop")
CLAIMING = Claiming(enabled=True, claimable="New", claimed="In Progress", after={}, limit=LIMIT)


def entry(number: int, text: str, *, by: Actor = BOT, at: datetime = AT) -> Entry:
    return Entry(id=str(number), author=by, text=text, private=False, at=at)


def ticket(number: int, *notes: str, status: str = "In Progress", stage: Stage = "claimed") -> Ticket:
    return Ticket(
        ref=TicketRef(REPO, "work", number), title="", text="", author=DANA, status=status, stage=stage,
        is_closed=False, category=None, priority=2, assignee=None, created_at=AT, updated_at=AT,
        journal=tuple(entry(n, note) for n, note in enumerate(notes, 1)),
    )  # fmt: skip


CLAIM = epoch.claim_note("leadsman@elsewhere", "2026-01-05T09:00:00Z", RUN, "http://elsewhere/x")


@dataclass
class Site:
    """A tracker with these tickets. `refuses`: numbers of which it takes no status; `away`: which do not answer."""

    tickets: dict[int, Ticket]
    refuses: tuple[int, ...] = ()
    away: tuple[int, ...] = ()
    claiming: Claiming = CLAIMING
    read: list[int] = field(default_factory=list)

    def claimed(self, project: str) -> list[Ticket]:
        assert project == "demo"
        return [replace(one, journal=()) for one in self.tickets.values() if one.stage == "claimed"]

    def ticket(self, ref: TicketRef) -> Ticket:
        self.read.append(ref.number)
        if ref.number in self.away:
            raise Unavailable("the site is away")
        return self.tickets[ref.number]

    def write(self, ref: TicketRef, note: str, *, to: str | None = None, of: Actor | None = None) -> Ticket:
        assert of == BOT
        if to is not None and ref.number in self.refuses:
            raise Forbidden("Redmine refused ticket 1: Resolution cannot be blank")
        was = self.tickets[ref.number]
        journal = (*was.journal, entry(len(was.journal) + 1, note))
        self.tickets[ref.number] = replace(was, journal=journal, **({} if to is None else {"status": "New"}))
        return self.tickets[ref.number]

    def seen(self, number: int) -> tuple[str, list[str]]:
        """The status, and the notes behind the first."""
        return self.tickets[number].status, [one.text for one in self.tickets[number].journal[1:]]


@dataclass
class Refs:
    """The refs of claims, by ticket: the run that has it."""

    runs: dict[int, str] = field(default_factory=dict)
    refused: int = 0
    evicting: Callable[[], None] = lambda: None

    def evict(self, ref: TicketRef, run_id: str) -> bool:
        self.evicting()
        if ref.number == self.refused:
            raise Forbidden("no")
        if self.runs.get(ref.number, run_id) != run_id:
            return False
        self.runs.pop(ref.number, None)
        return True

    def clear(self, ref: TicketRef, run_id: str) -> bool:
        return self.runs.pop(ref.number, None) == run_id


@dataclass
class Harbourmaster:
    folder: Path
    store: Store
    now: datetime = AT + timedelta(seconds=2 * LIMIT + 1)
    refs: Refs = field(default_factory=Refs)

    def over(self, site: Site) -> ClaimSweep:
        book = ClaimBook(self.store, Journal(self.folder / "events.jsonl", self._clock), self._clock)
        trackers = {"work": cast("Tracker", site)}
        claims = cast("Claims", self.refs)
        return ClaimSweep(trackers, {"work": ("demo",)}, claims, self.store, book, limit=LIMIT, clock=self._clock)

    def _clock(self) -> float:
        return self.now.timestamp()

    def said(self) -> list[tuple[str, str]]:
        lines = map(json.loads, (self.folder / "events.jsonl").read_text().splitlines())
        return [(line["event"], line["key"]) for line in lines]


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Harbourmaster]:
    with closing(open_store(StoreSettings(), tmp_path)) as store:
        yield Harbourmaster(tmp_path, store)


def released(why: str = "") -> str:
    swept = f"swept: leadsman@elsewhere claimed it {2 * LIMIT + 1} s ago for run {RUN}, and no report followed"
    return epoch.release_note(f"{swept}{why}")


def test_what_is_in_the_way_of_one_ticket_keeps_back_no_other(master: Harbourmaster) -> None:
    site = Site({n: ticket(n, CLAIM) for n in (1, 2, 3, 4)}, refuses=(1,), away=(2,))
    master.refs.refused = 3
    master.over(site).sweep()
    assert ("In Progress", [released(". The status stays: Redmine refused ticket 1: Resolution cannot be blank")]) == (
        site.seen(1)
    )
    assert ("New", [released()]) == site.seen(4)
    assert [("sweep", "work:1"), ("unswept", "work:2"), ("unswept", "work:3"), ("sweep", "work:4")] == master.said()


def test_a_tracker_that_is_away_is_not_asked_for_every_ticket(master: Harbourmaster) -> None:
    site = Site({n: ticket(n, CLAIM) for n in range(1, 9)}, away=tuple(range(1, 9)))
    master.over(site).sweep()
    assert [1, 2, 3] == site.read


def test_a_report_that_came_before_the_ref_was_taken_away_ends_the_claim(master: Harbourmaster) -> None:
    site = Site({1: ticket(1, CLAIM)})
    report = epoch.REPORT + f" run {RUN} of fix: published"
    done = replace(ticket(1, CLAIM, report), status="Resolved", stage="other")
    master.refs.evicting = lambda: site.tickets.update({1: done})
    master.over(site).sweep()
    assert ("Resolved", [report]) == site.seen(1)


@pytest.mark.parametrize(("status", "stage"), [("New", "claimable"), ("Feedback", "other")])
def test_a_dead_claim_on_a_ticket_that_a_person_moved_keeps_nobody_out(
    master: Harbourmaster, status: str, stage: Stage
) -> None:
    site = Site({1: ticket(1, CLAIM, status=status, stage=stage)})
    sweep, held = master.over(site), Held("leadsman@elsewhere", "2026-01-05T09:00:00Z", RUN, "work:1")
    sweep.sweep()
    assert [] == site.read, "no sweep finds it"
    assert sweep.clears(site.tickets[1].ref, held)
    assert (status, [released()]) == site.seen(1)
    assert not sweep.clears(site.tickets[1].ref, held), "nothing is in the way any more"


def test_what_is_worked_or_young_is_not_cleared_and_costs_no_request(master: Harbourmaster) -> None:
    site = Site({1: ticket(1, CLAIM, status="New", stage="claimable")})
    sweep, ref = master.over(site), site.tickets[1].ref
    young = master.now - timedelta(seconds=YOUNG - 1)
    assert not sweep.clears(ref, Held("leadsman@elsewhere", young.isoformat(), RUN, ""))
    assert [] == site.read
    master.now -= timedelta(seconds=1)
    assert not sweep.clears(ref, Held("leadsman@elsewhere", "2026-01-05T09:00:00Z", RUN, "")), "exactly twice the limit"
    assert ("New", []) == site.seen(1)


@pytest.mark.parametrize(("limit", "free"), [(LIMIT, True), (0, False)], ids=["a limit", "no sweep"])
def test_a_claim_that_is_a_ref_alone_keeps_nobody_out(master: Harbourmaster, limit: int, free: bool) -> None:
    site = Site({1: ticket(1, status="New", stage="claimable")})
    site.claiming = replace(site.claiming, limit=limit)
    master.refs.runs[1] = RUN
    held = Held("leadsman@elsewhere", "2026-01-05T09:00:00Z", RUN, "work:1")
    assert free is master.over(site).clears(site.tickets[1].ref, held)
    assert ({} if free else {1: RUN}) == master.refs.runs

"""What needs a clock that stands still, and parts without a server: the moment at which a claim becomes stale, and
claims whose outcome can't be seen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.config import load
from bot.errors import Unavailable
from bot.model import (
    Actor,
    Claim,
    Command,
    Commented,
    Event,
    Failed,
    Held,
    Intent,
    Lease,
    Limit,
    Opened,
    Retried,
    RunId,
    Sha,
    TicketRef,
)
from bot.store import hosts, runs
from bot.store.engine import open_store
from bot.store.hosts import HostRow
from bot.tasks import Task
from bot.trackers.redmine.client import Redmine
from bot.wiring.bot import Bot
from bot.wiring.outside import World
from tests.redmine.site import client
from tests.redmine.test_scan import claimed
from tests.redmine.town import TicketTown

pytestmark = pytest.mark.needs("redmine")

AT = datetime(2026, 1, 2, tzinfo=UTC)
RUN, OTHER = RunId("20260102-000000-aaaaaa"), RunId("20260102-000000-bbbbbb")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(town: TicketTown, clock: Clock) -> Iterator[Callable[[], Bot]]:
    """A bot's parts, without its threads."""
    town.shop()
    stores = []

    def bot() -> Bot:
        path = town.folder / "leadsman.toml"
        path.write_text(town.config)
        environ = {"PATH": os.environ["PATH"], "BOT_TOKEN": town.bot.token, "HOOK_SECRET": "s", **town.variables}
        for name in ("runs", "worktrees", "checkouts", "mirrors"):
            (town.home / name).mkdir(exist_ok=True)
        stores.append(open_store(load(path, environ, home=town.home).store, town.home))
        return Bot(load(path, environ, home=town.home), World(home=town.home, environ=environ, clock=clock), stores[-1])

    yield bot
    for store in stores:
        store.close()


def intent(ref: TicketRef, run: RunId = RUN) -> Intent:
    event = Event(
        source="work", delivery="x", subject=ref, actor=Actor("dana", "6"), what=Opened("x"), head_sha=None, at=AT
    )
    return Intent(
        run_id=run, event=event, ordinal=0, reason=Command("/run fix"), project="acme-shop",
        task=Task(name="fix", run=("true",)), args=(), head=Sha("a" * 40), head_why="", base_ref="main",
        trusted_from="leadsman.toml", limit=Limit(50, 1, ""), answer="a", at=AT,
    )  # fmt: skip


def claim(bot: Bot, ref: TicketRef, run: RunId = RUN) -> Claim | Held:
    return bot.ticketing.claims.take(intent(ref, run), Lease("wt-1", "x"))


def test_a_claim_of_exactly_twice_the_limit_is_not_stale_and_one_second_later_it_is(
    town: TicketTown, clock: Clock, make: Callable[[], Bot]
) -> None:
    town.config = town.config.replace("claim_enabled", "claim_limit_seconds = 100\nclaim_enabled")
    bot = make()
    number = town.site.ticket()
    claimed(town, number, OTHER)
    (entry,) = client(town.site).ticket(town.site.ref(number)).journal
    clock.now = entry.at.timestamp() + 200
    bot.ticketing.sweep.sweep()
    assert len(town.site.notes(number)) == 1
    clock.now += 1
    bot.ticketing.sweep.sweep()
    assert town.site.notes(number)[1].startswith("claim released: swept")
    assert town.site.status(number) == "New"


def test_a_claims_own_limit_counts_where_the_table_names_none(
    town: TicketTown, clock: Clock, make: Callable[[], Bot]
) -> None:
    bot = make()
    ref = town.site.ref(town.site.ticket())
    held = claim(bot, ref, OTHER)  # its run may take 50 seconds, as its ref says
    assert isinstance(held, Claim)
    claimed(town, ref.number, OTHER)
    (entry,) = client(town.site).ticket(ref).journal
    clock.now = entry.at.timestamp() + 100
    bot.ticketing.sweep.sweep()
    assert bot.ticketing.claims.ours(held)
    clock.now += 1
    bot.ticketing.sweep.sweep()
    assert not bot.ticketing.claims.ours(held)
    assert town.site.status(ref.number) == "New"


def test_a_claim_whose_bot_went_before_its_note_keeps_nobody_out(
    town: TicketTown, clock: Clock, make: Callable[[], Bot]
) -> None:
    bot = make()
    ref = town.site.ref(town.site.ticket())
    assert isinstance(claim(bot, ref, OTHER), Claim)
    clock.now += 100  # twice what its run may take, as its ref says
    held = claim(bot, ref)
    assert isinstance(held, Held)
    assert not bot.ticketing.sweep.clears(ref, held)
    clock.now += 1
    assert bot.ticketing.sweep.clears(ref, held)
    assert isinstance(claim(bot, ref), Claim)
    assert town.site.notes(ref.number) == []


def test_a_claim_of_an_open_run_is_swept_once_its_host_is_gone_and_the_claim_is_stale(
    town: TicketTown, clock: Clock, make: Callable[[], Bot]
) -> None:
    town.config = town.config.replace("claim_enabled", "claim_limit_seconds = 100\nclaim_enabled")
    bot = make()
    ref = town.site.ref(town.site.ticket())
    with bot.store.write() as connection:
        runs.restore(connection, intent(ref, OTHER), host="elsewhere", phase="start")
    claimed(town, ref.number, OTHER)
    (entry,) = client(town.site).ticket(ref).journal
    clock.now = entry.at.timestamp() + 201
    with bot.store.write() as connection:
        hosts.join(connection, HostRow("elsewhere", 2, None, 2.0, clock.now))
    bot.ticketing.sweep.sweep()
    assert len(town.site.notes(ref.number)) == 1  # it serves, and knows what becomes of its run
    clock.now += hosts.GONE_AFTER + 1
    bot.ticketing.sweep.sweep()
    assert town.site.notes(ref.number)[1].startswith("claim released: swept")


@pytest.mark.parametrize("asked", ["in a note", "on the command line"])
def test_a_report_in_the_journal_ends_an_epoch_and_history_stands_against_nobody(
    town: TicketTown, make: Callable[[], Bot], asked: str
) -> None:
    bot = make()
    number = town.site.ticket()
    claimed(town, number, OTHER)
    town.site.change(number, who="bot2", notes=f"# REPORT - run {OTHER} of fix: published")
    town.site.change(number, status="New", notes="Not good enough.")
    ref = town.site.ref(number)
    taken = claim(bot, ref)
    assert isinstance(taken, Claim)
    last = client(town.site).ticket(ref).journal[-1]
    what = Commented(last.id, Actor("dana", "6"), "/run fix", None) if asked == "in a note" else Retried(OTHER)
    at = last.at + timedelta(seconds=1)
    asked_later = replace(taken, intent=replace(taken.intent, event=replace(taken.intent.event, what=what, at=at)))
    assert bot.ticketing.tickets.claim(asked_later) is None
    assert town.site.status(number) == "In Progress"


def test_the_first_claimant_of_the_journal_wins_whoever_has_the_ref(town: TicketTown, make: Callable[[], Bot]) -> None:
    bot = make()
    number = town.site.ticket()
    claimed(town, number, OTHER)
    taken = claim(bot, town.site.ref(number))
    assert isinstance(taken, Claim)
    lost = bot.ticketing.tickets.claim(taken)
    assert isinstance(lost, Held)
    assert (lost.by, lost.run_id) == ("leadsman@elsewhere", OTHER)
    bot.ticketing.tickets.concede(taken.intent, lost)
    bot.ticketing.tickets.concede(taken.intent, lost)
    notes = town.site.notes(number)
    assert len(notes) == 2
    assert notes[1].startswith(f"conceded to leadsman@elsewhere run {OTHER}: leadsman@")
    first, *_ = client(town.site).ticket(town.site.ref(number)).journal
    note = f"{town.site.url}/issues/{number}#change-{first.id}"
    assert f"since 2026-01-01T00:00:00Z: {note}. Wait for its report, or write /cancel {OTHER} or /release." in notes[1]
    assert town.site.status(number) == "In Progress"


def test_what_another_bot_took_up_for_the_same_asking_is_not_done_again(
    town: TicketTown, make: Callable[[], Bot]
) -> None:
    bot = make()
    number = town.site.ticket()
    claimed(town, number, OTHER)
    town.site.change(number, who="bot2", status="New", notes="claim released: the run failed (command)")
    taken = claim(bot, town.site.ref(number))
    assert isinstance(taken, Claim)
    assert isinstance(bot.ticketing.tickets.claim(taken), Held)
    assert town.site.status(number) == "New"


def test_a_claim_that_the_workflow_forbids_is_told_and_writes_nothing(
    town: TicketTown, make: Callable[[], Bot]
) -> None:
    town.config = town.config.replace(
        "claim_enabled", 'claim_status = "Closed"\nstatus_map = { Closed = "Resolved" }\nclaim_enabled'
    )
    bot = make()
    taken = claim(bot, town.site.ref(town.site.ticket()))
    assert isinstance(taken, Claim)
    failed = bot.ticketing.tickets.claim(taken)
    assert isinstance(failed, Failed)
    assert "from New to Closed" in failed.why
    ref = taken.intent.event.subject
    assert isinstance(ref, TicketRef)
    assert town.site.notes(ref.number) == []


def test_a_claim_that_can_t_be_read_back_is_unknown_and_made_again_without_a_second_note(
    town: TicketTown, make: Callable[[], Bot]
) -> None:
    bot = make()
    number = town.site.ticket()
    taken = claim(bot, town.site.ref(number))
    assert isinstance(taken, Claim)
    real = bot.outside.trackers["work"]
    assert isinstance(real, Redmine)

    class Blind(Redmine):
        """Nothing can be read once it has written."""

        wrote = False

        def write(self, *args: object, **fields: object):  # type: ignore[no-untyped-def, override]
            self.wrote = True
            return super().write(*args, **fields)  # type: ignore[arg-type]

        def ticket(self, ref: TicketRef):  # type: ignore[no-untyped-def, override]
            if self.wrote:
                raise Unavailable("the site is away")
            return super().ticket(ref)

    bot.outside.trackers["work"] = Blind("work", real._settings, real._projects, real._door, real._repo_map)
    with pytest.raises(Unavailable):
        bot.ticketing.tickets.claim(taken)
    bot.outside.trackers["work"] = real
    assert bot.ticketing.tickets.claim(taken) is None
    assert len(town.site.notes(number)) == 1
    assert town.site.status(number) == "In Progress"


def test_requests_of_a_claim_are_three(town: TicketTown, make: Callable[[], Bot]) -> None:
    bot = make()
    real = bot.outside.trackers["work"]
    assert isinstance(real, Redmine)
    first, second = (claim(bot, town.site.ref(town.site.ticket())), claim(bot, town.site.ref(town.site.ticket())))
    assert isinstance(first, Claim)
    assert isinstance(second, Claim)
    assert (
        bot.ticketing.tickets.claim(first) is None
    )  # from here on it knows who is who, and the ids of statuses and fields
    heard: list[str] = []
    real._door._engine.session.hooks["response"] = [lambda answer, **_: heard.append(answer.request.method)]
    assert bot.ticketing.tickets.claim(second) is None
    assert heard == ["GET", "PUT", "GET"]

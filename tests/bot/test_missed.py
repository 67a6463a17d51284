"""What GitHub is asked beside a run's calls: what happened, what did not arrive; and how often, and what it costs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.dispatch import Hint
from bot.errors import Unavailable
from bot.forges.asking import Sent
from bot.forges.github.client import Github
from bot.forges.github.hooks import EVENTS
from bot.journal import Journal
from bot.missed import EVERY, MOST, Missed, missing
from bot.model import Closed, Commented, Event, IssueRef, Labeled, Opened, PullRef, Pushed, Repo, Sha, Updated
from bot.polling import OVERLAP, Polling
from bot.projects import Project
from bot.store import StoreSettings
from bot.store.engine import Store, open_store
from tests.bot.test_github import client
from tests.world import Pull, Repository, World
from tests.world.state import Hook
from webhooks.sources.github import WANTED

SHOP = Repo("github", "acme/shop")
PROJECT = Project(name="shop", forge="github", repository="acme/shop")
URL = "https://bot.example"


@dataclass
class Clock:
    """The world's and the bot's time."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now

    def on(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime.now(UTC).replace(microsecond=0))


@pytest.fixture
def world(tmp_path: Path, clock: Clock) -> Iterator[World]:
    with World(tmp_path / "world", clock=clock) as world:
        yield world


@pytest.fixture
def shop(world: World) -> Repository:
    return world.repo("acme/shop").allow("leadsman-bot", "admin").allow("alice", "write")


@pytest.fixture
def pull(shop: Repository) -> Pull:
    return shop.pull(head="topic", files={"b.txt": "two\n"}, author="alice", title="Add b")


@pytest.fixture
def forge(world: World, shop: Repository, tmp_path: Path) -> Iterator[Github]:
    forge = client(world, tmp_path)
    yield forge
    forge.close()


def nothing(_: PullRef) -> Sha | None:
    return None


# ── what happened ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_not_changed_is_not_counted_by_github(forge: Github, world: World, pull: Pull, clock: Clock) -> None:
    pull.comment("alice", "hello")
    since = clock.now - timedelta(minutes=1)
    first = forge.news.since(SHOP, since, nothing)
    begun = len(world.requests)
    assert first == forge.news.since(SHOP, since, nothing)
    assert [304] * 4 == [request.status for request in world.requests[begun:]]
    pull.comment("alice", "again")
    assert len(first.events) + 1 == len(forge.news.since(SHOP, since, nothing).events)


def test_all_of_it_is_read_page_by_page_and_nothing_older(
    forge: Github, world: World, pull: Pull, clock: Clock
) -> None:
    pull.comment("alice", "too old")
    clock.on(minutes=10)
    since = clock.now
    for n in range(130):
        pull.comment("alice", f"number {n}")
    for _ in range(2):  # the second time all but the second page is as before
        told = [
            one.what.text for one in forge.news.since(SHOP, since, nothing).events if isinstance(one.what, Commented)
        ]
        assert {f"number {n}" for n in range(130)} == set(told)
        assert 130 == len(told)


def test_everything_has_its_name_its_time_and_who_did_it(
    forge: Github, world: World, shop: Repository, pull: Pull, clock: Clock
) -> None:
    since, opened_at = clock.now, clock.now
    clock.on(seconds=5)
    issue = shop.issue("Broken", author="bob")
    clock.on(seconds=5)
    said = issue.comment("bob", "/run fix").comment
    assert said is not None
    clock.on(seconds=5)
    issue.label("bot", by="alice")
    issue.unlabel("bot", by="alice")
    clock.on(seconds=5)
    pull.merge(by="alice")
    look = forge.news.since(SHOP, since, nothing)
    on_issue, on_pull, ended = IssueRef(SHOP, issue.number), PullRef(SHOP, pull.number), clock.now
    assert [
        (on_issue, "bob", Opened("Broken"), opened_at + timedelta(seconds=5)),
        (on_issue, "bob", "/run fix", opened_at + timedelta(seconds=10)),
        (on_issue, "alice", Labeled("bot"), opened_at + timedelta(seconds=15)),
        (on_issue, "alice", Updated("event-8", "bot", "", assignee=False), opened_at + timedelta(seconds=15)),
        (on_pull, "alice", Opened("Add b"), ended),
        (on_pull, "alice", Closed(merged=True), ended),
    ] == [
        (one.subject, one.actor.login, one.what.text if isinstance(one.what, Commented) else one.what, one.at)
        for one in look.events
    ]
    assert clock.now == look.at
    assert len(look.events) == len({one.delivery for one in look.events})
    assert f"poll-acme/shop-comment-{said.id}-{said.created_at:%Y%m%dT%H%M%S}" == look.events[1].delivery


def test_an_edited_comment_has_nothing_that_is_new(forge: Github, world: World, pull: Pull, clock: Clock) -> None:
    said = pull.comment("alice", "/run fix")
    since = clock.now
    clock.on(seconds=1)
    pull.edit(said, "/run all", by="mallory")
    (edited,) = [one for one in forge.news.since(SHOP, since, nothing).events if isinstance(one.what, Commented)]
    assert isinstance(edited.what, Commented)
    assert ("/run all", "/run all") == (edited.what.text, edited.what.before)


@pytest.mark.parametrize("fork", [False, True])
def test_a_push_is_told_with_who_pushed_and_when(
    forge: Github, world: World, shop: Repository, clock: Clock, fork: bool
) -> None:
    pull = shop.pull(head="topic", files={"b.txt": "two\n"}, author="alice", fork=fork)
    since, before = clock.now, Sha(pull.head_sha)
    clock.on(seconds=30)
    pull.push({"b.txt": "three\n"}, by="bob")
    pushed_at = clock.now
    clock.on(seconds=30)
    pull.comment("alice", "what comes after it changes the pull request, too")
    look = forge.news.since(SHOP, since, lambda _: before)
    (pushed,) = [one for one in look.events if isinstance(one.what, Pushed)]
    assert (Pushed(before, Sha(pull.head_sha)), "bob", pushed_at) == (pushed.what, pushed.actor.login, pushed.at)
    assert [(Sha(pull.head_sha), clock.now)] == [(head.sha, head.at) for head in look.heads]
    assert not any(isinstance(one.what, Pushed) for one in forge.news.since(SHOP, since, nothing).events)


def test_a_push_to_a_fork_that_is_gone_may_have_been_until_now(
    forge: Github, world: World, shop: Repository, clock: Clock
) -> None:
    pull = shop.pull(head="topic", files={"b.txt": "two\n"}, author="alice", fork=True)
    since, before = clock.now, Sha(pull.head_sha)
    pull.push({"b.txt": "three\n"})
    world.repositories["alice/shop"].delete()
    clock.on(seconds=30)
    pull.comment("bob", "hello")
    (pushed,) = [one for one in forge.news.since(SHOP, since, lambda _: before).events if isinstance(one.what, Pushed)]
    assert clock.now == pushed.at


def test_a_repository_has_the_name_that_deliveries_have(forge: Github, world: World, pull: Pull, clock: Clock) -> None:
    """What was obeyed is known by it: a comment that is delivered, too, would be obeyed twice."""
    pull.comment("alice", "hello")
    look = forge.news.since(Repo("github", "Acme/Shop"), clock.now, nothing)
    assert {SHOP} == {one.subject.repo for one in look.events} | {head.pull.repo for head in look.heads}


def test_a_webhook_has_to_bring_what_the_door_listens_to() -> None:
    assert set(WANTED) == set(EVENTS)


# ── looks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Hinted:
    hints: list[Hint]

    def put(self, hint: Hint, *, after: float = 0.0) -> None:
        assert after == 0.0
        self.hints.append(hint)


@dataclass
class Watch:
    """The parts that ask, over a store, and what they said."""

    missed: Missed
    polling: Polling
    taken: list[Event]
    hints: list[Hint]
    journal: Path
    store: Store

    def said(self, event: str) -> list[dict[str, Any]]:
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [line for line in map(json.loads, lines) if line["event"] == event]


@pytest.fixture
def watch(forge: Github, clock: Clock, tmp_path: Path) -> Iterator[Watch]:
    store, path = open_store(StoreSettings(), tmp_path), tmp_path / "events.jsonl"
    yield watching(forge, clock, store, path)
    store.close()


def watching(forge: Github, clock: Clock, store: Store, path: Path) -> Watch:
    def seconds() -> float:
        return clock.now.timestamp()

    journal = Journal(path, seconds)
    parts: dict[str, Any] = {"store": store, "journal": journal, "clock": seconds}
    taken: list[Event] = []

    def take(events: Iterable[Event]) -> int:
        known = {one.delivery for one in taken}
        new = [one for one in events if one.delivery not in known]
        taken.extend(new)
        return len(new)

    hinted = Hinted([])
    missed = Missed([PROJECT], {"github": forge}, URL, hints=hinted, **parts)
    polling = Polling([PROJECT], {"github": forge}, missed.is_bare, take, **parts)
    return Watch(missed, polling, taken, hinted.hints, path, store)


def hooked(shop: Repository) -> Hook:
    return shop.hook(f"{URL}/webhooks/github/", secret="hush")


def failing(world: World, shop: Repository, hook: Hook) -> str:
    """The id of a delivery that did not arrive, nor will: its address is no one's."""
    told = shop.issue("Broken", author="bob").comment("bob", "hello")
    hook.url, url = "http://127.0.0.1:1/", hook.url
    world.send(told)
    hook.url = url
    return told.id


def test_it_is_looked_at_what_has_no_webhook_until_it_has_one(
    watch: Watch, world: World, shop: Repository, pull: Pull, clock: Clock
) -> None:
    assert EVERY == watch.missed.look()
    assert [Hint("look", "shop")] == watch.hints
    assert 60.0 == watch.polling.look("shop")
    hooked(shop)
    watch.missed.look()
    assert watch.polling.look("shop") is None
    clock.on(minutes=30)
    watch.missed.look()
    clock.on(minutes=5)
    pull.comment("alice", "nobody tells of it")
    shop.hooks.clear()
    clock.on(minutes=5)
    watch.missed.look()
    assert [Hint("look", "shop")] * 2 == watch.hints
    watch.polling.look("shop")
    assert "nobody tells of it" in [one.what.text for one in watch.taken if isinstance(one.what, Commented)]


@pytest.mark.parametrize(
    "off", [{"active": False}, {"content_type": "form"}, {"events": ["push"]}, {"url": "https://old.example/"}]
)
def test_a_webhook_that_brings_not_all_of_it_is_none(watch: Watch, shop: Repository, off: dict[str, Any]) -> None:
    hook = hooked(shop)
    for name, value in off.items():
        setattr(hook, name, value)
    watch.missed.look()
    assert watch.missed.is_bare("shop")


def test_what_could_not_be_kept_is_found_again(forge: Github, watch: Watch, pull: Pull, clock: Clock) -> None:
    watch.missed.look()
    watch.polling.look("shop")
    clock.on(minutes=10)
    pull.comment("alice", "/run fix")
    full = True

    def take(events: Iterable[Event]) -> int:
        if full:
            raise Unavailable("The inbox takes nothing more now.")
        watch.taken.extend(events)
        return len(watch.taken)

    watch.polling._take = take
    watch.taken.clear()
    assert 60.0 == watch.polling.look("shop")
    full = False
    clock.on(minutes=10)
    watch.polling.look("shop")
    assert ["/run fix"] == [one.what.text for one in watch.taken if isinstance(one.what, Commented)]


def test_the_first_look_begins_with_now_and_the_next_ones_look_back_a_little(
    watch: Watch, world: World, pull: Pull, clock: Clock
) -> None:
    pull.comment("alice", "history")
    clock.on(seconds=OVERLAP.total_seconds() + 1)
    watch.missed.look()
    watch.polling.look("shop")
    assert [] == watch.taken
    pull.push({"b.txt": "three\n"})
    watch.polling.look("shop")
    assert [Pushed] == [type(one.what) for one in watch.taken]
    clock.on(minutes=1)
    watch.polling.look("shop")
    assert 1 == len(watch.taken)


def test_the_bots_own_comments_are_no_news(watch: Watch, pull: Pull) -> None:
    watch.missed.look()
    pull.comment("leadsman-bot", "/run fix")
    watch.polling.look("shop")
    assert not any(isinstance(one.what, Commented) for one in watch.taken)


def test_a_github_that_wants_to_be_left_alone_is(watch: Watch, world: World, clock: Clock) -> None:
    watch.missed.look()
    world.fail_next("GET /repos/acme/shop/issues/comments", 429, headers={"Retry-After": "900"})
    watch.polling.look("shop")
    begun = len(world.requests)
    again = watch.polling.look("shop")
    assert again is not None
    assert 890 <= again <= 901
    assert begun == len(world.requests)


def test_a_repository_that_is_not_there_stops_nothing_and_is_said_once(watch: Watch, shop: Repository) -> None:
    shop.delete()
    watch.missed.look()
    watch.missed.look()
    assert [600.0, 600.0] == [watch.polling.look("shop") for _ in range(2)]
    assert (1, 1) == (len(watch.said("webhooks_unknown")), len(watch.said("unpolled")))


# ── what did not arrive ──────────────────────────────────────────────────────────────────────────────────────────────

AT = datetime(2026, 1, 2, tzinfo=UTC)


def sent(guid: str, minutes: int, code: int, *, again: bool = False) -> Sent:
    at = AT + timedelta(minutes=minutes)
    return Sent(id=f"{guid}{minutes}", guid=guid, at=at, code=code, again=again, what="push", status=str(code))


def test_what_arrived_in_any_try_is_not_missing() -> None:
    tries = [
        sent("a", 1, 502),
        sent("b", 2, 502),
        sent("a", 9, 200, again=True),
        sent("c", 0, 401),
        sent("b", 3, 502, again=True),
    ]
    assert [("c", 0), ("b", 1)] == [(one.latest.guid, one.again) for one in missing(tries)]


@pytest.mark.parametrize(("again", "minutes"), [(0, 0), (1, 10), (2, 20), (3, 40), (4, 80)])
def test_the_time_between_two_tries_doubles(again: int, minutes: int) -> None:
    (one,) = missing([sent("a", 0, 502), *(sent("a", 0, 502, again=True) for _ in range(again))])
    assert one.is_due(AT + timedelta(minutes=minutes))
    assert not one.is_due(AT + timedelta(minutes=minutes, seconds=-1))


def test_it_is_given_up_after_some_tries_and_that_is_said_once(
    watch: Watch, world: World, shop: Repository, clock: Clock
) -> None:
    hook = hooked(shop)
    lost = failing(world, shop, hook)
    for tries in range(1, MOST + 1):
        clock.on(hours=2)
        watch.missed.look()
        landed(hook, tries + 1)
    for _ in range(3):
        clock.on(hours=2)
        watch.missed.look()
    assert MOST == len(world.asked("POST /repos/*/attempts"))
    assert [(lost, "tried 6 times")] == [(line["delivery"], line["why"]) for line in watch.said("delivery_lost")]
    assert MOST == len(watch.said("sent_again"))


def landed(hook: Hook, count: int) -> None:
    """The world tries in a thread of its own."""
    end = time.monotonic() + 60
    while len(hook.attempts) < count:
        assert time.monotonic() < end
        time.sleep(0.005)


def test_who_may_look_and_not_touch_loses_what_failed_and_says_so(
    watch: Watch, world: World, shop: Repository, clock: Clock
) -> None:
    world.user("leadsman-bot").scopes = ("read:repo_hook",)
    hook = hooked(shop)
    lost = []
    for _ in range(2):
        clock.on(seconds=1)
        lost.append(failing(world, shop, hook))
    assert EVERY == watch.missed.look()
    assert lost[:1] == [line["delivery"] for line in watch.said("delivery_lost")]
    assert EVERY == watch.missed.look()
    assert lost == [line["delivery"] for line in watch.said("delivery_lost")]
    watch.missed.look()
    assert 2 == len(world.asked("POST /repos/*/attempts"))


def test_the_mark_outlives_the_bot(watch: Watch, forge: Github, world: World, shop: Repository, clock: Clock) -> None:
    hook = hooked(shop)
    early = failing(world, shop, hook)
    clock.on(minutes=1)
    failing(world, shop, hook)
    hook.attempts[:] = [replace(attempt, code=202) for attempt in hook.attempts]
    watch.missed.look()
    clock.on(minutes=1)
    late = failing(world, shop, hook)
    hook.attempts[0] = replace(hook.attempts[0], code=502)  # as if nobody had seen that it arrived
    another = watching(forge, clock, watch.store, watch.journal)
    another.missed.look()
    assert [late] == [line["delivery"] for line in watch.said("sent_again")]
    assert early != late


def test_a_forge_that_does_not_answer_is_asked_again_soon(watch: Watch, world: World) -> None:
    world.down()
    assert 60.0 == watch.missed.look()
    assert [] == watch.hints
    world.up()
    assert EVERY == watch.missed.look()
    assert [Hint("look", "shop")] == watch.hints

"""A forge as the tracker of its own issues, before GitHub: what stands there, and what each move changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bot import epoch
from bot.forges.claiming import IssueClaims
from bot.forges.github.client import Github
from bot.model import Held, IssueRef
from bot.trackers import Tracker
from bot.trackers.issues import Issues
from tests.bot.test_github import SHOP, client
from tests.world import Repository, World

NOTE = epoch.claim_note("leadsman@here", "2026-01-05T09:00:00Z", "20260105-090000-aaaaaa", "http://here/")
WORDS = {"claim_enabled": True, "claim_status": "at work", "claimable_status": "bot"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path / "world") as world:
        yield world


@pytest.fixture
def shop(world: World) -> Repository:
    return world.repo("acme/shop").allow("leadsman-bot", "write").allow("alice", "write")


@pytest.fixture
def forge(world: World, shop: Repository, tmp_path: Path) -> Iterator[Github]:
    forge = client(world, tmp_path)
    yield forge
    forge.close()


@pytest.fixture
def said() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def issues(forge: Github, said: list[dict[str, Any]]) -> Callable[..., Tracker]:
    """The tracker, with more words of its table."""

    def make(**more: object) -> Tracker:
        settings = IssueClaims.model_validate({**WORDS, **more})
        return Issues(forge, settings, lambda event, **facts: said.append({"event": event, **facts}))

    return make


def seen(issue: Any) -> tuple[list[str], list[str]]:
    return [label.name for label in issue.labels], [person.login for person in issue.assignees]


@pytest.mark.parametrize(
    ("labels", "is_open", "standing"),
    [
        ((), True, ("open", "open")),
        (("Bot",), True, ("bot", "claimable")),
        (("bot", "At Work"), True, ("at work", "claimed")),
        (("bot",), False, ("closed", "other")),
        (("at work",), False, ("at work", "claimed")),
    ],
)
def test_where_an_issue_stands_is_told_by_its_labels(
    issues: Callable[..., Tracker], shop: Repository, labels: tuple[str, ...], is_open: bool, standing: tuple[str, str]
) -> None:
    issue = shop.issue("Broken", author="alice", labels=labels)
    if not is_open:
        issue.close(by="alice")
    found = issues().ticket(IssueRef(SHOP, issue.number))
    assert (*standing, not is_open) == (found.status, found.stage, found.is_closed)


def test_a_claim_takes_nine_requests_and_three_of_them_write(
    issues: Callable[..., Tracker], forge: Github, shop: Repository, world: World
) -> None:
    issue = shop.issue("Broken", author="alice", labels=("bot",))
    tracker, ref = issues(), IssueRef(SHOP, issue.number)
    forge.me()
    before = len(world.requests)
    assert "claimable" == tracker.ticket(ref).stage
    held = tracker.hold(tracker.write(ref, NOTE, to="claimed"))
    assert "claimed" == held.stage
    assert (["bot", "at work"], ["leadsman-bot"]) == seen(issue)
    asked = [request.method for request in world.requests[before:]]
    assert (9, 3) == (len(asked), asked.count("POST"))
    tracker.hold(held)
    assert (["bot", "at work"], ["leadsman-bot"]) == seen(issue)
    assert 1 == len(issue.comments)


@pytest.mark.parametrize(("move", "labels"), [("claimable", ["bot", "urgent"]), ("done", ["urgent", "to review"])])
def test_the_end_of_a_claim_leaves_what_people_set(
    issues: Callable[..., Tracker], forge: Github, shop: Repository, move: Any, labels: list[str]
) -> None:
    issue = shop.issue("Broken", author="alice", labels=("bot", "urgent", "at work"))
    for who in ("alice", "leadsman-bot"):
        issue.assign(who, by=who)
    tracker = issues(status_map={"at work": "to review"})
    tracker.write(IssueRef(SHOP, issue.number), epoch.release_note("x"), to=move, of=forge.me())
    assert (labels, ["alice"]) == seen(issue)


def test_what_may_not_be_set_is_said_and_the_note_stands(
    issues: Callable[..., Tracker], shop: Repository, world: World, said: list[dict[str, Any]]
) -> None:
    issue = shop.issue("Broken", author="alice")
    for what in ("labels", "assignees"):
        world.fail_next(f"POST /repos/acme/shop/issues/1/{what}", 403, times=None)
    tracker = issues()
    held = tracker.hold(tracker.write(IssueRef(SHOP, 1), NOTE, to="claimed"))
    assert "claimed" == held.stage
    assert ["unshown", "unshown"] == [one["event"] for one in said]
    assert (([], []), 1) == (seen(issue), len(issue.comments))


def test_a_note_mentions_nobody(issues: Callable[..., Tracker], shop: Repository) -> None:
    issue = shop.issue("Broken", author="alice")
    held = Held("@acme/all@there", "then", "s", "")
    issues().write(IssueRef(SHOP, 1), epoch.concede_note("leadsman@here", "r", held, "http://x/"))
    assert issue.comments[0].body.startswith("conceded to @\u200bacme/all@there run s")


def test_what_is_not_offered_is_not_listed(issues: Callable[..., Tracker], shop: Repository) -> None:
    for labels in (("bot",), ("bot", "at work"), ("at work",), ()):
        shop.issue(" ".join(labels), author="alice", labels=labels)
    assert ["bot"] == [one.title for one in issues().claimable("acme/shop")]
    assert ["bot at work", "at work"] == [one.title for one in issues().claimed("acme/shop")]
    assert [] == list(issues(claimable_status=None).claimable("acme/shop"))

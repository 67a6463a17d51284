"""What happens without a command: pushes, ends, and rules that start tasks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bot.errors import Forbidden, Gone, Unavailable, UserError
from bot.model import BranchRef, Closed, Happening, Ignored, Labeled, Opened, Pushed, RuleFired, Sha, Subject
from bot.tasks import Rule
from handlers.decision import CancelAll, Decision, MarkOutdated, Start
from handlers.views import HoldView
from tests.handlers.desk import HEAD, ISSUE, MAIN, NEWER, NOW, PULL, REPO, Room, actor

BRANCH = BranchRef(REPO, "refs/heads/main")
OPENED = Opened("Mend")
PUSHED = Pushed(HEAD, NEWER)


@pytest.fixture
def room() -> Room:
    return Room()


def rule(on: str, task: str = "fix", **condition: Any) -> Rule:
    return Rule.model_validate({"on": on, "task": task, "if": condition})


def starts(room: Room) -> list[Start]:
    return [result for result in room.results if isinstance(result, Start)]


# Runs that an event ends or outdates


def test_a_push_outdates_the_runs_of_the_old_head(room: Room) -> None:
    room.pushes(NEWER)
    room.happens(PUSHED, PULL)
    assert (MarkOutdated(PULL, NEWER),) == room.results


def test_the_new_head_is_the_one_that_the_forge_shows(room: Room) -> None:
    room.pushes(MAIN)
    room.happens(PUSHED, PULL)
    assert (MarkOutdated(PULL, MAIN),) == room.results


@pytest.mark.parametrize(
    ("merged", "why"), [(False, "the pull request was closed"), (True, "the pull request was merged")]
)
def test_a_closed_pull_request_cancels_its_runs(room: Room, merged: bool, why: str) -> None:
    room.closes(merged=merged)
    room.happens(Closed(merged=False), PULL)
    assert (CancelAll(PULL, why),) == room.results


def test_a_pull_request_that_was_reopened_meanwhile_cancels_nothing(room: Room) -> None:
    assert "(nothing: The pull request is open again.)" == room.happens(Closed(merged=False), PULL)


def test_a_pull_request_that_is_gone_cancels_its_runs(room: Room) -> None:
    room.pulls.clear()
    room.happens(Closed(merged=False), PULL)
    assert (CancelAll(PULL, "the pull request was closed"),) == room.results


def test_a_closed_issue_cancels_nothing(room: Room) -> None:
    assert "(nothing: Only a pull request's end ends its runs.)" == room.happens(Closed(merged=False), ISSUE)


def test_a_push_to_a_pull_request_that_is_gone_is_nothing(room: Room) -> None:
    room.pulls.clear()
    with pytest.raises(Unavailable):
        room.happens(PUSHED, PULL)
    assert room.happens(PUSHED, PULL, at=NOW - timedelta(hours=1)).startswith(
        "(nothing: The forge has no such thing any more"
    )


# Rules


@pytest.mark.parametrize(
    ("on", "event", "head", "why"),
    [
        ("pull_request.opened", (OPENED, PULL), HEAD, "the head of #7 when the bot acted"),
        ("pull_request.pushed", (Pushed(None, HEAD), PULL), HEAD, "the head of #7 when the bot acted"),
        ("issues.opened", (OPENED, ISSUE), MAIN, "the head of main, the project's base, when the bot acted"),
        ("issues.labeled", (Labeled("bot"), ISSUE), MAIN, "the head of main, the project's base, when the bot acted"),
        ("push", (Pushed(HEAD, MAIN), BRANCH), MAIN, "what was pushed to main"),
    ],
)
def test_a_rule_starts_its_task(room: Room, on: str, event: tuple[Happening, Subject], head: Sha, why: str) -> None:
    room.rules = [rule("schedule"), rule(on)]
    room.happens(*event)
    (start,) = starts(room)
    intent = start.intent
    assert ("fix", head, why) == (intent.task.name, intent.head, intent.head_why)
    assert RuleFired(on, "leadsman.toml [[rule]] 2") == intent.reason
    assert ("main", "shop", ()) == (intent.base_ref, intent.project, intent.args)
    assert isinstance(room.decided, Decision)
    assert room.decided.answer is None
    others = {"pull_request.opened", "pull_request.pushed", "issues.opened", "issues.labeled", "push"} - {on}
    room.rules = [rule(other, "test") for other in others]
    room.happens(*event)
    assert [] == starts(room)


@pytest.mark.parametrize(
    ("fires", "on", "event", "condition"),
    [
        (True, "issues.labeled", (Labeled("bot"), ISSUE), {"label": "bot"}),
        (True, "issues.labeled", (Labeled("bot"), ISSUE), {"label": "Bot"}),
        (False, "issues.labeled", (Labeled("other"), ISSUE), {"label": "bot"}),
        (False, "issues.labeled", (Labeled("gone"), ISSUE), {"label": "gone"}),
        (True, "issues.opened", (OPENED, ISSUE), {"label": "bot"}),
        (False, "issues.opened", (OPENED, ISSUE), {"label": "x"}),
        (True, "pull_request.opened", (OPENED, PULL), {"label": "Ready"}),
        (False, "pull_request.opened", (OPENED, PULL), {"label": "x"}),
        (True, "pull_request.opened", (OPENED, PULL), {"author": "Will"}),
        (False, "pull_request.opened", (OPENED, PULL), {"author": "ann"}),
        (True, "pull_request.opened", (OPENED, PULL), {"paths": ["docs/**", "src/*.py"]}),
        (False, "pull_request.opened", (OPENED, PULL), {"paths": ["*.py"]}),
        (True, "pull_request.opened", (OPENED, PULL), {"paths": ["**/*.py"]}),
        (True, "push", (Pushed(HEAD, MAIN), BRANCH), {"paths": ["web/**"]}),
        (False, "push", (Pushed(HEAD, MAIN), BRANCH), {"paths": ["src/**"]}),
        (False, "push", (Pushed(None, MAIN), BRANCH), {"paths": ["web/**"]}),
        (True, "pull_request.opened", (OPENED, PULL), {"author": "will", "label": "ready", "paths": ["src/**"]}),
        (False, "pull_request.opened", (OPENED, PULL), {"author": "will", "label": "x", "paths": ["src/**"]}),
    ],
)
def test_a_rule_fires_where_all_of_its_conditions_hold(
    room: Room, fires: bool, on: str, event: tuple[Happening, Subject], condition: dict[str, Any]
) -> None:
    room.pulls[PULL] = replace(room.pulls[PULL], labels=("ready",))
    room.changed, room.pushed_paths = ("README.md", "src/a.py"), ("web/x.js",)
    room.rules = [rule(on, **condition)]
    said = room.happens(*event)
    assert fires == bool(starts(room))
    assert fires or said == "(nothing: leadsman.toml [[rule]] 1: its conditions do not hold.)"


def test_paths_that_nobody_knows_fire_nothing(room: Room) -> None:
    room.rules = [rule("push", paths=["**"])]
    room.happens(Pushed(HEAD, MAIN), BRANCH)
    assert [] == starts(room)


def test_a_rule_whose_paths_cant_be_told_keeps_back_no_other_and_no_news(room: Room) -> None:
    room.failing["changed_files"] = UserError("#7 changes 3001 files, and GitHub lists only 3000 of them.")
    room.pushes(NEWER)
    room.rules = [rule("pull_request.pushed", paths=["**"]), rule("pull_request.pushed")]
    room.happens(PUSHED, PULL)
    assert MarkOutdated(PULL, NEWER) in room.results
    assert 1 == len(starts(room))
    room.rules = [rule("pull_request.opened", paths=["**"])]
    assert "(nothing: leadsman.toml [[rule]] 1: #7 changes 3001 files, and GitHub lists only 3000 of them.)" == (
        room.happens(OPENED, PULL)
    )


@pytest.mark.parametrize(
    ("what", "subject"), [(OPENED, PULL), (Pushed(None, HEAD), PULL), (OPENED, ISSUE), (Pushed(HEAD, MAIN), BRANCH)]
)
def test_a_rule_fires_once_for_one_thing(room: Room, what: Happening, subject: Subject) -> None:
    room.rules = [rule("pull_request.opened"), rule("pull_request.pushed"), rule("issues.opened"), rule("push")]
    room.happens(what, subject)
    (first,) = starts(room)
    room.rules.insert(0, rule("schedule"))  # its place in the file has moved
    room.happens(what, subject, at=NOW - timedelta(seconds=3))
    assert [] == starts(room)
    room.obeyed.clear()
    room.happens(what, subject)
    (again,) = starts(room)
    assert first.intent.answer == again.intent.answer


def test_a_label_that_is_set_again_fires_again_and_a_second_webhook_does_not(room: Room) -> None:
    room.rules = [rule("issues.labeled", label="bot")]
    for seconds in (0, 3, 8, 60):
        room.happens(Labeled("bot"), ISSUE, at=NOW + timedelta(seconds=seconds))
    assert [NOW, NOW + timedelta(seconds=60)] == [row.intent.event.at for row in room.rows]


def test_a_rule_that_stands_twice_fires_once(room: Room) -> None:
    room.rules = [rule("issues.opened"), rule("issues.opened"), rule("issues.opened", "test")]
    room.happens(OPENED, ISSUE)
    assert ["fix", "test"] == [start.intent.task.name for start in starts(room)]
    assert 2 == len({start.intent.answer for start in starts(room)})


def test_a_push_outdates_and_fires(room: Room) -> None:
    room.pushes(NEWER)
    room.rules = [rule("pull_request.pushed")]
    room.happens(PUSHED, PULL)
    outdated, start = room.results
    assert MarkOutdated(PULL, NEWER) == outdated
    assert isinstance(start, Start)
    assert NEWER == start.intent.head


def test_a_rule_never_runs_a_forks_commit_that_nobody_approved(room: Room) -> None:
    room.forks()
    room.rules = [rule("pull_request.opened")]
    assert f"(nothing: Commit {HEAD} of a fork was not approved with /ok-to-test.)" == room.happens(OPENED, PULL)
    room.approvals.add(HEAD)
    room.happens(OPENED, PULL)
    assert 1 == len(starts(room))


def nothing_on_hold(room: Room) -> None:
    room.holds[PULL] = HoldView("ann", "")


def nothing_closed(room: Room) -> None:
    room.closes()


def nothing_for_an_unknown_task(room: Room) -> None:
    del room.tasks_["fix"]


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (nothing_on_hold, "ann put it on hold."),
        (nothing_closed, "The pull request is closed."),
        (nothing_for_an_unknown_task, "leadsman.toml [[rule]] 1: there is no task fix in this project."),
    ],
)
def test_a_rule_starts_nothing(room: Room, prepare: Any, why: str) -> None:
    prepare(room)
    room.rules = [rule("pull_request.opened")]
    assert f"(nothing: {why})" == room.happens(OPENED, PULL)


def test_a_push_that_was_overtaken_is_left_to_the_later_one(room: Room) -> None:
    room.rules = [rule("push"), rule("pull_request.pushed")]
    assert room.happens(Pushed(None, HEAD), BRANCH).startswith("(nothing: The head has moved on")
    room.happens(Pushed(None, NEWER), PULL)
    assert (MarkOutdated(PULL, HEAD),) == room.results


def test_a_deleted_branch_fires_nothing(room: Room) -> None:
    room.rules = [rule("push")]
    assert "(nothing: No rule is for this.)" == room.happens(Pushed(MAIN, None), BRANCH)


def test_what_the_bot_does_itself_fires_nothing(room: Room) -> None:
    room.rules = [rule("push")]
    assert room.happens(Pushed(HEAD, MAIN), BRANCH, who="leadsman[bot]") == (
        "(nothing: It is the bot's own doing, which starts no rule.)"
    )


def test_without_a_rule_the_forge_is_not_even_asked(room: Room) -> None:
    room.failing = {call: Forbidden("no") for call in ("pull", "issue", "branch_sha")}
    assert "(nothing: No rule is for this.)" == room.happens(Pushed(HEAD, MAIN), BRANCH)


def test_a_branch_that_is_not_there_yet_is_looked_for_again(room: Room) -> None:
    room.rules = [rule("push")]
    room.failing["branch_sha"] = Gone("main")
    with pytest.raises(Unavailable):
        room.happens(Pushed(HEAD, MAIN), BRANCH)
    room.happens(Pushed(HEAD, MAIN), BRANCH, at=NOW + timedelta(days=365))  # a clock that lies is not waited for
    assert isinstance(room.decided, Ignored)


def test_who_did_it_is_in_the_intent(room: Room) -> None:
    room.rules = [rule("issues.opened")]
    room.happens(OPENED, ISSUE, who="rea")
    assert actor("rea") == starts(room)[0].intent.event.actor

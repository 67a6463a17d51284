"""A person wins: whoever takes an issue that a run holds, by label or assignee, has it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.stories.harbour import Harbour
from tests.world import Repository, World

TAKINGS: dict[str, tuple[Callable[[Any], Any], str, list[str], list[str]]] = {
    "the label is taken off": (
        lambda issue: issue.unlabel("at work", by="dana"),
        "took the label at work off",
        [],
        ["leadsman-bot"],
    ),
    "somebody is assigned": (
        lambda issue: issue.assign("dana", by="dana"),
        "changed the ticket's assignee",
        ["at work"],
        ["leadsman-bot", "dana"],
    ),
    "the bot is unassigned": (
        lambda issue: issue.unassign("leadsman-bot", by="dana"),
        "changed the ticket's assignee",
        ["at work"],
        [],
    ),
}


@pytest.mark.parametrize("how", TAKINGS)
def test_a_person_who_takes_the_issue_stops_the_run_and_keeps_the_issue(
    harbour: Harbour, docks: Repository, how: str
) -> None:
    take, what, *left = TAKINGS[how]
    go = harbour.hold()
    issue = docks.issue("Broken", author="alice")
    harbour.start()
    harbour.says(issue, "/run hold")
    harbour.works()
    harbour.until("it is assigned", lambda: harbour.shown(issue) == (["at work"], ["leadsman-bot"]))
    harbour.tells(take(issue))
    harbour.until(
        "it is asked to stop", lambda: any("was asked to stop after its turn" in one for one in harbour.answers(issue))
    )
    go.touch()
    released = harbour.note(issue, "claim released")
    assert released.startswith("claim released: dana took the ticket (cancelled)")
    harbour.until("the run is closed", harbour.closed)
    harbour.until("its report says so", lambda: any(f"dana, who {what}" in one for one in harbour.answers(issue)))
    assert left == [*harbour.shown(issue)]
    harbour.assert_nothing_is_left(docks)


def test_the_bots_own_label_and_assignee_and_anybodys_other_label_stop_nothing(
    harbour: Harbour, docks: Repository
) -> None:
    go = harbour.hold()
    issue = docks.issue("Broken", author="alice", labels=("slow",))
    harbour.start()
    harbour.says(issue, "/run hold")
    harbour.works()
    harbour.until("it is assigned", lambda: harbour.shown(issue) == (["slow", "at work"], ["leadsman-bot"]))
    with harbour.world.lock:
        own = [one for one in harbour.world.outbox if one.event == "issues" and one.action in ("labeled", "assigned")]
    assert 2 == len(own)
    harbour.tells(*own, issue.label("odd", by="dana"), issue.unlabel("slow", by="dana"))
    go.touch()
    harbour.note(issue, "# REPORT -")


def test_a_person_who_takes_the_issue_unheard_is_seen_before_anything_is_published(
    harbour: Harbour, docks: Repository
) -> None:
    go = harbour.hold()
    issue = docks.issue("Broken", author="alice")
    harbour.start()
    harbour.says(issue, "/run hold")
    harbour.works()
    harbour.until("it is assigned", lambda: harbour.shown(issue)[1] == ["leadsman-bot"])
    issue.assign("dana", by="dana")
    go.touch()
    assert harbour.note(issue, "claim released").startswith("claim released: dana took the ticket (cancelled)")
    (run,) = harbour.until("the run is closed", harbour.closed)
    assert [] == harbour.run_branches(docks)
    assert "dana, who changed the ticket's assignee" in (run / "report.md").read_text()
    harbour.assert_nothing_is_left(docks)


def test_a_person_who_takes_the_issue_is_found_by_looking(tmp_path: Path, world: World) -> None:
    with closing(Harbour(tmp_path, world, poll_seconds=1)) as harbour:
        go = harbour.hold()
        docks = harbour.repo().allow("dana", "triage")
        issue = docks.issue("Broken", author="alice")
        harbour.start()
        harbour.until("it was looked", harbour.polled)
        issue.comment("alice", "/run hold")
        harbour.works()
        harbour.until("it is assigned", lambda: harbour.shown(issue)[1] == ["leadsman-bot"])
        issue.unlabel("at work", by="dana")
        harbour.until(
            "it is asked to stop",
            lambda: any("was asked to stop after its turn" in one for one in harbour.answers(issue)),
        )
        go.touch()
        assert "dana took the ticket (cancelled)" in harbour.note(issue, "claim released")
        harbour.until("the run is closed", harbour.closed)

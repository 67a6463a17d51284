"""`kill -9` of the server at every named point of the road: the end is the same.

One run, one branch, one comment; no worktree, no process, no lock, no claim left.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
import requests

from bot.ages import Step
from tests.stories.town import FIX, Town

STEPS: tuple[Step, ...] = (
    "claim",
    "prepare",
    "start",
    "follow",
    "check",
    "publish",
    "give_back",
    "report",
    "leave",
    "close",
)
POINTS = [
    "remembered",
    "decided",
    "posted",
    "started",
    *(f"{step}:{when}" for step in STEPS for when in ("begins", "ended") if (step, when) != ("close", "ended")),
    "closed",
]


@pytest.mark.parametrize("point", POINTS)
def test_a_server_killed_at_any_point_loses_nothing_and_doubles_nothing(town: Town, point: str) -> None:
    repo = town.repo()
    town.task("checked", FIX, '[[task.verify]]\nrun = ["grep", "-q", "fixed", "fixed.txt"]\nrepeat = 2\n')
    pull = town.pull_of(repo)
    main = repo.sha("main")
    town.start(crash=point)
    delivery = pull.comment("alice", "/run checked")
    with suppress(requests.ConnectionError):  # it may die before it has answered what is on disk already
        town.deliver(delivery)
    town.dies()

    town.start()

    (run,) = town.until("the run is closed", town.closed)
    town.until("the index says so", lambda: town.open_runs() == 0)
    said = town.settled(pull, "**Published** `checked`")
    assert run.name in said
    (branch,) = town.run_branches(repo)
    assert branch == f"refs/heads/leadsman/run/{run.name}"
    assert repo.files(branch.removeprefix("refs/heads/"))["fixed.txt"] == "fixed\n"
    assert main == repo.sha("main")
    town.until("rocket", lambda: "rocket" in town.reactions(delivery))
    town.assert_nothing_is_left(repo)


def test_a_redelivery_after_the_crash_starts_no_second_run(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start(crash="decided")
    delivery = pull.comment("alice", "/run fix")
    town.deliver(delivery)
    town.dies()
    town.start()
    again = town.deliver(delivery)
    assert again.status == 200
    assert "duplicate" in again.body
    town.until("the run is closed", town.closed)
    assert len(town.runs()) == 1
    assert len(town.run_branches(repo)) == 1


@pytest.mark.parametrize("point", ["claimed", "prepared"])
def test_a_run_that_is_cancelled_between_a_step_and_the_note_of_it_leaves_no_claim_and_no_worktree(
    town: Town, point: str
) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start(crash=point)
    town.deliver(pull.comment("alice", "/run fix"))
    town.dies()
    assert [ref for ref in town.refs(repo) if "claims" in ref]
    (run,) = town.runs()
    (run / "cancel.json").write_text('{"by": "an operator"}')
    town.start()
    town.settled(pull, "**Cancelled** `fix` by an operator")
    town.until("closed", town.closed)
    town.assert_nothing_is_left(repo)


def test_a_delivery_that_trips_over_an_error_of_ours_does_not_stop_those_behind_it(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start(crash="poisoned")
    first, second = pull.comment("alice", "/run fix poison"), pull.comment("alice", "/run fix")
    town.deliver(first)
    town.deliver(second)
    town.settled(pull, "**Published** `fix`")
    assert sorted(town.states()) == ["done", "failed"]

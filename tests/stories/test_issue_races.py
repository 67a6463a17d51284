"""Many bots, one issue: exactly one run, one report, and everybody else concedes; whoever is killed whenever."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.stories.regatta import Regatta
from tests.world import World

pytestmark = pytest.mark.timeout(300)

Started = Callable[[int], Regatta]


@pytest.fixture
def regatta(tmp_path: Path, world: World) -> Iterator[Started]:
    """So many bots, not started yet; they end with the test."""
    made: list[Regatta] = []

    def make(count: int) -> Regatta:
        made.append(Regatta(tmp_path, world, count))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize(("bots", "rounds"), [(2, 2), (8, 1)])
def test_of_many_bots_one_works_the_issue_and_the_others_concede(regatta: Started, bots: int, rounds: int) -> None:
    fleet = regatta(bots)
    fleet.start()
    for _ in range(rounds):
        fleet.race()
    fleet.closed()


@pytest.mark.parametrize("point", ["claim:begins", "claimed", "noted", "start:begins", "told"])
def test_a_winner_that_is_killed_anywhere_ends_its_run_after_its_restart(regatta: Started, point: str) -> None:
    fleet = regatta(2)
    mortal, other = fleet.bots
    mortal.start(crash=point)
    issue = fleet.repo.issue("a race", author="alice")
    fleet.go(issue)
    told = issue.comment("alice", f"/run hold -- {issue.number}")
    mortal.tells(told)
    mortal.dies()
    mortal.start()
    mortal.note(issue, "# REPORT -")
    other.start()
    other.tells(told)
    mortal.until("its run is closed", mortal.closed)
    fleet.conceded(issue, 1)
    fleet.check(issue)
    fleet.closed()


def test_a_suspended_winner_whose_claim_was_swept_publishes_nothing_and_says_nothing(
    regatta: Started, world: World
) -> None:
    fleet = regatta(2)
    for bot in fleet.bots:
        bot.config = bot.config.replace("claim_enabled", "claim_limit_seconds = 100\nclaim_enabled")
    fleet.start()
    now = world.clock
    world.clock = lambda: now() - timedelta(seconds=10_000)
    issue = fleet.ask()
    fleet.conceded(issue, 1)
    winner = fleet.with_run(issue)
    winner.until("it is assigned", lambda: winner.shown(issue)[1])
    (other,) = (bot for bot in fleet.bots if bot is not winner)
    assert winner.server is not None
    winner.server.send_signal(signal.SIGSTOP)
    world.clock = now
    other.ring("claims")
    swept = other.note(issue, "claim released: swept")
    before = fleet.notes(issue, "")
    fleet.go(issue)
    winner.server.send_signal(signal.SIGCONT)
    (run,) = winner.until("the winner's run is closed", winner.closed)
    assert swept == before[-1]
    assert before == fleet.notes(issue, "")
    assert ([], []) == winner.shown(issue)
    assert [] == winner.run_branches(fleet.repo)
    assert "Lost" in (run / "report.md").read_text()
    fleet.closed()


def test_a_person_who_takes_the_issue_in_the_middle_of_a_race_keeps_it(regatta: Started) -> None:
    fleet = regatta(3)
    fleet.start()
    issue = fleet.ask()
    winner = fleet.with_run(issue)
    winner.until("it is assigned", lambda: winner.shown(issue)[1])
    took = issue.assign("dana", by="dana")
    for bot in fleet.bots:
        bot.tells(took)
    fleet.go(issue)
    assert winner.note(issue, "claim released").startswith("claim released: dana took the ticket (cancelled)")
    fleet.conceded(issue, 2)
    assert [] == fleet.notes(issue, "# REPORT -")
    assert "dana" in winner.shown(issue)[1]
    fleet.closed()

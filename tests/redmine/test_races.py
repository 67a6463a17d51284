"""Many bots, one ticket: exactly one run, one report, and everybody else concedes; whoever is killed whenever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.redmine.fleet import Fleet
from tests.redmine.site import Site
from tests.world import World

pytestmark = [pytest.mark.needs("redmine"), pytest.mark.timeout(300)]

Found = Callable[..., Fleet]


@pytest.fixture
def found(tmp_path: Path, world: World, site: Site) -> Iterator[Found]:
    """Founds a fleet of so many bots, which is ended with the test."""
    fleets: list[Fleet] = []

    def make(count: int, **about: str) -> Fleet:
        fleets.append(Fleet(tmp_path, world, site, count, **about))
        return fleets[-1]

    yield make
    for fleet in fleets:
        fleet.close()


@pytest.mark.parametrize(("bots", "rounds"), [(2, 2), (8, 1)])
def test_of_many_bots_one_works_the_ticket_and_the_others_concede(found: Found, bots: int, rounds: int) -> None:
    """More rounds, and 20 bots: tests/bench/claims.py."""
    fleet = found(bots)
    fleet.start()
    for _ in range(rounds):
        fleet.race()
    fleet.closed()


@pytest.mark.parametrize("point", ["claim:begins", "claimed", "noted", "start:begins", "told"])
def test_a_winner_that_is_killed_anywhere_ends_its_run_after_its_restart(found: Found, point: str) -> None:
    fleet = found(2)
    mortal, other = fleet.bots
    mortal.start(crash=point)
    number = fleet.site.ticket()
    fleet.go(number)
    fleet.site.change(number, notes=f"/run hold -- {number}")
    mortal.ring("poll", "work")
    mortal.dies()
    mortal.start()
    mortal.note(number, "# REPORT -")
    other.start()
    other.ring("poll", "work")
    mortal.until("its run is closed", mortal.closed)
    assert len(fleet.notes(number, "claimed by")) == 1
    assert len(fleet.notes(number, "# REPORT -")) == 1
    assert fleet.site.status(number) == "Resolved"
    fleet.closed()


def test_a_suspended_winner_whose_claim_was_swept_publishes_nothing_and_says_nothing(found: Found) -> None:
    fleet = found(2)
    for bot in fleet.bots:
        bot.config = bot.config.replace("claim_enabled", "claim_limit_seconds = 100\nclaim_enabled")
    fleet.start()
    number = fleet.ask()
    fleet.conceded(number, 1)
    winner = fleet.with_run(number)
    (other,) = (bot for bot in fleet.bots if bot is not winner)
    fleet.freeze(winner, on=True)
    fleet.site.age(number, 10_000)
    other.ring("claims")
    swept = other.note(number, "claim released: swept")
    before = fleet.site.notes(number)
    fleet.go(number)
    fleet.freeze(winner, on=False)
    (run,) = winner.until("the winner's run is closed", winner.closed)
    assert swept == before[-1]
    assert fleet.site.notes(number) == before
    assert fleet.site.status(number) == "New"
    assert winner.run_branches(fleet.repo) == []
    assert "Lost" in (run / "report.md").read_text()
    fleet.closed()


def test_a_person_who_takes_the_ticket_in_the_middle_of_a_race_keeps_it(found: Found) -> None:
    fleet = found(3, more="\n[budget]\nper_turn_seconds = 3\nturns = { medium = 100 }\n")
    fleet.start()
    number = fleet.ask()
    winner = fleet.with_run(number)
    fleet.site.change(number, assigned_to="devi", notes="Mine.")
    for bot in fleet.bots:
        bot.ring("poll", "work")
    released = winner.note(number, "claim released")
    assert released.startswith("claim released: dana took the ticket (cancelled)")
    fleet.conceded(number, 2)
    seen = fleet.site.seen(number)
    assert seen["assigned_to"]["id"] == fleet.site.facts["users"]["devi"]
    assert fleet.notes(number, "# REPORT -") == []
    fleet.closed()

"""A forge that is slow, or takes no reaction: the door answers all the same, and commands are obeyed."""

from __future__ import annotations

import time

import pytest

from tests.stories.town import Town

DEADLINE = 1.0
"""Seconds in which a delivery must be answered, as promised. GitHub gives up after ten."""


def test_a_delivery_is_answered_at_once_while_the_forge_keeps_silent(town: Town) -> None:
    pull = town.pull_of(town.repo())
    town.start()
    town.world.slow("/*", 5.0)
    took = []
    for _ in range(5):
        begun = time.monotonic()
        town.says(pull, "/help")
        took.append(time.monotonic() - begun)
    town.world.heal()
    assert min(took) < DEADLINE, took  # this host may be busy; the forge's five seconds are in none of them
    assert max(took) < 5.0, took


@pytest.mark.parametrize("status", [403, 404, 422, 500, 503])
def test_a_reaction_that_can_not_be_set_fails_no_command(town: Town, status: int) -> None:
    pull = town.pull_of(town.repo())
    town.start()
    town.world.fail_next("POST /repos/*/reactions", status, times=None)
    delivery = town.says(pull, "/run fix")
    town.settled(pull, "**Published**")
    town.until("the run is closed", town.closed)
    assert town.reactions(delivery) == set()

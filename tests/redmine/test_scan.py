"""Claimable tickets are taken in order; stale claims are given back."""

from __future__ import annotations

import json

import pytest

from bot import epoch
from tests.redmine.town import TicketTown

pytestmark = pytest.mark.needs("redmine")

RULE = '\n[[rule]]\non = "schedule"\ntask = "{task}"\n'


def claimed(town: TicketTown, number: int, run: str, *, by: str = "leadsman@elsewhere") -> None:
    """Another bot's claim."""
    note = epoch.claim_note(by, "2026-01-01T00:00:00Z", run, "http://elsewhere/runs/x")
    town.site.change(number, who="bot2", status="In Progress", notes=note)


def test_the_most_urgent_then_the_oldest_ticket_is_taken_first(town: TicketTown) -> None:
    repo = town.shop()
    town.config += RULE.format(task="fix")
    first, second = town.site.ticket("old"), town.site.ticket("young")
    urgent = town.site.ticket("urgent", priority="Urgent")
    other = town.site.ticket("not claimable")
    town.site.change(other, status="Feedback")
    town.start()
    for number in (first, second, urgent):
        town.note(number, "# REPORT -")
    town.until("all runs are closed", lambda: town.closed(3))
    order = [json.loads((run / "intent.json").read_text())["event"]["subject"]["number"] for run in town.runs()]
    assert order == [urgent, first, second]
    assert town.site.notes(other) == []
    town.assert_nothing_is_left(repo)


def test_a_ticket_whose_run_failed_waits_for_a_person_and_holds_up_no_other(town: TicketTown) -> None:
    town.shop()
    town.task("never", ["false"])
    town.config += RULE.format(task="never")
    bad, good = town.site.ticket("bad"), town.site.ticket("good")
    town.start()
    town.note(bad, "claim released")
    town.note(good, "claim released")
    town.until("both runs are closed", lambda: town.closed(2))
    for _ in range(3):
        town.ring("scan")
    town.site.change(bad, notes="Try again, I mended the test.")
    town.ring("scan")
    town.until("it was tried once more", lambda: town.closed(3))
    assert len(town.runs()) == 3
    assert len([note for note in town.site.notes(bad) if note.startswith("claim released")]) == 2
    assert len([note for note in town.site.notes(good) if note.startswith("claim released")]) == 1


def test_a_ticket_that_another_blocks_waits_until_that_one_is_closed(town: TicketTown) -> None:
    town.shop()
    town.config += RULE.format(task="fix")
    blocker, number = town.site.ticket("first"), town.site.ticket("then")
    town.site.change(blocker, status="Feedback")
    relation = {"relation": {"issue_to_id": number, "relation_type": "blocks"}}
    assert town.site.call("dana", "post", f"issues/{blocker}/relations.json", relation).status_code == 201
    free = town.site.ticket("free")
    town.start()
    town.note(free, "# REPORT -")
    assert town.site.notes(number) == []
    town.site.change(blocker, status="Closed")
    town.ring("scan")
    town.note(number, "# REPORT -")


def test_a_claim_of_a_bot_that_is_gone_is_swept_after_twice_the_limit_and_the_ticket_is_taken(town: TicketTown) -> None:
    town.shop()
    town.config = town.config.replace("claim_enabled", "claim_limit_seconds = 1000\nclaim_enabled")
    town.config += RULE.format(task="fix")
    stale, fresh, moved = (town.site.ticket(name) for name in ("stale", "fresh", "moved"))
    claimed(town, stale, "20260101-000000-aaaaaa")
    claimed(town, fresh, "20260101-000000-bbbbbb")
    town.site.change(moved, status="In Progress", notes="I work on it.")
    town.site.age(stale, 2060)
    town.site.age(fresh, 1900)
    town.site.age(moved, 90_000)
    town.start()
    released = town.note(stale, "claim released: swept")
    assert "leadsman@elsewhere claimed it 20" in released
    assert "for run 20260101-000000-aaaaaa" in released
    town.note(stale, "# REPORT -")
    assert town.site.status(stale) == "Resolved"
    assert [town.site.status(one) for one in (fresh, moved)] == ["In Progress", "In Progress"]
    assert len(town.site.notes(fresh)) == 1


def test_a_limit_of_0_sweeps_nothing(town: TicketTown) -> None:
    town.shop()
    town.config = town.config.replace("claim_enabled", "claim_limit_seconds = 0\nclaim_enabled")
    stale = town.site.ticket("stale")
    claimed(town, stale, "20260101-000000-aaaaaa")
    town.site.age(stale, 900_000)
    number = town.site.ticket()
    town.start()
    town.ring("claims")
    town.site.change(number, notes="/help")
    town.poll()
    town.note(number, "/run TASK")
    assert len(town.site.notes(stale)) == 1


def test_a_claim_whose_note_landed_after_its_run_had_ended_is_given_back_at_once(town: TicketTown) -> None:
    town.shop()
    town.start()
    first, late = town.site.ticket(), town.site.ticket()
    town.site.change(first, notes="/run fix")
    town.poll()
    town.note(first, "# REPORT -")
    (run,) = town.until("the run is closed", town.closed)
    claimed(town, late, run.name, by="leadsman@here")
    town.ring("claims")
    released = town.note(late, "claim released")
    assert released == f"claim released: run {run.name} has ended (published)"
    assert town.site.status(late) == "New"


def test_a_live_run_is_never_swept_however_old_its_claim(town: TicketTown) -> None:
    town.shop()
    town.config = town.config.replace("claim_enabled", "claim_limit_seconds = 1\nclaim_enabled")
    town.task("wait", ["sh", "-c", f"until [ -e {town.folder}/go ]; do sleep 0.1; done; echo x > x"])
    town.start()
    number = town.site.ticket()
    town.site.change(number, notes="/run wait")
    town.poll()
    town.note(number, "claimed by")
    town.site.age(number, 90_000)
    town.ring("claims")
    town.ring("claims")
    other = town.site.ticket()
    claimed(town, other, "20260101-000000-cccccc")
    town.site.age(other, 90_000)
    town.ring("claims")
    town.note(other, "claim released: swept")  # so the sweep has been there
    (town.folder / "go").touch()
    town.note(number, "# REPORT -")
    assert not any("claim released" in note for note in town.site.notes(number))

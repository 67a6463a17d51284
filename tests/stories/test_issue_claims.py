"""An issue of the forge is claimed where people see it, and whoever takes it has it."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.claimbook import EVENTS
from tests.stories.harbour import Harbour
from tests.stories.town import FIX
from tests.world import Repository, World

CLAIM = re.compile(r"claimed by leadsman@\S+ at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ run (\d{8}-\d{6}-[0-9a-f]{6})\n")


def journal(harbour: Harbour, event: str) -> list[dict[str, Any]]:
    found = (json.loads(line) for line in harbour.journal().splitlines())
    return [line for line in found if line["event"] == event]


def test_a_run_is_seen_by_note_label_and_assignee_and_its_report_ends_that(harbour: Harbour, docks: Repository) -> None:
    go = harbour.hold()
    issue = docks.issue("Broken", author="alice", labels=("bot", "urgent"))
    harbour.start()
    harbour.says(issue, "/run hold")
    (run,) = harbour.works()
    claim = harbour.note(issue, "claimed by")
    found = CLAIM.match(claim)
    assert found is not None, claim
    assert run.name == found[1]
    assert (["bot", "urgent", "at work"], ["leadsman-bot"]) == harbour.shown(issue)
    go.touch()
    report = harbour.note(issue, "# REPORT -")
    harbour.until("the run is closed", harbour.closed)
    answer = harbour.until(
        "its comment is the report", lambda: next((a for a in harbour.answers(issue) if "done.txt" in a), None)
    )
    assert answer.startswith("<!-- leadsman answer=")
    with harbour.world.lock:
        number = next(one.id for one in issue.comments if one.body == answer)
    assert f"# REPORT - run {run.name} of hold: published" == report.splitlines()[0]
    assert report.endswith(f"/acme/shop/issues/1#issuecomment-{number}")
    assert [claim, report] == harbour.notes(issue)
    assert (["urgent"], []) == harbour.shown(issue)
    assert ["claim", "release"] == [
        one["event"] for one in map(json.loads, harbour.journal().splitlines()) if one["event"] in ("claim", "release")
    ]
    harbour.assert_nothing_is_left(docks)


def test_a_run_that_fails_gives_the_issue_back_and_leaves_it_offered(harbour: Harbour, docks: Repository) -> None:
    harbour.task("fail", ["false"])
    issue = docks.issue("Broken", author="alice", labels=("bot",))
    harbour.start()
    harbour.says(issue, "/run fail")
    released = harbour.note(issue, "claim released")
    assert released.startswith("claim released: the run failed (command) (run ")
    assert (["bot"], []) == harbour.shown(issue)
    harbour.until("the run is closed", harbour.closed)
    harbour.assert_nothing_is_left(docks)


def test_a_run_that_ended_well_gives_the_label_that_the_map_names(harbour: Harbour, docks: Repository) -> None:
    harbour.config = harbour.config.replace(
        'claim_status = "at work"', 'claim_status = "at work"\nstatus_map = { "at work" = "to review" }'
    )
    issue = docks.issue("Broken", author="alice", labels=("bot",))
    harbour.start()
    harbour.says(issue, "/run fix")
    harbour.note(issue, "# REPORT -")
    assert (["to review"], []) == harbour.shown(issue)


def test_where_claims_are_off_nothing_but_the_answer_is_written(tmp_path: Path, world: World) -> None:
    with closing(Harbour(tmp_path, world, claims="")) as harbour:
        harbour.task("fix", FIX)
        issue = harbour.repo().issue("Broken", author="alice", labels=("bot",))
        harbour.start()
        harbour.says(issue, "/run fix")
        harbour.until("the run is closed", harbour.closed)
        harbour.settled(issue, "leadsman report=")
        assert 2 == len(issue.comments)
        assert (["bot"], []) == harbour.shown(issue)
        assert [] == world.asked("GET /repos/acme/shop/issues/1/timeline")


@pytest.mark.parametrize("stale", [{"status": 502}, {"status": 200, "body": []}], ids=["no answer", "a list that lags"])
def test_a_claim_that_can_t_be_read_back_is_unknown_and_not_written_twice(
    harbour: Harbour, docks: Repository, stale: dict[str, Any]
) -> None:
    """Nothing stands there at the first look; the second one is behind the note."""
    issue = docks.issue("Broken", author="alice")
    timeline = "GET /repos/acme/shop/issues/1/timeline"
    harbour.world.fail_next(timeline, 200, body=[])
    harbour.world.fail_next(timeline, **stale)
    harbour.start()
    harbour.says(issue, "/run fix")
    harbour.note(issue, "# REPORT -")
    harbour.until("the run is closed", harbour.closed)
    assert 1 == len(harbour.notes(issue, "claimed by"))
    assert 1 == len(harbour.notes(issue, "# REPORT -"))
    assert journal(harbour, "put_off")
    assert 2 == len(journal(harbour, "admitted")), "meanwhile it kept no slot"


@pytest.mark.parametrize("status", [403, 503])
@pytest.mark.parametrize("what", ["labels", "assignees"])
def test_a_label_or_an_assignee_that_can_t_be_set_fails_no_run_and_is_said(
    harbour: Harbour, docks: Repository, what: str, status: int
) -> None:
    issue = docks.issue("Broken", author="alice")
    harbour.world.fail_next(f"/repos/acme/shop/issues/1/{what}*", status, times=None)
    harbour.start()
    harbour.says(issue, "/run fix")
    harbour.note(issue, "# REPORT -")
    harbour.until("the run is closed", harbour.closed)
    assert journal(harbour, "unshown")
    assert 1 == len(harbour.notes(issue, "claimed by"))


def test_what_another_bot_claimed_first_is_conceded_once_and_left_as_it_is(harbour: Harbour, docks: Repository) -> None:
    issue = docks.issue("Broken", author="alice")
    harbour.another_claims(issue, "20260101-000000-aaaaaa")
    harbour.start()
    harbour.says(issue, "/run fix")
    conceded = harbour.note(issue, "conceded to")
    assert conceded.startswith("conceded to leadsman@elsewhere run 20260101-000000-aaaaaa: leadsman@")
    harbour.until("the run is closed", harbour.closed)
    harbour.until("alice is told", lambda: any("Nothing was started" in one for one in harbour.answers(issue)))
    assert (["at work"], ["other-bot"]) == harbour.shown(issue)
    assert 2 == len(harbour.notes(issue))
    told = [json.loads(line)["event"] for line in harbour.journal().splitlines()]
    assert ["claim", "release", "claim_lost", "concede"] == [one for one in told if one in EVENTS]
    harbour.assert_nothing_is_left(docks)


def test_what_another_bot_did_before_a_label_was_set_stands_against_nobody(harbour: Harbour, docks: Repository) -> None:
    harbour.config += '\n[[rule]]\non = "issues.labeled"\nif = { label = "go" }\ntask = "fix"\n'
    issue, now = docks.issue("Broken", author="alice"), harbour.world.clock
    harbour.world.clock = lambda: now() - timedelta(hours=1)
    harbour.another_claims(issue, "20260101-000000-aaaaaa")
    issue.unlabel("at work", by="other-bot")
    issue.unassign("other-bot", by="other-bot")
    issue.comment("other-bot", "# REPORT - run 20260101-000000-aaaaaa of fix: published")
    harbour.world.clock = now
    harbour.start()
    harbour.tells(issue.label("go", by="alice"))
    harbour.until("there are two reports", lambda: len(harbour.notes(issue, "# REPORT -")) == 2)
    harbour.until("the run is closed", harbour.closed)
    assert [] == harbour.notes(issue, "conceded to")


def test_a_stranger_can_neither_claim_an_issue_nor_end_a_claim(harbour: Harbour, docks: Repository) -> None:
    go = harbour.hold()
    issue = docks.issue("Broken", author="alice")
    harbour.another_claims(issue, "20260101-000000-aaaaaa", who="mallory")
    issue.unlabel("at work", by="alice")
    harbour.start()
    harbour.says(issue, "/run hold")
    harbour.works()
    issue.comment("mallory", "claim released: I do not like it")
    go.touch()
    harbour.note(issue, "# REPORT -")
    harbour.until("the run is closed", harbour.closed)
    assert 1 == len(harbour.notes(issue, "# REPORT -"))


def test_claims_of_bots_that_are_gone_and_of_ended_runs_are_given_back_and_no_others(
    harbour: Harbour, docks: Repository
) -> None:
    harbour.config = harbour.config.replace("claim_enabled", "claim_limit_seconds = 1000\nclaim_enabled")
    now = harbour.world.clock
    stale, fresh, moved, late = (docks.issue(name, author="alice") for name in ("stale", "fresh", "moved", "late"))
    harbour.world.clock = lambda: now() - timedelta(seconds=2060)
    harbour.another_claims(stale, "20260101-000000-aaaaaa")
    harbour.another_claims(late, "20260101-000000-cccccc")
    late.unlabel("at work", by="dana")
    moved.label("at work", by="dana")
    moved.assign("dana", by="dana")
    harbour.world.clock = lambda: now() - timedelta(seconds=1900)
    harbour.another_claims(fresh, "20260101-000000-bbbbbb")
    harbour.world.clock = now
    harbour.start()
    released = harbour.note(stale, "claim released: swept")
    assert "leadsman@elsewhere claimed it 20" in released
    assert ([], []) == harbour.shown(stale)
    harbour.says(late, "/run fix")
    assert "for run 20260101-000000-cccccc" in harbour.note(late, "claim released: swept")
    harbour.note(late, "# REPORT -")
    (run,) = harbour.until("the run is closed", harbour.closed)
    harbour.another_claims(late, run.name)
    harbour.ring("claims")
    ended = harbour.note(late, f"claim released: run {run.name}")
    assert f"claim released: run {run.name} has ended (published)" == ended
    assert (["at work"], ["other-bot"]) == harbour.shown(fresh)
    assert 1 == len(harbour.notes(fresh))
    assert (["at work"], ["dana"]) == harbour.shown(moved)

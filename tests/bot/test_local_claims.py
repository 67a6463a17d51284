"""Issues of the local forge are claimed as on any other: by note, label and assignee; a person who takes one has it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bot.test_local_command import CONFIG, Newcomer

CLAIMS = 'kind = "local"\nclaim_enabled = true\nclaim_status = "at work"\nclaimable_status = "bot"\n'
RULE = '\n[[rule]]\non = "schedule"\ntask = "stamp"\n'


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    made = Newcomer(tmp_path, CONFIG.replace('kind = "local"\n', CLAIMS) + RULE)
    made.types("local", "init-repo", "acme/shop")
    made.serves()
    yield made
    made.ends()


def seen(newcomer: Newcomer, number: int, holds: Callable[[Any], bool]) -> Any:
    """The issue, once it is so."""
    end = time.monotonic() + 60
    while not holds(found := newcomer.reads("local", "show", f"acme/shop#{number}")):
        assert time.monotonic() < end, found
    return found


def notes(issue: Any) -> list[str]:
    return [one["body"] for one in issue["comments"] if not one["body"].startswith(("<!--", "/"))]


def test_an_issue_that_is_offered_is_claimed_and_reported_on(newcomer: Newcomer) -> None:
    newcomer.types("local", "issue", "acme/shop", "Stamp it", "--as", "rita")
    newcomer.types("local", "label", "acme/shop#1", "bot", "--as", "alice")
    issue = seen(newcomer, 1, lambda issue: any(note.startswith("# REPORT -") for note in notes(issue)))
    claim, report = notes(issue)
    assert claim.startswith("claimed by leadsman@")
    assert "#comment-" in report
    assert (issue["labels"], issue["assignees"]) == ([], [])
    newcomer.sees_closed()


def test_a_person_who_takes_the_claim_label_off_has_the_issue(newcomer: Newcomer) -> None:
    newcomer.types("local", "issue", "acme/shop", "Sleep on it", "--as", "rita")
    newcomer.types("comment", "acme/shop#1", "/run sleep", "--as", "alice")
    seen(newcomer, 1, lambda issue: issue["assignees"] == ["leadsman[bot]"] and issue["labels"] == ["at work"])
    newcomer.types("local", "label", "acme/shop#1", "at work", "--remove", "--as", "rita")
    seen(newcomer, 1, lambda issue: "was asked to stop after its turn" in str(issue["comments"]))
    newcomer.types("comment", "acme/shop#1", "/cancel", "--as", "alice")
    issue = seen(newcomer, 1, lambda issue: any(note.startswith("claim released") for note in notes(issue)))
    assert notes(issue)[-1].startswith("claim released: rita took the ticket (cancelled)")
    assert (issue["labels"], issue["assignees"]) == ([], ["leadsman[bot]"])
    newcomer.sees_closed()

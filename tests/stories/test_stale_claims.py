"""Claims that are a ref alone, on pull requests: one whose bot is gone keeps nobody out for good."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from gitops.git import Git
from tests.stories.town import Town
from tests.world import Repository

KEY = "github:acme/shop#1:fix"
REF = f"refs/leadsman/claims/{sha256(KEY.encode()).hexdigest()}"
WHO = {f"GIT_{role}_{what}": "other@elsewhere" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def claimed(repo: Repository, *, seconds_ago: float, **facts: Any) -> str:
    """Another bot's claim, made so long ago."""
    at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    said = {"claim": KEY, "run_id": "20260101-000000-aaaaaa", "by": "leadsman@elsewhere", "at": f"{at:%FT%TZ}", **facts}
    git = Git(repo.git.path)
    tree = git.run("mktree", stdin=b"").text
    oid = git.run("commit-tree", tree, "-m", json.dumps(said), environment=WHO).text
    git.run("update-ref", REF, oid)
    return oid


@pytest.mark.parametrize(
    ("seconds_ago", "facts"),
    [
        (1_990, {"limit": 1_000, "url": "http://elsewhere/runs/x"}),
        (9_000_000, {"limit": 0, "url": "http://elsewhere/) [x](y"}),
        (9_000_000, {}),
        (9_000_000, {"limit": "soon"}),
        (9_000_000, {"limit": 1_000, "at": "long ago"}),
        (-9_000_000, {"limit": 1_000}),
    ],
    ids=["within", "no sweep", "no limit", "no number", "no time", "to come"],
)
def test_what_may_still_be_worked_is_left_alone(town: Town, seconds_ago: float, facts: dict[str, Any]) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    oid = claimed(repo, seconds_ago=seconds_ago, **facts)
    town.start()
    town.says(pull, "/run fix")
    said = town.settled(pull, "/cancel 20260101-000000-aaaaaa")
    assert ("(http://elsewhere/runs/x)" in said) is facts.get("url", "").endswith("/x"), "only an address is a link"
    assert "[x]" not in said
    town.until("the run is closed", town.closed)
    assert oid == town.refs(repo)[REF]
    assert [] == town.run_branches(repo)


def test_what_is_older_than_twice_its_limit_is_taken_over(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    claimed(repo, seconds_ago=2_010, limit=1_000)
    town.start()
    town.says(pull, "/run fix")
    town.settled(pull, "**Published**")
    town.until("the run is closed", town.closed)
    assert '"event": "sweep", "run": "20260101-000000-aaaaaa"' in town.journal()
    town.assert_nothing_is_left(repo)


def test_what_a_run_of_ours_left_is_taken_over_whatever_its_age(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run fix")
    (first,) = town.until("the run is closed", town.closed)
    claimed(repo, seconds_ago=0, run_id=first.name, limit=1_000)
    town.says(pull, "/run fix")
    town.until("both are closed", lambda: town.closed(2))
    assert 2 == len(town.run_branches(repo))
    town.assert_nothing_is_left(repo)

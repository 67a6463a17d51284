"""What a run leaves behind: strangers in its worktree, a marker that is gone, files that somebody wants to see."""

from __future__ import annotations

import subprocess

import pytest

from bot.rundir import read_json
from tests.stories.test_fleet import answer, waiter
from tests.stories.town import Town


def test_a_stranger_who_works_in_the_worktree_is_ended_before_it_goes(town: Town) -> None:
    repo, go = town.repo(), town.folder / "go"
    town.task("wait", waiter(town, go))
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run wait")
    (tree,) = town.until("it runs", lambda: list((town.home / "worktrees").iterdir()) or None)
    with subprocess.Popen(["sleep", "1000"], cwd=tree) as stranger:
        go.touch()
        town.settled(pull, "**Published**")
        assert stranger.wait(60) == -15
    town.until("the run is closed", town.closed)
    town.assert_nothing_is_left(repo)


@pytest.mark.parametrize(
    ("configured", "damage", "wedge", "why"),
    [
        (
            False,
            "rm .git",
            'mkdir "$(git rev-parse --git-dir)/leadsman-index"',
            "git can't tell what was changed in it",
        ),
        (True, 'rm -rf "$(git rev-parse --git-dir)"; chmod 500 . "$LEADSMAN_RUN_DIR"', "", "the run did not end well"),
    ],
)
def test_the_files_of_a_damaged_worktree_are_kept_aside_and_git_is_not_run_in_it(
    town: Town, configured: bool, damage: str, wedge: str, why: str
) -> None:
    town.config = town.config.replace("[fleet]", f"[fleet]\nkeep_failed_worktrees = {str(configured).lower()}")
    repo = town.repo()
    town.task("break", ["sh", "-c", f"echo precious > loose.txt; {damage}"])
    town.task("fail", ["sh", "-c", f"echo half > half.txt; {wedge}\nexit 3"])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run break")
    said = answer(town, pull, "**Failed** `break` (seal)")
    (run,) = town.runs()
    kept = town.home / "kept" / run.name
    assert "damaged" in said
    assert "since it is damaged" in said
    assert (kept / "loose.txt").read_text() == "precious\n"
    assert str(kept) == (read_json(run / "kept.json") or {})["worktree"]
    town.says(pull, "/run fail")
    said = answer(town, pull, "**Failed** `fail`")
    assert f"since {why}" in said
    town.until("both are closed", lambda: town.closed(2))
    (second,) = [path for path in (town.home / "kept").iterdir() if path != kept]
    assert (second / "half.txt").read_text() == "half\n"
    assert [second.name] * (not wedge) == [run.name for run in town.runs() if (run / "changes.patch").exists()]
    town.assert_nothing_is_left(repo)

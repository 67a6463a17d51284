"""Many runs at once: repositories side by side, one repository one at a time, and nothing left behind.

`LEADSMAN_TEST_RUNS=1000` in the environment runs the last story in full.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from gitops.git import Git
from tests.stories.test_fleet import answer, fleet, leadsman
from tests.stories.town import FIX, Town
from tests.world.state import Viewer

RUNS = int(os.environ.get("LEADSMAN_TEST_RUNS", "32"))
"""Read before the environment is emptied."""

REPOSITORIES = 8

ALONE = """\
mkdir "$0/$1" || exit 9
: >"$0/here-$LEADSMAN_RUN_ID"
while [ "$(ls "$0" | grep -c '^here-')" -lt "$2" ]; do sleep 0.02; done
rmdir "$0/$1"
"""
"""Fails where another run is inside for the same repository; goes on once so many runs have been there."""


def test_one_repository_has_one_run_at_a_time_while_two_repositories_meet(town: Town) -> None:
    town.config = town.config.replace("slots = 4", "slots = 3")
    shop, other = town.repo("acme/shop"), town.repo("acme/other")
    meeting = town.folder / "meeting"
    meeting.mkdir()
    # The runs of `shop` wait for somebody else to be there: only the other repository's run can be, at the same time.
    town.task("shop", ["sh", "-c", ALONE, str(meeting), "shop", "2"])
    town.task("other", ["sh", "-c", ALONE, str(meeting), "other", "2"])
    pulls = [town.pull_of(shop, head=f"b{n}", files={f"f{n}": "x"}) for n in range(3)]
    across = town.pull_of(other)
    town.start()
    for pull in pulls:
        town.says(pull, "/run shop")
    town.says(across, "/run other")
    for pull in (*pulls, across):
        answer(town, pull, "**Nothing to publish**")
    town.until("all are closed", lambda: town.closed(4))
    assert 2 == fleet(town)["peak"]
    assert 4 == fleet(town)["dispatched"]
    for repo in (shop, other):
        town.assert_nothing_is_left(repo)


@pytest.mark.parametrize(("point", "held", "claimed", "made"), [
    ("claim:begins", True, False, False),
    ("claim:ended", True, True, False),
    ("prepare:begins", True, True, False),
    ("start:begins", True, True, True),
])  # fmt: skip
def test_the_slot_comes_first_then_the_claim_then_the_worktree(
    town: Town, point: str, held: bool, claimed: bool, made: bool
) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start(crash=point)
    town.says(pull, "/run fix")
    town.dies()
    assert '"event": "admitted"' in town.journal()
    assert held == ("| wt-1 " in _leases(town))
    assert claimed == any("claims" in ref for ref in town.refs(repo))
    assert made == bool(list((town.home / "worktrees").iterdir()))
    assert town.processes() == []


def _leases(town: Town) -> str:
    with closing(sqlite3.connect(town.home / "leadsman.db")) as connection:
        return "".join(f"| {slot} {repo}" for slot, repo in connection.execute("select slot, repo from leases"))


@pytest.mark.timeout(120 + 3 * RUNS)
def test_many_short_runs_leave_nothing_behind_and_say_what_they_cost(
    town: Town, capsys: pytest.CaptureFixture[str]
) -> None:
    town.config = town.config.replace("slots = 4", "slots = 8")
    town.task("quick", FIX, 'publish = "none"\n')
    repos = [town.repo(f"acme/r{n}", max_parallel=2) for n in range(REPOSITORIES)]
    pulls = [town.pull_of(repos[n % REPOSITORIES], head=f"b{n}", files={f"f{n}": "x"}) for n in range(RUNS)]
    town.world.allowance(Viewer(town.bot).key).limit = 100 * RUNS  # GitHub's own would last for some 250
    town.start()
    before = _size(town.home / "leadsman.db")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda pull: town.says(pull, "/run quick"), pulls))
    for done in range(0, RUNS, 8):  # one bound for each few of them, however many there are
        town.until(f"{done} runs are closed", lambda done=done: len(_closed(town)) >= done)  # type: ignore[misc]
    town.until("all are closed", lambda: town.closed(RUNS))
    # The index hears of an end after the run's directory.
    town.until("all are counted", lambda: fleet(town)["reports"] == RUNS)
    state = fleet(town)
    assert (RUNS, 0, 0) == (state["dispatched"], state["pending"], state["active_runs"])
    assert 1 < state["peak"] <= 8
    for repo in repos:
        town.assert_nothing_is_left(repo)
        assert town.run_branches(repo) == []
    town.stop()
    for mirror in (town.home / "mirrors").glob("*/*.git"):
        refs = Git(mirror).run("for-each-ref", "--format=%(refname)", "refs/heads").text
        assert "" == refs, mirror
        kept = {path.name.partition(".")[0] for path in (mirror / "worktrees").glob("*")}
        assert kept <= {"spare-1"}, mirror
        assert list(Path(f"{mirror}.trash").glob("*")) == []
    assert "" == _sessions(town)
    assert leadsman(town, "runs", "--all", "--json").out.count('"state": "done"') == RUNS
    store = (_size(town.home / "leadsman.db") - before) / RUNS
    folder = sum(_size(path) for path in (town.home / "runs").rglob("*") if path.is_file()) / RUNS
    with capsys.disabled():
        print(f" [{RUNS} runs: {store / 1024:.1f} KiB of the store and {folder / 1024:.1f} KiB of files each]", end="")
    assert store < 64 * 1024
    assert folder < 128 * 1024


def _closed(town: Town) -> list[Path]:
    return [run for run in town.runs() if (run / "closed.json").exists()]


def _size(path: Path) -> int:
    return path.stat().st_size + (Path(f"{path}-wal").stat().st_size if Path(f"{path}-wal").exists() else 0)


def _sessions(town: Town) -> str:
    """The tmux sessions of this town's runs."""
    if shutil.which("tmux") is None:
        return ""
    done = subprocess.run(["tmux", "ls", "-F", "#S"], capture_output=True, text=True, timeout=30, check=False)
    ours = {f"lm-{run.name}" for run in town.runs()}
    return "".join(name for name in done.stdout.split() if name in ours)

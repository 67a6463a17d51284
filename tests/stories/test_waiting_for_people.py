"""A run that is blocked, or was interrupted by its host's restart, keeps its place until people say how it goes on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from bot.rundir import RunDir, read_json, write_json
from tests.bot.harbour import kill
from tests.stories.test_fleet import answer, fleet, leadsman
from tests.stories.town import FIX, Town
from tests.world import Pull, Repository

ASKS = """\
if [ -e work.txt ]; then echo 'resumed' >>work.txt; exit 0; fi
echo begun >work.txt
echo 'blocked: which *database* is it? @alice' >>"$LEADSMAN_STATUS_LOG"
"""

WAITS = "[ -e work.txt ] && { echo resumed >>work.txt; exit 0; }; echo begun >work.txt; exec sleep 1000"


def phase(town: Town) -> str:
    return next((str(run["phase"]) for run in fleet(town)["runs"]), "")


def blocked(town: Town) -> tuple[Repository, Pull, Path]:
    """A run that is blocked."""
    repo = town.repo()
    town.task("ask", ["sh", "-c", ASKS])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run ask")
    answer(town, pull, "is **blocked**")
    (run,) = town.runs()
    return repo, pull, run


def assert_is_kept(town: Town, repo: Repository, run: Path) -> None:
    assert (town.home / "worktrees" / run.name / "work.txt").read_text() == "begun\n"
    assert [ref for ref in town.refs(repo) if "claims" in ref] != []
    state = fleet(town)
    assert state["slots"]["wt-1"] == run.name
    assert (0, 0) == (state["active_runs"], state["running"])


def assert_went_on(town: Town, repo: Repository, run: Path) -> None:
    town.until("the run is closed", town.closed)
    assert repo.files(f"leadsman/run/{run.name}")["work.txt"] == "begun\nresumed\n"
    assert (2, 2) == ((read_json(run / "status.json") or {})["round"], (read_json(run / "spec.json") or {})["starts"])
    town.assert_nothing_is_left(repo)


def test_a_blocked_run_says_what_it_waits_for_and_keeps_its_place_through_a_restart(town: Town) -> None:
    repo, pull, run = blocked(town)
    said = answer(town, pull, "is **blocked**")
    assert "which *database* is it? @alice" in said.partition("```")[2]  # in a block of code, where nobody is mentioned
    assert f"/resume {run.name}\n/cancel {run.name}" in said
    town.says(pull, "/status")
    assert "is blocked: which" in answer(town, pull, "is blocked: which")
    other = town.pull_of(repo, head="other", files={"o.txt": "x"})
    town.says(other, "/run fix")
    assert "one has to end. This" in answer(town, other, "repo\\_busy")  # it holds its repository, too
    for end, crash in ((town.stop, ""), (town.kill, "resumed")):
        end()
        town.start(crash=crash)
        town.until("it is blocked still", lambda: phase(town) == "blocked")
        assert_is_kept(town, repo, run)
    assert town.journal().count('"event": "blocked"') == 1
    town.says(pull, "/resume")
    town.dies()
    town.start()  # the resume was obeyed, and is not lost
    assert "**Published** `ask`" in answer(town, pull, "**Published** `ask`")
    answer(town, other, "**Published** `fix`")
    town.until("both are closed", lambda: town.closed(2))
    town.assert_nothing_is_left(repo)


@pytest.mark.parametrize("server", ["runs", "is down"])
def test_leadsman_resume_lets_a_blocked_run_go_on_in_its_worktree(town: Town, server: str) -> None:
    repo, pull, run = blocked(town)
    if server == "is down":
        town.stop()
    done = leadsman(town, "resume", run.name, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["round"] == 2
    if server == "is down":
        town.start()
    answer(town, pull, "**Published** `ask`")
    assert_went_on(town, repo, run)


def test_a_resume_that_is_asked_for_twice_comes_once(town: Town) -> None:
    repo, pull, run = blocked(town)
    delivery = pull.comment("alice", "/resume")
    again = pull.comment("alice", f"/resume {run.name}")
    for _ in range(3):
        town.deliver(delivery)
    town.deliver(again)
    answer(town, pull, "**Published** `ask`")
    assert_went_on(town, repo, run)
    assert town.journal().count('"event": "resumed"') == 1


@pytest.mark.parametrize("how", ["comment", "command", "command while the server is down"])
def test_cancel_ends_a_blocked_run_and_its_place_is_given_back(town: Town, how: str) -> None:
    repo, pull, run = blocked(town)
    if how == "comment":
        town.says(pull, "/cancel")
    else:
        if "down" in how:
            town.stop()
        done = leadsman(town, "cancel", run.name)
        assert done.code == 0, done.err
        assert "cancelled" in done.out
        if "down" in how:
            town.start()
    assert "Nothing was published" in answer(town, pull, "**Cancelled** `ask`")
    town.until("the run is closed", town.closed)
    assert town.run_branches(repo) == []
    assert "begun" in (run / "changes.patch").read_text()
    town.assert_nothing_is_left(repo)
    refused = leadsman(town, "resume", run.name)
    assert (1, "") == (refused.code, refused.out)
    assert "its worktree was given back" in refused.err


def test_a_live_run_is_not_resumed_and_not_retried_and_its_pid_is_named(town: Town) -> None:
    repo = town.repo()
    town.task("wait", ["sh", "-c", WAITS])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run wait")
    (run,) = town.until("it was asked for", lambda: town.runs() or None)
    pid = town.until("it runs", lambda: (read_json(run / "status.json") or {}).get("pid"))
    for command in ("resume", "retry"):
        done = leadsman(town, command, run.name)
        assert (1, "") == (done.code, done.out)
        assert f"pid {pid}" in done.err
        town.says(pull, f"/{command} {run.name}")
    town.until("both are answered", lambda: sum(f"pid {pid}" in said for said in town.answers(pull)) == 2)
    town.says(pull, "/cancel")
    answer(town, pull, "**Cancelled**")


def restart_the_host(town: Town, run: RunDir, *, tells: bool) -> None:
    """Kills all at once, or tells them to end before, as a host does that is shut down; what is written down is of an
    earlier boot then."""
    town.kill()
    status: dict[str, Any] = read_json(run.status) or {}
    if not tells:
        os.killpg(os.getpgid(status["supervisor_pid"]), signal.SIGKILL)
    for pid in (status["supervisor_pid"], *town.processes()):
        try:
            kill(pid, signal.SIGTERM if tells else signal.SIGKILL)
        except ProcessLookupError:
            continue
    status = read_json(run.status) or {}
    assert status["state"] == ("cancelled" if tells else "running")
    write_json(run.status, {**status, "boot_id": "00000000-0000-0000-0000-000000000000"})


@pytest.mark.parametrize("how", ["/resume", "leadsman resume", "/cancel", "leadsman cancel"])
def test_after_a_restart_of_the_host_a_run_waits_for_people_in_its_worktree(town: Town, how: str) -> None:
    repo = town.repo()
    town.task("wait", ["sh", "-c", WAITS])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run wait")
    town.until("it runs", lambda: list((town.home / "worktrees").glob("*/work.txt")) or None)
    (run,) = town.runs()
    restart_the_host(town, RunDir(run), tells="leadsman" in how)
    town.start()
    said = answer(town, pull, "was **interrupted**")
    assert f"/resume {run.name}\n/cancel {run.name}" in said
    assert_is_kept(town, repo, run)
    if how.startswith("/"):
        town.says(pull, how)
    else:
        done = leadsman(town, how.split()[1], run.name)
        assert done.code == 0, done.err
    if "resume" in how:
        answer(town, pull, "**Published** `wait`")
        assert_went_on(town, repo, run)
    else:
        answer(town, pull, "**Cancelled** `wait`")
        town.until("the run is closed", town.closed)
        town.assert_nothing_is_left(repo)


def test_a_run_that_was_killed_on_a_host_that_goes_on_is_lost_and_leaves_nothing(town: Town) -> None:
    repo = town.repo()
    town.task("wait", ["sh", "-c", WAITS])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run wait")
    town.until("it runs", lambda: list((town.home / "worktrees").glob("*/work.txt")) or None)
    (run,) = town.runs()
    kill((read_json(run / "status.json") or {})["supervisor_pid"])
    answer(town, pull, "**Lost** `wait`")
    town.until("the run is closed", town.closed)
    assert "begun" in (run / "changes.patch").read_text()
    town.assert_nothing_is_left(repo)


def test_a_check_that_was_killed_is_run_again_since_that_says_nothing_of_the_commit(town: Town) -> None:
    repo = town.repo()
    once = town.folder / "once"
    kill_me = f"[ -e {once} ] || {{ touch {once}; kill -9 $PPID; kill -9 $$; }}; exit 0"
    town.task("checked", FIX, f"[[task.verify]]\nrun = {json.dumps(['sh', '-c', kill_me])}\n")
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run checked")
    assert "1 of 1 checks hold" in answer(town, pull, "**Published** `checked`")
    town.until("the run is closed", town.closed)
    town.assert_nothing_is_left(repo)


def test_a_check_that_is_killed_each_time_does_not_hold(town: Town) -> None:
    repo = town.repo()
    town.task("checked", FIX, '[[task.verify]]\nrun = ["sh", "-c", "kill -9 $PPID; kill -9 $$"]\n')
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run checked")
    answer(town, pull, "**Failed** `checked` (verify)")
    town.until("the run is closed", town.closed)
    assert town.run_branches(repo) == []
    town.assert_nothing_is_left(repo)

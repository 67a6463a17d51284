"""Comment in, commits and comments out: the main road, as people see it."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gitops.git import Git
from tests.stories.town import FIX, Town


def trailers_of(town: Town, repo_path: Path, ref: str) -> dict[str, str]:
    text = Git(repo_path).run("log", "-1", "--format=%(trailers:only,unfold)", ref).text
    return dict(line.split(": ", 1) for line in text.splitlines() if line)


def test_a_comment_becomes_a_published_commit_and_one_comment_says_so(town: Town) -> None:
    repo = town.repo()
    town.task("checked", FIX, '[[task.verify]]\nrun = ["grep", "-q", "fixed", "fixed.txt"]\n')
    pull = town.pull_of(repo)
    town.start()
    delivery = town.says(pull, "Please.\n\n/run checked")
    (run,) = town.until("the run is closed", town.closed)
    said = town.settled(pull, "**Published**")

    branch = f"leadsman/run/{run.name}"
    tip = repo.sha(branch)
    assert f"`{tip}`" in said
    assert f"`{repo.sha('topic')}`" in said
    assert "1 of 1 checks hold" in said
    assert "asked by | alice with `/run checked`" in said
    assert trailers_of(town, repo.git.path, f"refs/heads/{branch}") == {
        "Leadsman-Run": run.name,
        "Leadsman-Task": "checked",
        "Claim-Id": json.loads((run / "claim.json").read_text())["oid"],
        "Requested-by": "alice",
    }
    author = Git(repo.git.path).run("log", "-1", "--format=%an <%ae> %cn <%ce>", tip).text
    assert author == "Leadsman <leadsman@localhost> Leadsman <leadsman@localhost>"
    town.until("rocket", lambda: {"eyes", "rocket"} <= town.reactions(delivery))
    town.assert_nothing_is_left(repo)


def test_who_reads_the_report_may_ask_for_the_next_run_at_once(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()

    def published(count: int) -> bool:
        return sum("**Published**" in said for said in town.answers(pull)) == count

    for count in (1, 2, 3):
        town.says(pull, "/run fix")
        town.until("the report", functools.partial(published, count))
        assert town.closed(count)


def test_what_the_command_leaves_uncommitted_is_committed_by_the_bot(town: Town) -> None:
    repo = town.repo()
    told = 'env | grep ^LEADSMAN_ >variables; cat "$LEADSMAN_TICKET" >ticket'
    town.task("leave", ["sh", "-c", f"echo new > new.txt; echo more >> README.md; {told}"])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run leave")
    (run,) = town.until("the run is closed", town.closed)
    said = town.settled(pull, "**Published**")
    assert "the last one by the bot: the command left it uncommitted" in said
    assert "not checked by any command" in said
    branch = f"leadsman/run/{run.name}"
    files = repo.files(branch)
    assert files["new.txt"] == "new\n"
    assert json.loads(files["ticket"])["author"] == "alice"
    variables = dict(line.split("=", 1) for line in files["variables"].splitlines())
    assert variables["LEADSMAN_DEADLINE"].isdigit()
    wanted = {
        "RUN_ID": run.name,
        "RUN_DIR": str(run),
        "STATUS_LOG": str(run / "status.log"),
        "REPORT": str(run / "worker-report.md"),
        "TICKET": str(run / "ticket.json"),
        "BASE": repo.sha("topic"),
        "BRANCH": f"leadsman/{run.name}",
        "MAX_TURNS": str(json.loads((run / "intent.json").read_text())["limit"]["turns"]),
    }
    assert wanted == {name: variables[f"LEADSMAN_{name}"] for name in wanted}
    assert trailers_of(town, repo.git.path, f"refs/heads/{branch}")["Leadsman-Run"] == run.name


def test_a_command_that_changes_nothing_publishes_nothing_and_says_so(town: Town) -> None:
    repo = town.repo()
    town.task("look", ["true"])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run look")
    town.until("the run is closed", town.closed)
    town.settled(pull, "**Nothing to publish** from `look`: The command left no change")
    assert town.run_branches(repo) == []


def test_a_failed_check_publishes_nothing_and_keeps_the_commits(town: Town) -> None:
    repo = town.repo()
    town.task("checked", FIX, '[[task.verify]]\nrun = ["false"]\n[[task.verify]]\nrun = ["true"]\n')
    pull = town.pull_of(repo)
    town.start()
    delivery = town.says(pull, "/run checked")
    (run,) = town.until("the run is closed", town.closed)
    said = town.settled(pull, "**Failed** `checked` (verify)")
    assert "an earlier check did not hold" in said
    assert town.run_branches(repo) == []
    mirror = next((town.home / "mirrors" / "github").glob("*.git"))
    kept = Git(mirror).run("rev-parse", f"refs/leadsman/recover/{run.name}").text
    assert f"`{kept}`" in said
    town.until("confused", lambda: "confused" in town.reactions(delivery))
    town.assert_nothing_is_left(repo)


def test_a_check_runs_on_the_exact_commit_and_not_on_what_was_left_lying(town: Town) -> None:
    repo = town.repo(files={"README.md": "hello\n", ".gitignore": "*.tmp\n"})
    town.task(
        "half",
        ["sh", "-c", "echo x > a.txt; echo y > ignored.tmp"],
        '[[task.verify]]\nrun = ["test", "-e", "ignored.tmp"]\n',
    )
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run half")
    town.settled(pull, "**Failed** `half` (verify)")


def test_a_check_that_must_be_red_at_the_base_is_run_there_too(town: Town) -> None:
    repo = town.repo(files={"code.txt": "broken\n"})
    fix = ["sh", "-c", "echo works > code.txt; mkdir -p tests; echo works > tests/expected"]
    check = '[[task.verify]]\nrun = ["diff", "code.txt", "tests/expected"]\nred_at_base = ["tests/**"]\nrepeat = 2\n'
    town.task("red", fix, check)
    town.task("green", ["sh", "-c", "mkdir -p tests; echo broken > tests/expected"], check)
    pull, other = town.pull_of(repo), town.pull_of(repo, head="other", files={"other.txt": "x"})
    town.start()
    town.says(pull, "/run red")
    said = town.settled(pull, "**Published**")
    assert "check at base: red at base" in said
    assert "check, 2/2" in said
    town.says(other, "/run green")
    assert "NOT red at base" in town.settled(other, "**Failed**")


def test_a_failing_command_is_reported_with_its_exit_code_and_the_end_of_its_log(town: Town) -> None:
    repo = town.repo()
    town.task("break", ["sh", "-c", "echo half > half.txt; echo 'it broke: @alice <!-- x --> ```'; exit 3"])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run break")
    (run,) = town.until("the run is closed", town.closed)
    said = town.settled(pull, "**Failed** `break` (command)")
    assert "exit code 3" in said
    assert "````" in said  # the fence is longer than what the log holds
    assert "half.txt" in (run / "changes.patch").read_text()
    assert town.run_branches(repo) == []
    town.assert_nothing_is_left(repo)


def test_a_command_that_is_not_there_is_named(town: Town) -> None:
    repo = town.repo()
    town.task("nowhere", ["./tools/nowhere"])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run nowhere")
    assert "tools/nowhere" in town.settled(pull, "**Failed** `nowhere`")


def test_twenty_copies_of_one_delivery_at_once_start_one_run(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    delivery = pull.comment("alice", "/run fix")
    with ThreadPoolExecutor(20) as pool:
        answers = sorted(posted.status for posted in pool.map(town.deliver, [delivery] * 20))
    assert [200] * 19 + [202] == answers
    town.until("the run is closed", town.closed)
    town.settled(pull, "**Published**")
    assert len(town.runs()) == 1
    assert len(town.run_branches(repo)) == 1


def test_sixteen_runs_of_different_repositories_at_once_all_succeed(tmp_path: Path, town: Town) -> None:
    town.config = town.config.replace("slots = 4", "slots = 16")
    repos = [town.repo(f"acme/repo{n}") for n in range(16)]
    pulls = [town.pull_of(repo) for repo in repos]
    town.start()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda pull: town.says(pull, "/run fix"), pulls))
    town.until("all runs are closed", lambda: town.closed(16))
    for repo, pull in zip(repos, pulls, strict=True):
        town.settled(pull, "**Published**")
        assert len(town.run_branches(repo)) == 1
        town.assert_nothing_is_left(repo)


def test_the_same_task_twice_at_once_is_answered_with_who_runs_it(town: Town) -> None:
    repo = town.repo()
    go = town.folder / "go"
    town.task("wait", ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done"])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run wait")
    town.until("it runs", lambda: [run for run in town.runs() if (run / "status.json").exists()])
    town.says(pull, "/run wait")
    second = town.until("an answer", lambda: next((b for b in town.answers(pull) if "Nothing was started" in b), None))
    assert f"/runs/{town.runs()[0].name})" in second
    assert f"/cancel {town.runs()[0].name}" in second
    go.touch()
    town.until("the run is closed", town.closed)
    assert len(town.runs()) == 1


def test_cancel_ends_the_run_and_everything_it_started(town: Town) -> None:
    repo = town.repo()
    town.task("sleep", ["sh", "-c", "sleep 1000 & setsid sleep 1001 & wait"])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run sleep")
    town.until("it runs", lambda: len(town.processes()) >= 3 or None)
    town.says(pull, "/cancel")
    town.until("the run is closed", town.closed)
    said = town.until(
        "report", lambda: next((b for b in town.answers(pull) if "**Cancelled** `sleep` by alice" in b), None)
    )
    assert "Nothing was published" in said
    town.assert_nothing_is_left(repo)


def test_closing_the_pull_request_cancels_its_runs(town: Town) -> None:
    repo = town.repo()
    town.task("sleep", ["sleep", "1000"])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run sleep")
    town.until("it runs", lambda: len(town.processes()) >= 2 or None)
    town.deliver(pull.close(by="alice"))
    town.until("the run is closed", town.closed)
    town.settled(pull, "**Cancelled**")
    town.assert_nothing_is_left(repo)


@pytest.mark.parametrize(("on_push", "word"), [("outdated", "**Outdated**"), ("cancel", "**Cancelled**")])
def test_a_push_meanwhile_outdates_the_run_or_cancels_it(town: Town, on_push: str, word: str) -> None:
    repo = town.repo()
    go = town.folder / "go"
    town.task("wait", ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done"], f'on_push = "{on_push}"\n')
    pull = town.pull_of(repo)
    old = repo.sha("topic")
    town.start()
    town.says(pull, "/run wait")
    town.until("it runs", lambda: len(town.processes()) >= 2 or None)
    town.deliver(pull.push({"more.txt": "y"}))
    said = town.settled(pull, word)
    go.touch()
    town.until("the run is closed", town.closed)
    assert old in said
    assert repo.sha("topic") in said


def test_the_server_can_be_stopped_in_the_middle_and_the_run_goes_on(town: Town) -> None:
    repo = town.repo()
    go = town.folder / "go"
    town.task("wait", ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; echo x > x.txt"])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run wait")
    town.until("it runs", lambda: len(town.processes()) >= 2 or None)
    town.stop()
    assert len(town.processes()) >= 2
    go.touch()
    town.until(
        "it has ended", lambda: "finished" in (town.runs()[0] / "status.json").read_text() and not town.processes()
    )
    town.start()
    town.settled(pull, "**Published**")
    town.until("the run is closed", town.closed)
    town.assert_nothing_is_left(repo)


def test_a_second_server_of_one_home_is_refused_with_exit_code_4(town: Town) -> None:
    town.repo()
    town.start()
    argv = [sys.executable, "-m", "tests.stories.mortal", str(town.home), str(town.folder / "leadsman.toml"), ""]
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "BOT_TOKEN": "x" * 8, "HOOK_SECRET": "y"}
    second = subprocess.run(
        argv, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, check=False
    )
    assert second.returncode == 4
    assert town.server is not None
    assert re.search(rf"held by pid {town.server.pid} ", second.stderr)


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("git sparse-checkout set nothing", "sparse checkout"),
        (
            "git checkout -qb other HEAD~1; echo 1 > topic.txt; git add .; git commit -qm o; git merge $LEADSMAN_BASE",
            "merge",
        ),
        ("rm .git; git init -q .", "damaged"),
    ],
)
def test_a_command_that_leaves_its_worktree_in_disorder_fails_and_publishes_nothing(
    town: Town, command: str, word: str
) -> None:
    repo = town.repo()
    town.task("disorder", ["sh", "-c", f"{command} || true"])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run disorder")
    assert word in town.settled(pull, "**Failed** `disorder` (seal)")
    assert town.run_branches(repo) == []
    town.until("closed", town.closed)
    town.assert_nothing_is_left(repo)

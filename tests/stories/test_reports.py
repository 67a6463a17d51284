"""What a run leaves for people to read and for anyone to check."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest

from bot import liveness
from bot.rendering import BUDGET, render
from bot.reports import Risk
from bot.signing import envelope, public_key
from bot.statement import carried_in, read
from gitops.git import Git
from tests.stories import nursery
from tests.stories.town import FIX, Town

TOKEN = "ghp_" + "Z" * 36


def leadsman(town: Town, *args: str, code: int = 0) -> str:
    """A command of the operator, in the town's home."""
    ended = nursery.leadsman(*args, cwd=town.folder, environ={"LEADSMAN_HOME": str(town.home)})
    assert code == ended.code, ended
    return ended.out


def test_a_report_is_signed_with_the_key_that_the_server_shows(town: Town) -> None:
    repo = town.repo()
    town.task("checked", FIX, '[[task.verify]]\nrun = ["grep", "-q", "fixed", "fixed.txt"]\nrepeat = 2\n')
    lenient = '[[risk.rules]]\ntier = "T0"\nwhy = "x"\nmatch = ["**"]\n'
    pull = town.pull_of(repo, files={".leadsman.toml": lenient})
    town.start()
    town.says(pull, "/run checked")
    (run,) = town.until("the run is closed", town.closed)
    said = town.settled(pull, "**Published**")

    with urllib.request.urlopen(f"{town.address}/.well-known/leadsman.pub") as answer:
        shown = answer.read()
    assert leadsman(town, "key") == shown.decode()
    text = (run / "report.json").read_text()
    assert envelope(text).signed_by(public_key(shown))
    report = read(text).report
    assert "2/2" in said
    main = repo.sha("main")  # whose rules count, not the pull request's own
    assert Risk(tier="T2", reasons=("no rule names fixed.txt",), branch="main", rules_at=main) == report.risk
    assert repo.sha(f"leadsman/run/{run.name}") == report.tip
    (subject, *logs) = json.loads(envelope(text).payload)["subject"]
    assert {"gitCommit": report.tip} == subject["digest"]
    assert len(logs) == 3
    assert [text] == list(carried_in(said))
    assert render(report, budget=BUDGET - 1000) in said
    assert leadsman(town, "report", run.name, "--json").strip() == text
    assert leadsman(town, "report", run.name[:12]).strip() == (run / "report.md").read_text().strip()
    page = leadsman(town, "report", run.name, "--format", "html")
    assert [text] == list(carried_in(page))
    assert not re.search(r"(?:src|href)=\"(?!http)", page)


@pytest.mark.parametrize(
    ("state", "words", "checks"),
    [
        ("success", "1 of 1 checks hold", '[[task.verify]]\nrun = ["true"]\n'),
        ("failure", "failed (verify), nothing was published", '[[task.verify]]\nrun = ["false"]\n'),
        ("pending", "not checked", ""),
    ],
)
def test_the_commits_carry_the_verdict_and_what_was_not_checked_is_not_green(
    town: Town, state: str, words: str, checks: str
) -> None:
    repo = town.repo()
    town.task("mend", FIX, checks)
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run mend")
    (run,) = town.until("the run is closed", town.closed)
    tips = [town.refs(repo)[branch] for branch in town.run_branches(repo)]
    assert [(sha, state, "leadsman/mend") for sha in (pull.head_sha, *tips)] == [
        (status.sha, status.state, status.context) for status in repo.statuses
    ]
    assert all(words in str(status.description) for status in repo.statuses)
    assert all(status.target_url == f"{town.address}/runs/{run.name}" for status in repo.statuses)


def test_a_note_on_the_published_commit_holds_the_report(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run fix")
    (run,) = town.until("the run is closed", town.closed)
    tip = town.refs(repo)[f"refs/heads/leadsman/run/{run.name}"]
    shown = Git(repo.git.path).run("notes", "--ref=leadsman", "show", tip).text
    assert (run / "report.json").read_text().strip() == shown.strip()


def test_a_comment_has_the_report_checked_again(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run fix")
    (run,) = town.until("the run is closed", town.closed)
    town.settled(pull, "**Published**")
    town.says(pull, "/verify")
    said = town.until("an answer", lambda: next((b for b in town.answers(pull) if "checked again" in b), None))
    assert f"The report of run `{run.name}` of `fix`, checked again: 7 of 7 claims hold." in said
    repo.git.set_ref(f"refs/heads/leadsman/run/{run.name}", repo.sha("main"))
    with (run / "worker.log").open("a") as log:
        log.write("and all was well")
    town.says(pull, f"/verify {run.name}")
    said = town.until("another", lambda: next((b for b in town.answers(pull) if "5 of 7" in b), None))
    assert "it was pushed over" in said
    assert re.search(r"log worker.log \| differs", said)


def test_a_remote_that_takes_no_notes_loses_only_the_note(town: Town) -> None:
    repo = town.repo()
    hook = repo.git.path / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ncase $1 in refs/notes/*) echo 'no notes here' >&2; exit 1;; esac\n")
    hook.chmod(0o755)
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run fix")
    (run,) = town.until("the run is closed", town.closed)
    town.settled(pull, "**Published**")
    assert "no notes here" in json.loads((run / "left.json").read_text())["note"]
    town.assert_nothing_is_left(repo)


def test_a_secret_that_a_command_prints_is_nowhere_once_it_has_ended(town: Town) -> None:
    repo = town.repo()
    script = town.script("leak", f"#!/bin/sh\necho {TOKEN}\necho https://u:{TOKEN}@host/\nexit 1\n")
    town.task("leak", [script])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run leak")
    (run,) = town.until("the run is closed", town.closed)
    said = town.settled(pull, "**Failed** `leak`")
    assert "***" in said
    assert TOKEN not in said
    assert "***\nhttps://***@host/\n" == (run / "worker.log").read_text()
    files = [path for path in town.home.rglob("*") if path.is_file()]
    assert [] == [path for path in files if TOKEN.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("command", "commits", "patch"),
    [("false", False, False), (f"{FIX[2]}; false", True, False), ("echo x > y; false", False, True)],
)
def test_a_report_names_as_kept_what_is_kept(town: Town, command: str, commits: bool, patch: bool) -> None:
    repo = town.repo()
    town.task("fails", ["sh", "-c", command])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run fails")
    (run,) = town.until("the run is closed", town.closed)
    said = town.settled(pull, "**Failed** `fails`")
    (mirror,) = town.home.glob("mirrors/github/*.git")
    kept = Git(mirror).run("for-each-ref", "--format=%(refname)", "refs/leadsman/recover").text
    assert commits == (kept == f"refs/leadsman/recover/{run.name}")
    assert commits == (f"commits that are nowhere else: refs/leadsman/recover/{run.name}" in said)
    assert patch == (run / "changes.patch").exists() == ("what was not committed: changes.patch" in said)
    assert (commits or patch) == ("**Kept**" in said)


def test_figures_that_a_runner_prints_are_in_the_report(town: Town) -> None:
    repo = town.repo()
    town.task("count", FIX, '[[task.verify]]\nrun = ["echo", "=== 12 passed, 1 skipped in 0.12s ==="]\n')
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run count")
    assert "| 12 passed, 1 skipped (pytest) |" in town.settled(pull, "**Published**")


def test_a_check_that_is_cancelled_is_neither_green_nor_a_failure(town: Town) -> None:
    repo = town.repo()
    town.task("slow", FIX, '[[task.verify]]\nrun = ["sleep", "1000"]\n[[task.verify]]\nrun = ["true"]\n')
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run slow")
    (run,) = town.until("it is checked", lambda: _with_status(town))
    check = next((run / "checks").iterdir())
    liveness.request_cancel(check, "bo")
    said = town.settled(pull, "**Cancelled** `slow` by bo, which ended the check sleep 1000")
    assert "| cancelled by bo |" in said
    assert "`true`: an earlier check did not hold" in said
    assert "**Failed**" not in said
    assert "hold" not in said.splitlines()[2]
    assert town.run_branches(repo) == []


def _with_status(town: Town) -> list[Path] | None:
    found = [run for run in town.runs() if list(run.glob("checks/*/status.json"))]
    started = [run for run in found if json.loads(next(run.glob("checks/*/status.json")).read_text())["pid"]]
    return started or None


def test_an_endless_log_fits_into_a_comment_and_the_rest_is_named(town: Town) -> None:
    repo = town.repo()
    town.task("talk", ["sh", "-c", "yes '`<b>@alice #7 漢字' | head -c 5000000; exit 4"])
    pull = town.pull_of(repo)
    town.start()
    for number in range(1, 3):
        town.says(pull, "/run talk")
        town.until("the runs are closed", lambda number=number: town.closed(number))
    town.until("both are answered", lambda: all("exit code 4" in body for body in town.answers(pull)) or None)
    assert all(len(body.encode()) < 65_536 and body.count("```") == 2 for body in town.answers(pull))

"""The board in the repository, and the branches that are tidied away once their work is merged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gitops.git import Git
from tests.stories import nursery
from tests.stories.town import FIX, Town
from tests.world import Repository

HEADS = "refs/heads/"
BOARD = '[board]\nprojects = ["*"]\nevery_seconds = 0\n'


def commits(repo: Repository, ref: str) -> list[str]:
    return Git(repo.git.path).run("log", "--format=%s", ref).text.splitlines()


def board_of(repo: Repository, branch: str = "leadsman/publish") -> tuple[str, dict[str, Any]]:
    files = repo.files(branch)
    return files["BOARD.md"], json.loads(files["board.json"])


def publish(town: Town, *args: str, code: int = 0) -> str:
    environ = {"LEADSMAN_HOME": str(town.home), "BOT_TOKEN": town.bot.token, "HOOK_SECRET": "x" * 16}
    config = str(town.folder / "leadsman.toml")
    ended = nursery.leadsman("--config", config, "board", "publish", *args, cwd=town.folder, environ=environ)
    assert code == ended.code, ended
    return ended.out + ended.err


def test_the_board_tells_of_a_run_while_it_is_on_and_when_it_has_ended(town: Town) -> None:
    repo = town.repo()
    go = town.folder / "go"
    town.config += BOARD
    town.task("wait", ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; {FIX[2]}"])
    pull = town.pull_of(repo)
    town.start()
    town.until("an empty board", lambda: "refs/heads/leadsman/publish" in town.refs(repo) or None)
    text, data = board_of(repo)
    assert ([], [], []) == (data["live"], data["waiting"], data["recent"])
    assert "README.md" in repo.files("leadsman/publish"), "it is on top of the code"
    town.says(pull, "/run wait")
    town.until("it runs", lambda: len(town.processes()) >= 2 or None)
    assert "acme-shop: " in publish(town)
    text, data = board_of(repo)
    (live,) = data["live"]
    (run,) = town.runs()
    assert (run.name, "wait", "alice") == (live["run"], live["task"], live["asked_by"])
    assert json.loads((run / "claim.json").read_text())["oid"] == live["claim"]["id"]
    assert {"of": 4, "taken": 1} == data["slots"]
    assert f"| `{run.name}` | `wait` |" in text
    town.until("it says the same, and is not published again", lambda: "nothing has changed" in publish(town))
    go.touch()
    town.until("the run is closed", town.closed)
    data = town.until("it is told", lambda: board if (board := board_of(repo)[1])["recent"] else None)
    (ended,) = data["recent"]
    assert ("published", repo.sha(f"leadsman/run/{run.name}")) == (ended["outcome"], ended["tip"])
    assert str(town.folder) not in json.dumps(data) + board_of(repo)[0], "no path of the host"
    assert repo.sha("main") == Git(repo.git.path).run("merge-base", "main", "leadsman/publish").text


def test_a_board_of_its_own_shares_no_history_with_the_code(town: Town) -> None:
    repo = town.repo()
    town.config += BOARD + "orphan = true\n"
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run fix")
    town.until("there is a board", lambda: "leadsman/board" in repo.branches or None)
    town.until("it is told", lambda: board_of(repo, "leadsman/board")[1]["recent"] or None)
    assert {"BOARD.md", "board.json"} == set(repo.files("leadsman/board"))
    assert "refs/heads/leadsman/publish" not in town.refs(repo)
    assert Git(repo.git.path).run("merge-base", "main", "leadsman/board", check=False).code == 1


def test_a_board_and_runs_on_one_branch_lose_nothing_of_each_other(town: Town) -> None:
    repo = town.repo()
    town.config += BOARD
    town.task("share", FIX, 'publish = "shared"\n')
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run share")
    town.settled(pull, "**Published**")
    town.until("it is told", lambda: board_of(repo)[1]["recent"] or None)
    assert "fixed.txt" in repo.files("leadsman/publish")


def test_a_board_is_never_published_to_a_protected_branch(town: Town) -> None:
    repo = town.repo()
    town.config += BOARD + 'branch = "status"\n'
    repo.git.set_ref("refs/heads/status", repo.sha("main"))
    repo.protected.add("status")
    town.start()
    town.stop()
    assert "status is protected on the forge" in publish(town, code=1)
    assert repo.sha("main") == repo.sha("status")
    assert "There is no project" in publish(town, "shpo", code=2)


@pytest.mark.parametrize("how", ["squash", "merge", "half"])
def test_a_branch_is_removed_once_its_work_is_proved_to_be_merged(town: Town, how: str) -> None:
    repo = town.repo()
    town.config = "[publish]\nremove_merged = true\n" + town.config
    town.task("undo", ["git", "rm", "-q", "topic.txt"])
    pull, other = town.pull_of(repo), town.pull_of(repo, head="other", files={"other.txt": "x\n"})
    town.start()
    town.says(pull, "/run fix")
    town.until("the run is closed", town.closed)
    (branch,) = town.run_branches(repo)
    tip = town.refs(repo)[branch]
    if how == "half":
        town.says(pull, "/run undo")
        town.says(other, "/run fix")
        town.until("all are closed", lambda: town.closed(3))
    match how:
        case "squash":
            repo.commit({"fixed.txt": "fixed\n", "topic.txt": "x\n"}, branch="main", by="alice")
        case "merge":
            repo.git.set_ref("refs/heads/topic", tip)
        case "half":
            repo.commit({"fixed.txt": "fixed\n"}, branch="main", by="alice")
            of_other = next(
                ref for ref in town.run_branches(repo) if "other.txt" in repo.files(ref.removeprefix(HEADS))
            )
            repo.git.set_ref("refs/heads/other", town.refs(repo)[of_other])
            town.deliver(other.close(by="alice"))
            town.until("what was merged is away", lambda: of_other not in town.refs(repo))
            town.stop()
            assert 2 == len(town.run_branches(repo)), "the half of it, and what main never had, prove nothing"
            return
    town.deliver(other.close(by="alice"))
    town.until("the branch is away", lambda: not town.run_branches(repo))
    town.until("it is noted", lambda: branch in town.journal() or None)
    verified = Git(repo.git.path).run("notes", "--ref=leadsman", "show", tip, check=False)
    assert verified.code == 0, "its report stays"


def test_eight_runs_publish_to_one_branch_at_once_and_all_of_them_land(town: Town) -> None:
    repo = town.repo(max_parallel=8)
    go = town.folder / "go"
    town.config = town.config.replace("slots = 4", "slots = 8")
    script = 'echo "$LEADSMAN_RUN_ID" > "$LEADSMAN_RUN_ID.txt"; git add .; git commit -qm "$LEADSMAN_RUN_ID"'
    town.task("share", ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; {script}"], 'publish = "shared"\n')
    pulls = [town.pull_of(repo, head=f"topic-{n}", files={f"{n}.txt": "x\n"}) for n in range(8)]
    town.start()
    for pull in pulls:
        town.says(pull, "/run share")
    town.until("all run", lambda: len(list(town.home.glob("runs/*/status.json"))) == 8 or None)
    go.touch()
    runs = town.until("all are closed", lambda: town.closed(8))
    for pull in pulls:
        town.settled(pull, "**Published**")
    files = repo.files("leadsman/publish")
    assert {f"{run.name}.txt" for run in runs} <= set(files)
    assert {run.name for run in runs} <= set(commits(repo, "refs/heads/leadsman/publish"))

"""What a run's commits may never do: reach main, or anything of others, whatever the command tries."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from gitops.git import Git
from tests.stories.town import FIX, Town

TRIES = {
    "push": "git push origin HEAD:main",
    "forced": "git push --force --no-verify origin HEAD:refs/heads/main",
    "mirror": "git push --mirror origin",
    "all": "git push --all; git push --tags; git push --prune origin 'refs/heads/*:refs/heads/*'",
    "deletes": "git push origin --delete main",
    "remote": "git remote set-url origin {url}; git remote add evil {url}; git push evil HEAD:main",
    "pushurl": "git config remote.origin.pushurl {url}; git push origin HEAD:main",
    "alias": "git config alias.status '!git push origin HEAD:main'; git status",
    "default": "git config push.default current; git config branch.x.remote origin; git push",
    "instead": "git config url.{url}.insteadOf origin; git push {url} HEAD:main",
    "unhooked": "git -c core.hooksPath=/dev/null push {url} HEAD:main; git config core.hooksPath /dev/null; git push",
    "hooks": "rm -rf $(git config core.hooksPath)/*; h=$(git rev-parse --git-common-dir)/hooks; mkdir $h;"
    " printf '#!/bin/sh\\ngit push origin HEAD:main\\n' > $h/post-commit; chmod +x $h/*; git push origin HEAD:main",
    "clean": "env -i PATH=$PATH HOME=$HOME git push {url} HEAD:main",
    "path": "unset GIT_CONFIG_COUNT; git push --no-verify {url} HEAD:main",
    "refs": "git for-each-ref --format='%(refname)' | while read r; do git update-ref $r HEAD; done;"
    " git push origin +refs/remotes/origin/main:refs/heads/main",
    "reconfigured": "git config receive.denyCurrentBranch ignore; git config --unset remote.origin.url;"
    " git config remote.origin.mirror true; git push origin",
}


@pytest.mark.parametrize("how", TRIES)
def test_a_command_that_pushes_changes_nothing_on_the_remote(town: Town, how: str) -> None:
    repo = town.repo()
    other = repo.git.commit("refs/heads/leadsman/run/other", {"a": "b"}, parent=None, message="x", author="a", at=1)
    pull = town.pull_of(repo)
    url = f"{town.world.url}/{repo.full_name}.git"
    script = town.script("evil", f"#!/bin/sh\n{' '.join(FIX[2:])}\n{TRIES[how].format(url=url)}\nexit 0\n")
    town.task("evil", [script])
    before = town.refs(repo)
    town.start()
    town.says(pull, "/run evil")
    (run,) = town.until("the run is closed", town.closed)
    town.until("an answer", lambda: [body for body in town.answers(pull) if "**" in body] or None)
    after = town.refs(repo)
    assert before == {ref: after.get(ref) for ref in before}, "main and others' branches, byte for byte"
    assert other == after["refs/heads/leadsman/run/other"]
    extra = set(after) - set(before)
    assert extra <= {f"refs/heads/leadsman/run/{run.name}", "refs/notes/leadsman"}
    town.assert_nothing_is_left(repo)


def test_the_report_says_what_was_tried(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.task("evil", ["sh", "-c", f"{FIX[2]}; git push --no-verify origin +HEAD:refs/heads/main; true"])
    town.start()
    town.says(pull, "/run evil")
    said = town.settled(pull, "**Published**")
    assert "**Tried and refused**" in said
    assert f"- push of HEAD to refs/heads/main of {town.world.url}/{repo.full_name}.git by force" in said
    (run,) = town.until("the run is closed", town.closed)
    assert "Nothing can be pushed from inside a run" in (run / "worker.log").read_text()


def test_the_environment_of_a_run_holds_no_credential(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    look = "env > seen.txt; cat $HOME/.netrc $HOME/.gitconfig $HOME/.git-credentials >> seen.txt 2>/dev/null; "
    look += "git config --list --show-origin >> seen.txt; cat $(git rev-parse --git-common-dir)/config >> seen.txt; "
    look += "printf 'protocol=http\\nhost=x\\n\\n' | git credential fill >> seen.txt 2>&1; true"
    town.task("look", ["sh", "-c", look])
    town.start()
    town.says(pull, "/run look")
    (run,) = town.until("the run is closed", town.closed)
    town.settled(pull, "**Published**")
    seen = repo.files(f"leadsman/run/{run.name}")["seen.txt"]
    assert "LEADSMAN_RUN_ID" in seen
    assert town.bot.token not in seen
    assert town.world.secret not in seen
    assert "password=" not in seen


@pytest.mark.parametrize("how", ["rm .git", "echo gitdir: /etc > .git", "rm .git; mkdir .git", "git init -q ."])
def test_a_run_that_damages_its_own_git_file_is_told_and_publishes_nothing(town: Town, how: str) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.task(
        "evil", ["sh", "-c", f"{FIX[2]}; rm -rf .git.bak; {how if how != 'git init -q .' else 'rm .git; ' + how}"]
    )
    main = repo.sha("main")
    town.start()
    town.says(pull, "/run evil")
    town.settled(pull, "**Failed** `evil` (seal)")
    town.until("the run is closed", town.closed)
    assert town.run_branches(repo) == []
    assert main == repo.sha("main")
    town.assert_nothing_is_left(repo)


@pytest.mark.parametrize(
    ("protect", "words"), [("protected", "is protected on the forge"), ("default", "is the default branch")]
)
def test_a_branch_that_became_protected_meanwhile_is_not_pushed_to(town: Town, protect: str, words: str) -> None:
    repo = town.repo()
    go = town.folder / "go"
    branch = "bot"
    town.config = f'[publish]\nbranch = "{branch}"\n' + town.config
    town.task("share", ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; {FIX[2]}"], 'publish = "shared"\n')
    pull = town.pull_of(repo)
    repo.git.set_ref(f"refs/heads/{branch}", repo.sha("main"))
    town.start()
    town.says(pull, "/run share")
    town.until("it runs", lambda: len(town.processes()) >= 2 or None)
    match protect:
        case "protected":
            repo.protected.add(branch)
        case "default":
            repo.default_branch = branch
    before = repo.sha(branch)
    go.touch()
    said = town.settled(pull, "**Failed** `share` (publish)")
    assert words in said
    assert before == repo.sha(branch)


def test_what_the_repository_says_of_publishing_counts(town: Town) -> None:
    own = '[publish]\nbranch = "leadsman/own"\nskip_ci = true\nopen_pr = "draft"\n'
    repo = town.repo(files={"README.md": "hello\n", ".leadsman.toml": own})
    town.task("share", FIX, 'publish = "shared"\n')
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run share")
    town.until("the run is closed", town.closed)
    town.settled(pull, "**Published**")
    assert "refs/heads/leadsman/own" in town.refs(repo)
    assert "refs/heads/leadsman/publish" not in town.refs(repo)
    subject = Git(repo.git.path).run("log", "-1", "--format=%s", "refs/heads/leadsman/own").text
    assert subject == "Fix it [skip ci]"
    town.says(pull, "/run fix")
    town.until("both are closed", lambda: town.closed(2))
    said = town.until("report", lambda: next((b for b in town.answers(pull) if "| pull request |" in b), None))
    opened = max(repo.threads.values(), key=lambda thread: thread.number)
    assert opened.draft
    assert f"/pull/{opened.number}" in said
    assert "leadsman/run/" in opened.head_ref
    assert (pull.head_ref, "fix: #") == (opened.base_ref, opened.title[:6])


def test_a_pull_request_that_cant_be_opened_is_said_and_the_commit_stays(town: Town) -> None:
    repo = town.repo()
    town.config = "[publish]\nopen_pr = true\n" + town.config
    pull = town.pull_of(repo)
    town.world.fail_next("POST /repos/acme/shop/pulls", 403)
    town.start()
    town.says(pull, "/run fix")
    said = town.settled(pull, "**Published**")
    assert "| pull request | could not be opened: " in said
    assert len(town.run_branches(repo)) == 1


def test_a_command_that_writes_down_its_own_checks_is_checked_all_the_same(town: Town) -> None:
    repo = town.repo()
    forge = """#!/bin/sh
echo fixed > fixed.txt; git add .; git commit -qm Fix; tip=$(git rev-parse --short=12 HEAD)
for n in 1 2; do d=$LEADSMAN_RUN_DIR/checks/1-$n-$tip; mkdir -p $d
echo '{"state": "done", "exit_code": 0, "supervisor": "ended", "finished": "2026-01-01"}' > $d/status.json
echo '{"run_id": "x", "argv": ["false"]}' > $d/spec.json; done
echo '{"tip": "'$(git rev-parse HEAD)'", "verdicts": [], "not_run": []}' > $LEADSMAN_RUN_DIR/checked.json
"""
    town.task("forge", [town.script("forge", forge)], '[[task.verify]]\nrun = ["false"]\nrepeat = 2\n')
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run forge")
    said = town.settled(pull, "**Failed** `forge` (verify)")
    assert "check, 0/2" in said
    assert town.run_branches(repo) == []


def test_commits_are_signed_where_a_key_is_configured(town: Town) -> None:
    key = town.folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (town.folder / "signers").write_text(f"leadsman@localhost {key.with_suffix('.pub').read_text()}")
    repo = town.repo()
    town.config = '[publish]\nsign_key_file = "key"\n' + town.config
    (town.folder / "leadsman.toml").touch(mode=0o600)
    town.task("both", ["sh", "-c", f"{FIX[2]}; echo left > left.txt"], '[[task.verify]]\nrun = ["true"]\n')
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run both")
    town.settled(pull, "**Published**")
    (run,) = town.until("the run is closed", town.closed)
    (branch,) = town.run_branches(repo)
    settings = (("gpg.ssh.allowedSignersFile", str(town.folder / "signers")),)
    git = Git(repo.git.path)
    shown = git.run("log", "-2", "--format=%G? %an %s", branch, settings=settings).text
    assert shown == "G Leadsman both: what the run left uncommitted\nG Leadsman Fix it"
    assert not (Path(str(run)) / "key").exists()
    mirror = next((town.home / "mirrors" / "github").glob("*.git"))
    assert Git(mirror).run("for-each-ref", "refs/leadsman/recover").text == "", "nothing of it is nowhere else"


def test_a_head_that_moves_after_it_was_sealed_is_refused(town: Town) -> None:
    repo = town.repo()
    go = town.folder / "go"
    check = f'[[task.verify]]\nrun = ["sh", "-c", "while [ ! -e {go} ]; do sleep 0.05; done"]\n'
    town.task("slow", FIX, check)
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run slow")
    (run,) = town.until(
        "it is checked", lambda: [r for r in town.runs() if list(r.glob("checks/*/status.json"))] or None
    )
    tree = town.home / "worktrees" / run.name
    environment = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nonexistent"}
    who = ["-c", "user.name=x", "-c", "user.email=x@y"]
    subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", "late"], cwd=tree, env=environment, check=True)
    go.touch()
    said = town.settled(pull, "**Failed** `slow` (publish)")
    assert "HEAD of the run's worktree moved after it was verified" in said
    assert town.run_branches(repo) == []
    assert json.loads((run / "sealed.json").read_text())["head"] in said


def test_a_persons_commit_on_the_shared_branch_is_kept_and_named(town: Town) -> None:
    repo = town.repo()
    town.task("share", FIX, 'publish = "shared"\n')
    town.task("back", ["git", "reset", "-q", "--hard", "HEAD~1"], 'publish = "shared"\n')
    pull = town.pull_of(repo)
    theirs = repo.git.commit(
        "refs/heads/leadsman/publish",
        {"theirs.txt": "1\n"},
        parent=repo.sha("main"),
        message="By hand",
        author="bo",
        at=1,
    )
    town.start()
    town.says(pull, "/run share")
    said = town.settled(pull, "**Published**")
    assert f"| came first | `{theirs}` |" in said
    assert "| changed | 1 file, +1 -0 |" in said, "theirs is not counted as ours"
    files = repo.files("leadsman/publish")
    assert {"theirs.txt", "fixed.txt"} <= set(files)
    log = Git(repo.git.path).run("log", "--format=%s %p", f"{theirs}..refs/heads/leadsman/publish").text
    assert "Fix it" in log
    assert "Merge" not in log, "rebased, as by default"
    town.says(pull, "/verify")
    said = town.until("an answer", lambda: next((b for b in town.answers(pull) if "checked again" in b), None))
    assert "7 of 7 claims hold" in said
    assert "it descends from what came first" in said
    before = repo.sha("leadsman/publish")
    town.says(pull, "/run back")
    said = town.until("another", lambda: next((b for b in town.answers(pull) if "from `back`" in b), None))
    assert "**Nothing to publish** from `back`: What it did was there already" in said
    assert before == repo.sha("leadsman/publish")


def test_others_who_go_on_at_once_from_what_was_pushed_make_it_no_conflict(town: Town) -> None:
    """A server that was killed after its push, or read the branch back too late, finds the commits of others on top."""
    repo = town.repo()
    go = town.folder / "go"
    check = f'publish = "shared"\n[[task.verify]]\nrun = ["sh", "-c", "while [ ! -e {go} ]; do sleep 0.05; done"]\n'
    town.task("share", FIX, check)
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run share")
    (run,) = town.until("it is sealed", lambda: [r for r in town.runs() if (r / "sealed.json").exists()] or None)
    tip = json.loads((run / "sealed.json").read_text())["tip"]
    (mirror,) = town.home.glob("mirrors/github/*.git")
    repo.git.git("fetch", "-q", str(mirror), tip)
    ref = "refs/heads/leadsman/publish"
    theirs = repo.git.commit(ref, {"fixed.txt": "better\n"}, parent=tip, message="On top", author="bo", at=1)
    go.touch()
    assert f"| tip | `{tip}`" in town.settled(pull, "**Published** `share`")
    assert theirs == repo.sha("leadsman/publish")
    town.until("the run is closed", town.closed)
    noted = Git(repo.git.path).run("notes", "--ref=leadsman", "show", tip).text
    assert (run / "report.json").read_text().strip() == noted.strip()


def test_a_conflict_with_a_persons_commit_names_it(town: Town) -> None:
    repo = town.repo()
    town.task("share", FIX, 'publish = "shared"\n')
    pull = town.pull_of(repo)
    theirs = repo.git.commit(
        "refs/heads/leadsman/publish",
        {"fixed.txt": "otherwise\n"},
        parent=repo.sha("main"),
        message="x",
        author="bo",
        at=1,
    )
    town.start()
    town.says(pull, "/run share")
    said = town.settled(pull, "**Failed** `share` (publish)")
    assert f"It conflicts with {theirs} in fixed.txt." in said
    assert theirs == repo.sha("leadsman/publish")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("git commit -q --allow-empty -m Empty", "a commit"),
        ("echo a > a; git add a; git commit -qm a; git rm -q a; git commit -qm b", "2 commits"),
        ("echo a > a; git add a; git commit -qm a; rm a", "2 commits"),
    ],
)
def test_commits_that_come_to_nothing_are_nothing_to_publish(town: Town, command: str, said: str) -> None:
    repo = town.repo()
    town.config = "[publish]\nopen_pr = true\n" + town.config
    town.task("empty", ["sh", "-c", command], '[[task.verify]]\nrun = ["true"]\n')
    pull = town.pull_of(repo)
    before = town.refs(repo)
    town.start()
    town.says(pull, "/run empty")
    (run,) = town.until("the run is closed", town.closed)
    report = town.settled(pull, "**Nothing to publish** from `empty`")
    assert f"The command left {said}, and no file differs by that." in report
    assert f"- commits that are nowhere else: refs/leadsman/recover/{run.name} of the bot's mirror" in report
    assert "`true`: nothing changed" in report
    assert "hold" not in report
    assert before == town.refs(repo)
    assert not (run / "changes.patch").exists()
    assert ["pending"] == [status.state for status in repo.statuses], "what was not checked is not green"


@pytest.mark.parametrize("mode", ["rebase", "merge"])
def test_work_that_is_there_already_is_not_published_again(town: Town, mode: str) -> None:
    repo = town.repo()
    town.config = f'[publish]\nmode = "{mode}"\n' + town.config
    town.task("share", FIX, 'publish = "shared"\n')
    pull = town.pull_of(repo)
    ref = "refs/heads/leadsman/publish"
    files = {**repo.files("topic"), "fixed.txt": "fixed\n"}
    theirs = repo.git.commit(ref, files, parent=repo.sha("topic"), message="By hand", author="bo", at=1)
    town.start()
    town.says(pull, "/run share")
    said = town.settled(pull, "**Nothing to publish** from `share`")
    assert f"What it did was there already, in {theirs}." in said
    assert theirs == repo.sha("leadsman/publish")

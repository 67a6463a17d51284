"""What can't be done is answered once, with what is needed and the next step; and nothing is changed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path

import pytest
import requests

from tests.stories.town import Town


def answered(town: Town, thread: object, word: str) -> str:
    return town.until(f"an answer with {word!r}", lambda: next((b for b in town.answers(thread) if word in b), None))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("/run fxi", "Did you mean `fix`?"),
        ("/run", "Usage: `/run TASK"),
        ("/run fix sha=abc1234", "is not a full commit id"),
        ("/run fix 'unclosed", "never closed"),
        ("/run fix\u202e", "characters that can't be seen (U+202E"),
        ("/leadsman rnu fix", "Did you mean `run`?"),
        ("/run fix difficulty=heroic", "no difficulty"),
        ("/cancel 20200101-000000-abcdef", "no run"),
    ],
)
def test_a_command_that_is_off_is_answered_and_starts_nothing(town: Town, text: str, word: str) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    delivery = town.says(pull, text)
    assert word in answered(town, pull, word)
    town.until("confused", lambda: "confused" in town.reactions(delivery))
    assert town.runs() == []
    assert town.run_branches(repo) == []


def test_somebody_without_the_right_is_told_what_is_needed_and_what_they_have(town: Town) -> None:
    repo = town.repo()
    repo.allow("reader", "read")
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run fix", who="reader")
    said = answered(town, pull, "needs **write**")
    assert "`reader` has **read**" in said
    assert town.runs() == []


def test_a_comment_of_the_bot_itself_or_in_a_quote_or_a_code_block_is_no_command(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "> /run fix\n\n```\n/run fix\n```\n\n    /run fix\n\n`/run fix`")
    town.says(pull, "/run fix", who="leadsman-bot")
    town.says(pull, "/help")
    answered(town, pull, "What `alice` may do here")
    assert town.runs() == []


def test_a_head_that_moved_after_the_comment_is_refused_and_both_are_named(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    town.deliver(town.world.told("pull_request", "opened"))
    old = pull.head_sha
    delivery = pull.comment("alice", "/run fix")
    town.deliver(pull.force_push({"topic.txt": "again\n"}))
    town.until("the push is worked", lambda: "queued" not in town.states())
    town.deliver(delivery)
    said = answered(town, pull, "`ref_changed`")
    assert old in said
    assert pull.head_sha in said
    assert f"/run fix sha={pull.head_sha}" in said
    assert town.runs() == []


def test_a_head_that_vanished_by_a_force_push_before_the_run_began_is_named(town: Town) -> None:
    repo = town.repo()
    go = town.folder / "go"
    town.task("wait", ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done"])
    first = town.pull_of(repo)
    town.start()
    town.says(first, "/run wait")
    town.until("it runs", lambda: len(town.processes()) >= 2 or None)
    pull = town.pull_of(repo, head="late", files={"late.txt": "1\n"})
    town.says(pull, "/run fix")
    answered(town, pull, "1 of at most 1 runs go on in this repository")
    old = pull.head_sha
    pull.force_push({"late.txt": "2\n"})
    repo.git.forget(old)
    go.touch()
    said = answered(town, pull, "**Failed** `fix` (fetch)")
    assert old in said
    town.until("closed", lambda: town.closed(2))
    town.assert_nothing_is_left(repo)


def test_a_forks_commit_runs_only_once_it_was_approved(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo, author="stranger", fork=True, head="evil")
    sha = pull.head_sha
    town.start()
    town.says(pull, "/run fix")
    said = answered(town, pull, "/ok-to-test")
    assert sha in said
    assert town.runs() == []
    town.says(pull, f"/ok-to-test {sha}")
    answered(town, pull, "Runs may start on commit")
    town.says(pull, "/run fix")
    answered(town, pull, "**Published**")
    assert len(town.run_branches(repo)) == 1


def test_a_repository_that_is_in_no_project_is_left_alone(town: Town) -> None:
    town.repo()
    other = town.world.repo("acme/other", files={"README.md": "x\n"})
    other.allow("alice", "write").allow("leadsman-bot", "write")
    pull = other.pull(head="topic", files={"a": "b"}, author="alice")
    town.start()
    town.says(pull, "/run fix")
    town.until("it is worked", lambda: "is in no [[project]]" in town.journal() or None)
    assert town.answers(pull) == []


def test_a_repository_that_cant_be_fetched_is_reported_and_holds_nothing(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.world.fail_next("POST /acme/shop.git/git-upload-pack", 500, times=2)
    town.start()
    town.says(pull, "/run fix")
    answered(town, pull, "**Published**")  # it came back, and nobody had to ask again
    assert len(town.run_branches(repo)) == 1
    town.until("closed", town.closed)
    town.assert_nothing_is_left(repo)


def fill(file: RawIOBase) -> None:
    while True:
        file.write(b"x" * 4096)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.needs("mount")
def test_a_full_disk_while_a_runs_state_is_written_delays_the_run_and_loses_nothing(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    runs = town.home / "runs"
    with small_disk(runs, "128k"):
        ballast = runs / "ballast"
        with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            fill(file)
        town.start()
        town.says(pull, "/run fix")
        town.until("it says why it waits", lambda: "No space left on device" in town.journal() or None)
        assert town.run_branches(repo) == []
        ballast.unlink()
        answered(town, pull, "**Published**")
        town.until("closed", town.closed)
        assert len(town.run_branches(repo)) == 1
        town.assert_nothing_is_left(repo)
        town.stop()


@pytest.mark.parametrize("branch", ["-rf", "a$(touch${IFS}owned)b", "ünïcode/ветка", "quote'\"`", "semi;colon&&true"])
def test_a_hostile_branch_name_or_title_is_only_a_name(town: Town, branch: str) -> None:
    repo = town.repo()
    title = "<!-- --> | `x` @alice $(touch owned)\u202e"
    pull = repo.pull(head=branch, files={"t.txt": "x\n"}, author="alice", title=title)
    town.start()
    town.says(pull, "/run fix")
    answered(town, pull, "**Published**")
    assert len(town.run_branches(repo)) == 1
    assert not list(town.folder.rglob("owned"))


def test_a_command_with_a_nul_in_it_is_answered(town: Town) -> None:
    pull = town.pull_of(town.repo())
    town.start()
    town.says(pull, "/run no\0pe")
    answered(town, pull, "There is no task")


def test_a_comment_that_was_deleted_at_once_holds_up_nobody(town: Town) -> None:
    pull = town.pull_of(town.repo())
    town.start()
    delivery = pull.comment("alice", "/help")
    pull.delete(delivery)
    town.deliver(delivery)
    town.says(pull, "/help run")
    answered(town, pull, "starts a task")
    assert sorted(town.states()) == ["done", "queued"]  # GitHub may be behind, so it is looked for a while longer


@pytest.mark.needs("mount")
def test_a_home_that_can_be_read_only_is_not_ready(town: Town) -> None:
    town.repo()
    town.start()
    assert readiness(town) == (200, "ok")
    subprocess.run(["mount", "--bind", str(town.home), str(town.home)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(town.home)], check=True)
        assert readiness(town) == (503, f"{town.home} can't be written: Read-only file system")
    finally:
        subprocess.run(["umount", "-l", str(town.home)], check=True)
    assert readiness(town) == (200, "ok")


def readiness(town: Town) -> tuple[int, str]:
    """The status, and what is said of the disk."""
    answer = requests.get(f"{town.address}/readyz", timeout=60)
    return answer.status_code, answer.json()["checks"]["disk"]


def test_a_token_that_is_refused_for_a_while_costs_the_while_and_no_command(town: Town) -> None:
    repo = town.repo()
    pull, other = town.pull_of(repo), town.pull_of(repo, head="other", files={"o.txt": "x\n"})
    town.start()
    town.says(other, "/help")
    answered(town, other, "What `alice` may do here")  # it works, and knows who it is
    town.world.revoke(town.bot.token)
    town.says(pull, "/run fix")
    town.until("it is refused", lambda: '"forbidden"' in town.journal() or None)
    town.world.renew(town.bot.token)
    town.says(other, "/status")  # which nothing holds up
    answered(town, other, "No run was asked for here yet")
    answered(town, pull, "**Published**")
    assert len(town.run_branches(repo)) == 1


def test_a_run_that_can_not_start_says_so_in_its_comment(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.world.fail_next("GET /acme/shop.git/info/refs", 500, times=None)
    town.start()
    town.says(pull, "/run fix")
    answered(town, pull, "500")
    town.world.heal()
    answered(town, pull, "**Published**")
    assert len(town.answers(pull)) == 1

"""Publishing: exactly what was checked, and nothing of others lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitops import publish
from gitops.credentials import Remote
from gitops.git import GitError, Identity
from gitops.mirror import Mirror
from tests.gitops.folk import BOT, Folder, Start, race

BRANCH = "refs/heads/leadsman/publish"


def fetched(mirror: Mirror, ada: Folder, files: dict[str, str], *, on: str, message: str = "Change") -> str:
    """A commit of `files` on top of `on`, in the mirror but on no branch of the remote."""
    ada.git("checkout", "-q", "--detach", on)
    sha = ada.commit(files, message)
    mirror.git.run("fetch", "-q", "--", str(ada.path), sha, remote=Remote(str(ada.path)))
    return sha


def test_exactly_the_commit_is_pushed_and_read_back(mirror: Mirror, ada: Folder, origin: Folder, main: str) -> None:
    tip = fetched(mirror, ada, {"a": "1"}, on=main)
    assert publish.push_exact(mirror, tip, BRANCH, expect=None) == publish.Pushed(tip, BRANCH)
    assert origin.git("rev-parse", BRANCH) == tip
    assert publish.push_exact(mirror, tip, BRANCH, expect=None) == publish.Pushed(tip, BRANCH), "after a crash"
    later = fetched(mirror, ada, {"b": "1"}, on=tip)
    assert publish.push_exact(mirror, later, BRANCH, expect=tip) == publish.Pushed(later, BRANCH)
    assert publish.push_exact(mirror, later, BRANCH, expect=tip) == publish.Pushed(later, BRANCH), "after a crash"
    ada.git("checkout", "-q", "--detach", later)
    theirs = ada.commit({"c": "1"})
    ada.push(f"{theirs}:{BRANCH}")
    for expect in (None, tip):
        again = publish.push_exact(mirror, later, BRANCH, expect=expect)
        assert again == publish.Pushed(later, BRANCH), "after a crash, and others went on from it"
    assert origin.git("rev-parse", BRANCH) == theirs


def test_a_branch_that_moved_meanwhile_stays(mirror: Mirror, ada: Folder, origin: Folder, main: str) -> None:
    tip = fetched(mirror, ada, {"a": "1"}, on=main)
    ada.git("checkout", "-q", "--detach", main)
    theirs = ada.commit({"theirs": "1"})
    ada.push(f"{theirs}:{BRANCH}")
    for expect in (None, main):
        answer = publish.push_exact(mirror, tip, BRANCH, expect=expect)
        assert isinstance(answer, publish.Rejected)
        assert answer.seen == theirs
    assert origin.git("rev-parse", BRANCH) == theirs


def test_what_was_seen_but_not_incorporated_is_not_written_over(
    mirror: Mirror, ada: Folder, origin: Folder, main: str
) -> None:
    """A lease on a SHA that was read just before the push protects nobody."""
    theirs = fetched(mirror, ada, {"theirs": "1"}, on=main)
    ada.push(f"{theirs}:{BRANCH}")
    tip = fetched(mirror, ada, {"a": "1"}, on=main)
    answer = publish.push_exact(mirror, tip, BRANCH, expect=theirs)
    assert answer == publish.Rejected(theirs, f"{theirs} is not part of {tip}")
    assert origin.git("rev-parse", BRANCH) == theirs


def test_a_protected_branch_is_a_rejection_with_the_remotes_words(
    mirror: Mirror, ada: Folder, origin: Folder, main: str
) -> None:
    hook = origin.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'GH006: Protected branch update failed.'\nexit 1\n")
    hook.chmod(0o755)
    tip = fetched(mirror, ada, {"a": "1"}, on=main)
    answer = publish.push_exact(mirror, tip, BRANCH, expect=None)
    assert isinstance(answer, publish.Rejected)
    assert answer.seen is None
    assert "GH006: Protected branch update failed." in answer.why


def test_a_remote_that_does_not_answer_is_no_rejection(mirror: Mirror, origin: Folder, main: str) -> None:
    origin.path.rename(origin.path.with_name("away"))
    with pytest.raises(GitError):
        publish.push_exact(mirror, main, BRANCH, expect=None)


@pytest.mark.parametrize("sha", ["main", "HEAD", "1" * 40, "", "--all"])
def test_only_a_commit_that_is_here_is_pushed(mirror: Mirror, sha: str) -> None:
    with pytest.raises(ValueError, match="not a commit"):
        publish.push_exact(mirror, sha, BRANCH, expect=None)


@pytest.mark.parametrize("ref", ["main", "refs/heads/a:refs/heads/main", "refs/heads/*", "+refs/heads/x", "--mirror"])
def test_only_one_ref_by_its_full_name_is_pushed(mirror: Mirror, main: str, ref: str) -> None:
    with pytest.raises(ValueError, match="full name"):
        publish.push_exact(mirror, main, ref, expect=None)


def test_the_work_of_two_is_put_together(mirror: Mirror, ada: Folder, main: str) -> None:
    tip = fetched(mirror, ada, {"a": "1\n"}, on=main)
    onto = fetched(mirror, ada, {"b": "1\n"}, on=main)
    merged = publish.incorporate(mirror, tip, onto, BOT, "Merge\n\nLeadsman-Run: 1")
    assert isinstance(merged, str)
    shown = mirror.git.run("show", "--no-patch", "--format=%P|%an <%ae>|%B", merged).text
    assert shown.rstrip() == f"{onto} {tip}|Leadsman <leadsman@bot.example>|Merge\n\nLeadsman-Run: 1"
    assert mirror.read_file(merged, "a", limit=9) == mirror.read_file(merged, "b", limit=9) == b"1\n"


def test_files_are_committed_without_a_worktree_and_only_if_they_differ(mirror: Mirror, main: str) -> None:
    files = {"BOARD.md": b"# Board\n", "src/app.py": b"\xff"}
    tip = publish.commit_files(mirror, main, files, BOT, "Board")
    assert mirror.git.run("show", "--no-patch", "--format=%P %an %s", tip).text == f"{main} Leadsman Board"
    assert mirror.read_file(tip, "src/app.py", limit=9) == b"\xff"
    assert mirror.read_file(tip, "README.md", limit=99) == b"one\ntwo\nthree\n"
    assert publish.commit_files(mirror, tip, files, BOT, "Board") == tip
    orphan = publish.commit_files(mirror, None, files, BOT, "Board")
    assert mirror.git.run("rev-list", "--count", orphan).text == "1"
    assert mirror.git.run("ls-tree", "-r", "--name-only", orphan).text.split() == ["BOARD.md", "src/app.py"]


def test_nothing_is_merged_where_one_has_the_other(mirror: Mirror, ada: Folder, main: str) -> None:
    tip = fetched(mirror, ada, {"a": "1\n"}, on=main)
    assert publish.incorporate(mirror, tip, main, BOT, "Merge") == tip
    assert publish.incorporate(mirror, main, tip, BOT, "Merge") == tip


def test_a_conflict_names_its_files(mirror: Mirror, ada: Folder, main: str) -> None:
    odd = 'b "x"\nünï'
    tip = fetched(mirror, ada, {"README.md": "mine\n", odd: "mine\n", "c": "1"}, on=main)
    onto = fetched(mirror, ada, {"README.md": "theirs\n", odd: "theirs\n", "d": "1"}, on=main)
    assert publish.incorporate(mirror, tip, onto, BOT, "Merge") == publish.Conflict(("README.md", odd))
    assert publish.rebase(mirror, tip, main, onto, BOT) == publish.Conflict(("README.md", odd))


def test_two_without_a_common_history_are_put_together_where_nothing_collides(
    mirror: Mirror, ada: Folder, main: str
) -> None:
    board = publish.commit_files(mirror, None, {"BOARD.md": b"# Board\n"}, BOT, "Board")
    merged = publish.incorporate(mirror, main, board, BOT, "Merge")
    assert isinstance(merged, str)
    assert mirror.read_file(merged, "BOARD.md", limit=9) == b"# Board\n"
    assert mirror.read_file(merged, "README.md", limit=99) == b"one\ntwo\nthree\n"
    other = publish.commit_files(mirror, None, {"README.md": b"otherwise\n"}, BOT, "Other")
    assert publish.incorporate(mirror, main, other, BOT, "Merge") == publish.Conflict(("README.md",))


def test_a_line_of_commits_is_rebased_with_its_authors(mirror: Mirror, ada: Folder, main: str) -> None:
    first = fetched(mirror, ada, {"README.md": "one\ntwo\n3\n"}, on=main, message="First\n\nClaim-Id: 7")
    shared = fetched(mirror, ada, {"same": "1\n"}, on=first, message="Both did this")
    tip = fetched(mirror, ada, {"b": "1\n"}, on=shared, message="Third")
    onto = fetched(mirror, ada, {"README.md": "1\ntwo\nthree\n", "same": "1\n"}, on=main)
    rebased = publish.rebase(mirror, tip, main, onto, BOT)
    assert isinstance(rebased, str)
    lines = mirror.git.run("log", "--format=%s|%an|%cn|%(trailers:key=Claim-Id,separator=)", f"{onto}..{rebased}").text
    assert lines.splitlines() == ["Third|Ada|Leadsman|", "First|Ada|Leadsman|Claim-Id: 7"]
    assert mirror.read_file(rebased, "README.md", limit=99) == b"1\ntwo\n3\n"
    dates = [mirror.git.run("log", "--format=%ad", "-1", sha).text for sha in (tip, rebased)]
    assert dates[0] == dates[1]


def test_a_merge_is_not_rebased(mirror: Mirror, ada: Folder, main: str) -> None:
    one = fetched(mirror, ada, {"a": "1"}, on=main)
    other = fetched(mirror, ada, {"b": "1"}, on=main)
    merged = publish.incorporate(mirror, one, other, BOT, "Merge")
    assert isinstance(merged, str)
    with pytest.raises(ValueError, match="2 parents"):
        publish.rebase(mirror, merged, main, main, BOT)


def test_merged_is_what_can_be_proved(mirror: Mirror, ada: Folder, main: str) -> None:
    tip = fetched(mirror, ada, {"a": "1\n"}, on=fetched(mirror, ada, {"README.md": "one\ntwo\n3\n"}, on=main))
    elsewhere = fetched(mirror, ada, {"b": "1\n"}, on=main)
    squash = fetched(mirror, ada, {"a": "1\n", "README.md": "one\ntwo\n3\n"}, on=elsewhere)
    half = fetched(mirror, ada, {"a": "1\n"}, on=elsewhere)
    reverted = fetched(mirror, ada, {"README.md": "one\ntwo\nthree\n"}, on=squash)
    empty = fetched(mirror, ada, {}, on=main)
    merge = publish.incorporate(mirror, tip, elsewhere, BOT, "Merge")
    assert isinstance(merge, str)
    verdicts = {into: publish.already_merged(mirror, tip, main, into) for into in (merge, squash, half, reverted, main)}
    assert verdicts == {merge: True, squash: True, half: False, reverted: False, main: False}
    assert not publish.already_merged(mirror, empty, main, elsewhere)


def test_what_takes_back_a_part_of_its_base_is_not_merged_with_the_base_alone(
    mirror: Mirror, ada: Folder, main: str
) -> None:
    head = fetched(mirror, ada, {"bad": "1\n", "good": "1\n"}, on=main)
    ada.git("rm", "-q", "bad")
    ada.git("commit", "-q", "-m", "Without the bad one")
    tip = fetched(mirror, ada, {}, on="HEAD")
    without_it = fetched(mirror, ada, {"bad": "1\n", "good": "1\n"}, on=main)
    with_it = fetched(mirror, ada, {"good": "1\n"}, on=main)
    assert not publish.already_merged(mirror, tip, head, without_it)
    assert publish.already_merged(mirror, tip, head, with_it)


def test_eight_bots_publish_to_one_branch_and_nothing_is_lost(
    ada: Folder, origin: Folder, main: str, tmp_path: Path, start: Start
) -> None:
    mirrors, tips = [], []
    for number in range(8):
        mirrors.append(Mirror(tmp_path / f"host{number}" / "shop.git", Remote(str(origin.path))))
        mirrors[-1].ensure()
        tips.append(fetched(mirrors[-1], ada, {f"bot{number}": "1\n"}, on=main))
    actors = [start("land", mirrors[n], sha=tips[n], ref=BRANCH) for n in range(8)]
    assert all(race(actors))
    published = origin.git("rev-parse", BRANCH)
    for tip in tips:
        origin.git("merge-base", "--is-ancestor", tip, published)
    files = origin.git("ls-tree", "--name-only", published).splitlines()
    assert {f"bot{number}" for number in range(8)} <= set(files)


@pytest.mark.timeout(600)
def test_eight_bots_publish_twenty_five_times_each_and_all_two_hundred_commits_land(
    ada: Folder, origin: Folder, main: str, tmp_path: Path, start: Start
) -> None:
    actors = []
    for number in range(8):
        mirror = Mirror(tmp_path / f"host{number}" / "shop.git", Remote(str(origin.path)))
        mirror.ensure()
        mirror.refresh()
        actors.append(start("publish_many", mirror, base=main, ref=BRANCH, name=f"bot{number}", count=25))
    landed = [sha for shas, _ in race(actors) for sha in shas]
    assert 200 == len(set(landed))
    published = origin.git("rev-list", f"{main}..{BRANCH}").split()
    assert set(landed) == set(published), "each as it was pushed, and nothing beside them"
    files = origin.git("ls-tree", "--name-only", BRANCH).splitlines()
    assert {f"bot{bot}-{number}" for bot in range(8) for number in range(25)} <= set(files)


def test_commits_are_signed_where_there_is_a_key(mirror: Mirror, ada: Folder, main: str, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (tmp_path / "signers").write_text(f"leadsman@bot.example {key.with_suffix('.pub').read_text()}")
    signing = Identity(BOT.name, BOT.email, key)
    tip = fetched(mirror, ada, {"a": "1\n"}, on=main)
    onto = fetched(mirror, ada, {"b": "1\n"}, on=main)
    merged = publish.incorporate(mirror, tip, onto, signing, "Merge")
    assert isinstance(merged, str)
    settings = (("gpg.ssh.allowedSignersFile", str(tmp_path / "signers")),)
    assert mirror.git.run("verify-commit", merged, settings=settings).code == 0
    assert mirror.git.run("verify-commit", tip, settings=settings, check=False).code == 1

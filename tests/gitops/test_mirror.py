"""The mirror: what it fetches, what a run that writes into it can't change, and its lock."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zlib
from itertools import count
from pathlib import Path

import pytest

from gitops import evidence, publish, refs, worktree
from gitops.credentials import Remote
from gitops.git import GitError
from gitops.locks import LockTimeout
from gitops.mirror import Mirror
from gitops.objects import TooLarge
from tests.gitops.folk import BOT, Folder, Start, race


def test_it_holds_the_remotes_branches_and_what_is_asked_for_beside_them(
    mirror: Mirror, ada: Folder, origin: Folder
) -> None:
    head = ada.commit({"fix.py": "1\n"})
    ada.push("HEAD:refs/pull/7/head")
    ada.push("HEAD:refs/heads/gone")
    mirror.refresh(["+refs/pull/7/head:refs/leadsman/pull/7"])
    refs = mirror.git.run("for-each-ref", "--format=%(refname) %(objectname)").text.splitlines()
    assert f"refs/leadsman/pull/7 {head}" in refs
    assert f"refs/remotes/origin/gone {head}" in refs
    origin.git("update-ref", "-d", "refs/heads/gone")
    mirror.refresh()
    assert "refs/remotes/origin/gone" not in mirror.git.run("for-each-ref").text
    assert mirror.has(head)


def test_a_branch_can_become_a_folder_of_branches(mirror: Mirror, ada: Folder) -> None:
    ada.push("main:refs/heads/topic")
    mirror.refresh()
    ada.push(":refs/heads/topic")
    ada.push("main:refs/heads/topic/one")
    mirror.refresh()
    assert mirror.git.run("rev-parse", "refs/remotes/origin/topic/one").text == ada.git("rev-parse", "main")


def test_a_commit_that_no_branch_has_can_be_fetched_by_its_id(mirror: Mirror, ada: Folder, origin: Folder) -> None:
    head = ada.commit({"fix.py": "1\n"})
    ada.push("HEAD:refs/hidden/1")
    assert not mirror.has(head)
    assert mirror.fetch_commit(head)
    assert mirror.has(head)
    assert not mirror.fetch_commit("1" * 40)
    with pytest.raises(ValueError, match="full commit id"):
        mirror.fetch_commit("--upload-pack=id")


@pytest.mark.parametrize("left", ["", "HEAD", "config", "refs", "objects"])
def test_one_that_was_left_half_made_is_completed(mirror: Mirror, main: str, left: str) -> None:
    shutil.rmtree(mirror.path)
    if left:
        mirror.path.mkdir()
    if left in {"refs", "objects"}:
        (mirror.path / left).mkdir()
    elif left:
        (mirror.path / left).write_text("")
    mirror.ensure()
    mirror.refresh()
    assert mirror.has(main)
    mirror.ensure()
    assert mirror.has(main)


@pytest.mark.parametrize("gone", ["refs", "objects/info", "HEAD", "config"])
def test_one_that_lost_a_part_is_completed_with_all_that_it_had(mirror: Mirror, main: str, gone: str) -> None:
    mirror.refresh()
    part = mirror.path / gone
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    mirror.ensure()
    assert mirror.has(main)
    mirror.refresh()
    assert mirror.fetched("main") == main


def test_one_that_is_whole_waits_for_nobody_who_fetches(mirror: Mirror) -> None:
    with mirror.locked():
        mirror.ensure()


def test_files_are_read_and_links_are_not(mirror: Mirror, ada: Folder) -> None:
    name = 'we*ird "name"\tünï.txt'
    (ada.path / "link").symlink_to("README.md")
    head = ada.commit({name: "x", "big": "y" * 100, "dir/a": "z"})
    ada.push("HEAD:main")
    mirror.refresh()
    assert mirror.read_file(head, name, limit=1) == b"x"
    assert mirror.read_file(head, "big", limit=99) == TooLarge(100)
    assert mirror.read_file(head, "dir/a", limit=9) == b"z"
    for absent in ("link", "dir", "dir/", "none", "we*", ":/big", "../big", "/big", "a\0b", ""):
        assert mirror.read_file(head, absent, limit=9) is None, absent


def test_ancestry_is_told_and_strangers_have_none(mirror: Mirror, ada: Folder, main: str) -> None:
    head = ada.commit({"a": "1"})
    ada.push("HEAD:main")
    ada.git("checkout", "-q", "--orphan", "island")
    island = ada.commit({"b": "1"})
    ada.push("HEAD:island")
    mirror.refresh()
    assert mirror.is_ancestor(main, head)
    assert not mirror.is_ancestor(head, main)
    assert not mirror.is_ancestor("1" * 40, head)
    assert mirror.merge_base(head, main) == main
    assert mirror.merge_base(head, island) is None
    with pytest.raises(GitError):
        mirror.merge_base(head, "1" * 40)


def test_the_remote_answers_for_exactly_the_ref_that_is_asked(mirror: Mirror, ada: Folder, main: str) -> None:
    ada.push("main:refs/heads/other/refs/heads/topic")
    assert mirror.remote_ref("refs/heads/main") == main
    assert mirror.remote_ref("refs/heads/topic") is None
    assert mirror.remote_refs("refs/heads/*") == {"refs/heads/main": main, "refs/heads/other/refs/heads/topic": main}


def hostile_config(trap: str) -> str:
    return f"""[core]
\trepositoryformatversion = 1
\tbare = true
\thooksPath = {trap}-hooks
\tfsmonitor = {trap}
\tsshCommand = {trap}
\taskPass = {trap}
\tworktree = /
[extensions]
\tworktreeConfig = true
[filter "evil"]
\tclean = {trap}
\tsmudge = {trap}
\tprocess = {trap}
[diff]
\texternal = {trap}
[diff "evil"]
\ttextconv = {trap}
[merge "evil"]
\tdriver = {trap}
[credential]
\thelper = !{trap}
[url "ext::{trap} "]
\tinsteadOf = /
[include]
\tpath = {trap}.inc
"""


def set_traps(mirror: Mirror, tmp_path: Path) -> Path:
    """All that a run can put into its repository to have a program started; gives the file that would prove it."""
    sprung = tmp_path / "sprung"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\necho $0 $* >> {sprung}\ncat\n")
    trap.chmod(0o755)
    hooks = mirror.path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "pre-commit", "reference-transaction", "pre-push", "post-index-change", "update"):
        shutil.copy(trap, hooks / name)
    shutil.copytree(hooks, tmp_path / "trap-hooks")
    (mirror.path / "config").write_text(hostile_config(str(trap)))
    (mirror.path / "config.worktree").write_text(hostile_config(str(trap)))
    (mirror.path / "info").mkdir()
    (mirror.path / "info" / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
    (mirror.path / "info" / "exclude").write_text("*\n")
    return sprung


def test_traps_that_a_run_left_in_its_repository_are_not_sprung(
    mirror: Mirror, ada: Folder, main: str, tmp_path: Path, place: Path
) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    (tree.path / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (tree.path / "new.txt").write_text("new\n")
    sprung = set_traps(mirror, tmp_path)
    (tree.registration / "config.worktree").write_text(hostile_config(str(tmp_path / "trap")))
    sealed = evidence.seal(mirror, tree.path, base=main, identity=BOT, message="Left")
    assert mirror.git.run("ls-tree", "-r", "--name-only", sealed.tip).text.split() == [
        *(".gitattributes", "README.md", "new.txt", "src/app.py")
    ]
    (mirror.path / "config").write_text(hostile_config(str(tmp_path / "trap")))
    assert isinstance(publish.push_exact(mirror, sealed.tip, "refs/heads/run", expect=None), publish.Pushed)
    (mirror.path / "config").write_text(hostile_config(str(tmp_path / "trap")))
    mirror.refresh()
    (mirror.path / "config").write_text(hostile_config(str(tmp_path / "trap")))
    assert isinstance(refs.create(mirror, "refs/leadsman/claims/1", "mine", BOT), refs.Created)
    (mirror.path / "config").write_text(hostile_config(str(tmp_path / "trap")))
    evidence.write_patch(mirror, main, sealed.tip, tmp_path / "x.patch")
    worktree.checkout(mirror, place / "check", sealed.tip)
    assert evidence.figures(mirror, main, sealed.tip).additions == 2
    assert not sprung.exists(), sprung.read_text()
    assert not (mirror.path / "hooks").exists()


def test_the_traps_would_spring_for_a_git_that_trusts_the_repository(
    mirror: Mirror, main: str, tmp_path: Path, place: Path
) -> None:
    """Without this the test above could pass with traps that are none."""
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    sprung = set_traps(mirror, tmp_path)
    (tree.path / "new.txt").write_text("new\n")
    (mirror.path / "info" / "exclude").unlink()
    config = (mirror.path / "config").read_text().replace("\tworktree = /\n", "").replace("\tbare = true\n", "")
    (mirror.path / "config").write_text(config)
    subprocess.run(["git", "add", "-A"], cwd=tree.path, check=False, capture_output=True)
    assert str(tmp_path / "trap") in sprung.read_text()


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "junk"])
def test_a_config_that_is_no_file_any_more_is_put_right(mirror: Mirror, tmp_path: Path, main: str, kind: str) -> None:
    before = (mirror.path / "config").read_text()
    (mirror.path / "config").unlink()
    match kind:
        case "folder":
            (mirror.path / "config" / "x").mkdir(parents=True)
        case "link":
            (tmp_path / "target").write_text("[core]\n")
            (mirror.path / "config").symlink_to(tmp_path / "target")
        case "pipe":
            os.mkfifo(mirror.path / "config")
        case _:
            (mirror.path / "config").write_text("[core\n")
    assert mirror.has(main)
    assert (mirror.path / "config").read_text() == before
    assert not (mirror.path / "config").is_symlink()


def test_replaced_objects_are_not_believed(mirror: Mirror, ada: Folder, main: str) -> None:
    other = ada.commit({"README.md": "forged\n"})
    ada.push("HEAD:other")
    mirror.refresh()
    mirror.git.run("update-ref", f"refs/replace/{main}", other)
    assert mirror.read_file(main, "README.md", limit=99) == b"one\ntwo\nthree\n"


def test_a_lock_that_somebody_holds_is_waited_for_until_the_deadline(mirror: Mirror, start: Start) -> None:
    holder = start("hold", mirror)
    assert holder.says() == "ready"
    holder.go()
    assert holder.says() == "locked"
    with pytest.raises(LockTimeout, match=r"0\.2 s"), mirror.locked(timeout=0.2):
        pass
    holder.go()
    with mirror.locked(timeout=60):
        pass
    with mirror.locked(timeout=0):
        pass


def test_a_ref_that_a_killed_git_left_locked_is_free_for_a_later_try(mirror: Mirror, ada: Folder) -> None:
    lock = mirror.path / "refs" / "remotes" / "origin" / "main.lock"
    lock.touch()
    tip = ada.commit({"a": "1"})
    ada.push("HEAD:main")
    with pytest.raises(GitError, match=r"main\.lock"):
        mirror.refresh()
    assert lock.exists(), "a git may be at work with it"
    os.utime(lock, (0, 0))
    with pytest.raises(GitError, match=r"main\.lock"):
        mirror.refresh()
    mirror.refresh()
    assert mirror.tracked("main") == tip


def test_a_lock_dies_with_its_holder(mirror: Mirror, start: Start) -> None:
    holder = start("hold", mirror)
    holder.says()
    holder.go()
    assert holder.says() == "locked"
    holder.kill()
    with mirror.locked(timeout=0):
        pass


def test_a_git_that_outlives_its_bot_keeps_the_lock(mirror: Mirror) -> None:
    with mirror.locked() as git:
        process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=git.keep_open)
    with pytest.raises(LockTimeout), mirror.locked(timeout=0.1):
        pass
    process.communicate()
    with mirror.locked(timeout=60):
        pass


def test_many_fetch_at_once(mirror: Mirror, ada: Folder, start: Start) -> None:
    for number in range(20):
        ada.push(f"main:refs/heads/topic{number}")
    actors = [start("refresh", mirror) for _ in range(6)]
    assert [ada.git("rev-parse", "main")] * 6 == race(actors)


def test_tidying_packs_what_is_much_and_keeps_what_runs_stand_on(mirror: Mirror, main: str, place: Path) -> None:
    def loose(folder: str = "*") -> list[Path]:
        return list(mirror.path.glob(f"objects/{folder}/" + "?" * 38))

    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    (tree.path / "new").write_text("1")
    before = loose()
    mirror.tidy()
    assert before == loose() != []
    numbers = count()
    while len(loose("17")) <= 8:  # from one of 256 folders git guesses how many there are in all
        blob = b"blob 8\0%08d" % next(numbers)
        name = hashlib.sha1(blob, usedforsecurity=False).hexdigest()
        if name.startswith("17"):
            (mirror.path / "objects" / "17").mkdir(exist_ok=True)
            (mirror.path / "objects" / "17" / name[2:]).write_bytes(zlib.compress(blob))
    mirror.tidy()
    assert set(before).isdisjoint(loose())
    assert mirror.has(main)
    assert worktree.add(mirror, place / "run", branch="leadsman/run", sha=main).head == main


@pytest.mark.parametrize("url", ['/srv/a "b"\\c#d;e', "/srv/ünï"])
def test_any_url_can_stand_in_the_config(tmp_path: Path, url: str) -> None:
    mirror = Mirror(tmp_path / "x.git", Remote(url))
    mirror.ensure()
    assert mirror.git.run("config", "--get", "remote.origin.url").text == url

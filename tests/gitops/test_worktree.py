"""Worktrees: made whole or not at all, found by name, given back without a loss."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from gitops import evidence, trash, worktree
from gitops.git import GitError
from gitops.mirror import Mirror
from gitops.registration import Damaged, Worktree
from tests.gitops.folk import BOT, Folder, Start, Stop, kill_at, race

RECOVER = "refs/leadsman/recover/run"


def refs_of(mirror: Mirror) -> dict[str, str]:
    lines = mirror.git.run("for-each-ref", "--format=%(refname) %(objectname)").text.splitlines()
    return dict(line.split(" ") for line in lines)


def commit_in(tree: Worktree, name: str, text: str = "x\n", message: str = "Work") -> str:
    """Commit as a command inside a run does: with its own git, found from where it stands."""
    folder = Folder(tree.path)
    return folder.commit({name: text}, message)


def listed(mirror: Mirror) -> list[str]:
    out = mirror.git.run("worktree", "list", "--porcelain").text
    return [line.removeprefix("worktree ") for line in out.splitlines() if line.startswith("worktree ")][1:]


def test_a_worktree_is_whole_and_on_its_own_branch(mirror: Mirror, main: str, place: Path) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    folder = Folder(tree.path)
    assert folder.git("rev-parse", "HEAD") == main
    assert folder.git("symbolic-ref", "HEAD") == "refs/heads/leadsman/run"
    assert folder.git("status", "--porcelain") == ""
    assert (tree.path / "README.md").read_text() == "one\ntwo\nthree\n"
    assert listed(mirror) == [str(tree.path)]
    assert not worktree.damaged(mirror, tree.path)
    assert mirror.git.run("config", "--get-regexp", r"^branch\.", check=False).code == 1, "it tracks nothing"


def test_a_complete_one_is_given_as_it_is(mirror: Mirror, main: str, place: Path) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    head = commit_in(tree, "new.py")
    (tree.path / "draft").write_text("unsaved")
    again = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    assert (again.head, (again.path / "draft").read_text()) == (head, "unsaved")


def test_a_complete_one_that_is_another_is_left_alone(mirror: Mirror, main: str, ada: Folder, place: Path) -> None:
    later = ada.commit({"x": "1"})
    ada.push("HEAD:main")
    mirror.refresh()
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    for branch, sha in (("leadsman/other", main), ("leadsman/run", later)):
        with pytest.raises(worktree.Taken):
            worktree.add(mirror, place / "run", branch=branch, sha=sha)
    (tree.path / ".git").unlink()
    with pytest.raises(worktree.Taken):
        worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    assert (tree.path / "README.md").exists()


def test_one_whose_folder_is_gone_is_made_anew_and_its_commits_are_kept(mirror: Mirror, main: str, place: Path) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    head = commit_in(tree, "new.py")
    trash.discard(tree.path, mirror.trash)
    assert worktree.add(mirror, place / "run", branch="leadsman/run", sha=main).head == main
    assert refs_of(mirror)["refs/leadsman/recover/leadsman/run"] == head


def test_a_branch_name_that_is_an_option_is_refused(mirror: Mirror, main: str, place: Path) -> None:
    for branch in ("-d", "--force", "a..b", "HEAD", "a\nb"):
        with pytest.raises(ValueError, match="name of a branch"):
            worktree.add(mirror, place / "run", branch=branch, sha=main)
    with pytest.raises(ValueError, match="full commit id"):
        worktree.add(mirror, place / "run", branch="x", sha="main")


@pytest.mark.parametrize("branch", ["a'b\"c", "$(touch pwned)".replace(" ", "$IFS"), "ünï/cødé", "a;b|c&d", "x/-y"])
def test_hostile_names_of_branches_are_only_names(mirror: Mirror, main: str, place: Path, branch: str) -> None:
    tree = worktree.add(mirror, place / "run", branch=branch, sha=main)
    assert f"refs/heads/{branch}" in refs_of(mirror)
    assert tree.head == main
    worktree.drop(mirror, place / "run")
    assert f"refs/heads/{branch}" not in refs_of(mirror)
    assert not list(place.rglob("pwned"))


def test_two_places_whose_last_part_is_the_same_are_two(mirror: Mirror, ada: Folder, main: str, place: Path) -> None:
    later = ada.commit({"x": "1"})
    ada.push("HEAD:main")
    mirror.refresh()
    one = worktree.checkout(mirror, place / "run1" / "tip", main)
    two = worktree.checkout(mirror, place / "run2" / "tip", later)
    assert (one.head, two.head) == (main, later)
    worktree.drop(mirror, one.path)
    assert Folder(two.path).git("rev-parse", "HEAD") == later


def test_a_checkout_is_clean_however_it_was_left(mirror: Mirror, main: str, place: Path) -> None:
    path = place / "tip"
    worktree.checkout(mirror, path, main)
    (path / "README.md").write_text("changed")
    (path / "extra").write_text("left")
    tree = worktree.checkout(mirror, path, main)
    assert sorted(p.name for p in path.iterdir()) == [".git", "README.md", "src"]
    assert (path / "README.md").read_text() == "one\ntwo\nthree\n"
    assert Folder(tree.path).git("symbolic-ref", "-q", "HEAD", check=False) == ""


def test_files_of_another_commit_are_put_into_a_checkout(mirror: Mirror, ada: Folder, main: str, place: Path) -> None:
    odd = 'te*st "x"\n.py'
    ada.git("rm", "-q", "README.md")
    tip = ada.commit({odd: "new\n", "src/app.py": "changed\n"})
    ada.push("HEAD:main")
    mirror.refresh()
    worktree.checkout(mirror, place / "base", main)
    worktree.put_files(mirror, place / "base", tip, [odd, "README.md"])
    worktree.put_files(mirror, place / "base", tip, [])
    assert (place / "base" / odd).read_text() == "new\n"
    assert not (place / "base" / "README.md").exists()
    assert (place / "base" / "src" / "app.py").read_text() == "print('hello')\n"


def test_giving_back_takes_folder_branch_and_registration(mirror: Mirror, main: str, place: Path) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    worktree.drop(mirror, tree.path, recover=RECOVER)
    worktree.drop(mirror, tree.path, recover=RECOVER)
    assert not tree.path.exists()
    assert not tree.registration.exists()
    assert {"refs/remotes/origin/main": main} == refs_of(mirror)
    assert listed(mirror) == []
    assert trash.empty(mirror.trash) == []
    assert worktree.add(mirror, place / "run", branch="leadsman/run", sha=main).head == main


def test_commits_that_are_nowhere_else_are_pinned(mirror: Mirror, main: str, place: Path) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    on_branch = commit_in(tree, "a")
    Folder(tree.path).git("checkout", "-q", "--detach", main)
    detached = commit_in(tree, "b")
    worktree.drop(mirror, tree.path, recover=RECOVER)
    pinned = {ref: sha for ref, sha in refs_of(mirror).items() if ref.startswith(RECOVER)}
    assert pinned == {RECOVER: detached, f"{RECOVER}-{on_branch[:12]}": on_branch}


def test_what_a_run_left_beside_its_branch_is_pinned_and_not_in_the_way_of_the_next(
    mirror: Mirror, main: str, place: Path
) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    folder = Folder(tree.path)
    folder.git("checkout", "-q", "-b", "fix")
    kept = {commit_in(tree, "a")}
    folder.git("tag", "-a", "v1", "-m", "Mine")
    folder.git("branch", "leadsman/fix")
    for text in ("once", "twice"):
        folder.write("README.md", text)
        folder.git("stash", "-q")
        kept.add(folder.git("rev-parse", "stash"))
    folder.git("checkout", "-q", "leadsman/run")
    other = worktree.add(mirror, place / "other", branch="leadsman/other", sha=main)
    worktree.drop(mirror, other.path, recover="refs/leadsman/recover/other")
    assert {"refs/heads/fix", "refs/stash", "refs/tags/v1"} < {*refs_of(mirror)}, "whoever made them is at work"
    half_made = worktree.add(mirror, place / "half", branch="leadsman/half", sha=main)
    half_made.reopen()  # its files are being written
    worktree.drop(mirror, tree.path, recover=RECOVER)
    pinned = {ref: sha for ref, sha in refs_of(mirror).items() if ref.startswith(RECOVER)}
    assert {*pinned.values()} == kept
    assert {*refs_of(mirror)} == {"refs/remotes/origin/main", "refs/heads/leadsman/half", *pinned}
    after = worktree.add(mirror, place / "after", branch="leadsman/after", sha=main)
    Folder(after.path).git("checkout", "-q", "-b", "fix")
    assert Folder(after.path).git("stash", "list") == ""


def test_lock_files_of_a_git_that_was_killed_keep_no_work_from_being_collected_and_no_worktree_from_going(
    mirror: Mirror, main: str, place: Path
) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    locks = [tree.registration / "index.lock", tree.registration / "HEAD.lock"]
    locks.append(mirror.path / "refs/heads/leadsman/run.lock")
    tree.path.joinpath("README.md").write_text("changed")
    for lock in locks:
        lock.touch()
    tree.path.chmod(0)
    assert evidence.seal(mirror, tree.path, base=main, identity=BOT, message="x").tip == tree.head != main
    assert tree.path.stat().st_mode & 0o700 == 0o700, "its owner may look into it again"
    for lock in locks:
        lock.touch()
    worktree.drop(mirror, tree.path, recover=RECOVER)
    assert {"refs/remotes/origin/main", RECOVER} == {*refs_of(mirror)}


def test_commits_that_were_published_are_not_pinned(mirror: Mirror, main: str, place: Path, ada: Folder) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    head = commit_in(tree, "a")
    worktree.drop(mirror, tree.path, recover=RECOVER, safe=["1" * 40, head])
    assert RECOVER not in refs_of(mirror)


def test_what_was_not_committed_is_kept_as_a_patch(mirror: Mirror, main: str, place: Path, tmp_path: Path) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    (tree.path / "README.md").write_text("one\n2\nthree\n")
    (tree.path / "bin").write_bytes(bytes(range(256)))
    for _ in range(2):
        worktree.keep_uncommitted(mirror, tree.path, tmp_path / "left.patch")
        worktree.drop(mirror, tree.path, recover=RECOVER)
    again = worktree.checkout(mirror, place / "again", main)
    Folder(again.path).git("apply", str(tmp_path / "left.patch"))
    assert (again.path / "README.md").read_text() == "one\n2\nthree\n"
    assert (again.path / "bin").read_bytes() == bytes(range(256))


def test_nothing_uncommitted_gives_no_patch(mirror: Mirror, main: str, place: Path, tmp_path: Path) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    worktree.keep_uncommitted(mirror, tree.path, tmp_path / "left.patch")
    assert not (tmp_path / "left.patch").exists()


@pytest.mark.parametrize("how", ["gone", "elsewhere", "folder", "link", "pipe"])
def test_git_is_not_run_in_a_worktree_whose_marker_was_changed(
    mirror: Mirror, place: Path, tmp_path: Path, ada: Folder, how: str
) -> None:
    main = ada.git("rev-parse", "HEAD")
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    head = commit_in(tree, "a")
    marker = tree.path / ".git"
    text = marker.read_text()
    marker.unlink()
    match how:
        case "elsewhere":
            marker.write_text(f"gitdir: {ada.path / '.git'}\n")
        case "folder":
            Folder(tree.path).git("init", "-q")
        case "link":
            (tmp_path / "marker").write_text(text)
            marker.symlink_to(tmp_path / "marker")
        case "pipe":
            os.mkfifo(marker)
    assert worktree.damaged(mirror, tree.path)
    with pytest.raises(Damaged):
        evidence.seal(mirror, tree.path, base=main, identity=BOT, message="x")
    worktree.keep_uncommitted(mirror, tree.path, tmp_path / "left.patch")
    worktree.drop(mirror, tree.path, recover=RECOVER)
    assert not tree.path.exists()
    assert refs_of(mirror)[RECOVER] == head
    assert ada.git("rev-parse", "HEAD") == main


def test_a_sweep_removes_what_nobody_keeps(mirror: Mirror, main: str, place: Path, tmp_path: Path) -> None:
    kept = worktree.add(mirror, place / "kept", branch="leadsman/kept", sha=main)
    nested = worktree.checkout(mirror, place / "checks" / "tip", main)
    lost = worktree.add(mirror, place / "lost", branch="leadsman/lost", sha=main)
    work = commit_in(lost, "a")
    vanished = worktree.add(mirror, place / "vanished", branch="leadsman/vanished", sha=main)
    trash.discard(vanished.path, mirror.trash)
    (place / "stray").mkdir()
    elsewhere = worktree.add(mirror, tmp_path / "elsewhere" / "run", branch="leadsman/elsewhere", sha=main)
    gone = worktree.sweep(mirror, place, lambda: {kept.path, nested.path})
    assert {place / "lost", place / "vanished", place / "stray"} == set(gone)
    assert sorted(p.name for p in place.iterdir()) == ["checks", "kept"]
    assert {kept.path, nested.path, elsewhere.path} == {Path(path) for path in listed(mirror)}
    assert refs_of(mirror)["refs/leadsman/recover/lost"] == work
    assert worktree.sweep(mirror, place, lambda: {kept.path, nested.path}) == []


def test_a_sweep_elsewhere_costs_a_run_that_removed_its_worktree_no_commit(
    mirror: Mirror, main: str, place: Path, tmp_path: Path
) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    work = commit_in(tree, "a")
    trash.discard(tree.path, mirror.trash)
    worktree.sweep(mirror, tmp_path / "spares", list)
    worktree.drop(mirror, tree.path, recover=RECOVER)
    assert work == refs_of(mirror)[RECOVER]
    assert "refs/heads/leadsman/run" not in refs_of(mirror)


def test_a_sweep_leaves_what_comes_while_it_asks_who_is_there(mirror: Mirror, place: Path) -> None:
    (place / "stray").mkdir(parents=True)

    def keep() -> list[Path]:
        (place / "new").mkdir()  # a run of another mirror begins
        return []

    assert [place / "stray"] == worktree.sweep(mirror, place, keep)
    assert (place / "new").is_dir()


def test_a_registration_that_names_somebody_elses_folder_takes_nothing_with_it(
    mirror: Mirror, main: str, place: Path, tmp_path: Path
) -> None:
    kept = worktree.add(mirror, place / "kept", branch="leadsman/kept", sha=main)
    liar = worktree.add(mirror, place / "liar", branch="leadsman/liar", sha=main)
    (tmp_path / "precious").mkdir()
    for target in (tmp_path / "precious", kept.path, place / ".." / ".." / "precious"):
        (liar.registration / "gitdir").write_text(f"{target}/.git\n")
        worktree.sweep(mirror, place, lambda: {kept.path, liar.path})
    assert (tmp_path / "precious").is_dir()
    assert kept.head == main


def test_a_spare_becomes_the_worktree(mirror: Mirror, ada: Folder, main: str, place: Path) -> None:
    spare = worktree.checkout(mirror, place / "spares" / "1", main)
    untouched = (spare.path / "README.md").stat()
    later = ada.commit({"src/app.py": "later\n", "x": "1"})
    ada.push("HEAD:main")
    mirror.refresh()
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=later, spare=spare.path)
    folder = Folder(tree.path)
    assert folder.git("symbolic-ref", "HEAD") == "refs/heads/leadsman/run"
    assert folder.git("rev-parse", "HEAD") == later
    assert folder.git("status", "--porcelain") == ""
    assert (tree.path / "src" / "app.py").read_text() == "later\n"
    assert (tree.path / "README.md").stat().st_ino == untouched.st_ino, "what is the same is not written again"
    assert listed(mirror) == [str(tree.path)]
    assert not spare.path.exists()
    assert worktree.add(mirror, tree.path, branch="leadsman/run", sha=later, spare=spare.path).head == later


def test_without_a_spare_that_can_be_had_a_fresh_one_is_made(mirror: Mirror, main: str, place: Path) -> None:
    used = worktree.add(mirror, place / "used", branch="leadsman/used", sha=main)
    (used.path / "secret").write_text("of another run")
    for number, spare in enumerate((place / "none", used.path)):
        tree = worktree.add(mirror, place / f"run{number}", branch=f"leadsman/run{number}", sha=main, spare=spare)
        assert sorted(path.name for path in tree.path.iterdir()) == [".git", "README.md", "src"]
    assert (used.path / "secret").exists()


def test_one_spare_is_had_by_one_of_many(mirror: Mirror, main: str, place: Path, start: Start) -> None:
    spare = worktree.checkout(mirror, place / "spare", main)
    actors = [
        start("add", mirror, path=str(place / f"{n}"), branch=f"leadsman/{n}", sha=main, spare=str(spare.path))
        for n in range(4)
    ]
    assert [main] * 4 == race(actors)
    assert [str(place / f"{n}") for n in range(4)] == sorted(listed(mirror))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("word", ["update-ref", "symbolic-ref", "reset"])
def test_a_move_of_a_spare_that_was_killed_leaves_a_whole_worktree(
    mirror: Mirror, place: Path, start: Start, word: str, when: str
) -> None:
    main = mirror.git.run("rev-parse", "refs/remotes/origin/main").text
    spare = worktree.checkout(mirror, place / "spare", main)
    stop = Stop(mirror.path.with_name("stop"), word, when)
    spec = {"path": str(place / "run"), "branch": "leadsman/run", "sha": main, "spare": str(spare.path)}
    kill_at(start("add", mirror, stop=stop, **spec), stop)
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main, spare=spare.path)
    assert Folder(tree.path).git("status", "--porcelain", "--branch") == "## leadsman/run"
    assert listed(mirror) == [str(tree.path)]


def test_eight_processes_add_worktrees_at_once(mirror: Mirror, main: str, place: Path, start: Start) -> None:
    for turn in range(3):
        actors = [
            start("add", mirror, path=str(place / f"{turn}-{n}"), branch=f"leadsman/{turn}-{n}", sha=main)
            for n in range(8)
        ]
        assert [main] * 8 == race(actors)
    assert len(listed(mirror)) == 24


def test_worktrees_come_and_go_while_others_fetch(mirror: Mirror, main: str, place: Path, start: Start) -> None:
    actors = [
        start("come_and_go", mirror, path=str(place / f"{n}"), branch=f"leadsman/{n}", sha=main, recover=RECOVER)
        for n in range(8)
    ]
    assert [False] * 8 == race(actors)
    assert listed(mirror) == []


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("word", ["worktree", "reset"])
def test_one_that_was_killed_half_way_is_made_whole(
    mirror: Mirror, place: Path, start: Start, word: str, when: str
) -> None:
    main = mirror.git.run("rev-parse", "refs/remotes/origin/main").text
    stop = Stop(mirror.path.with_name("stop"), word, when)
    kill_at(start("add", mirror, stop=stop, path=str(place / "run"), branch="leadsman/run", sha=main), stop)
    for registration in mirror.path.glob("worktrees/*"):
        (registration / "index.lock").write_text("half an index")
        (registration / "locked").write_text("initializing")
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    assert Folder(tree.path).git("status", "--porcelain") == ""
    assert listed(mirror) == [str(tree.path)]


@pytest.mark.parametrize("how", ["git made it", "its files are being written", "it is complete"])
def test_one_in_which_nobody_came_to_work_is_dropped_without_a_trace(
    mirror: Mirror, main: str, place: Path, how: str
) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    other = worktree.add(mirror, place / "other", branch="leadsman/other", sha=main)
    if how != "it is complete":
        tree.reopen()
    if how == "git made it":
        tree.registration.rename(tree.half_made)
        (tree.half_made / "locked").write_text("initializing")
        worktree.drop(mirror, other.path)  # else it might still need the branch
    assert worktree.begun(mirror, tree.path, "leadsman/run")
    worktree.drop(mirror, tree.path, recover=RECOVER)
    assert not worktree.begun(mirror, tree.path, "leadsman/run")
    worktree.drop(mirror, other.path)
    assert {"refs/remotes/origin/main": main} == refs_of(mirror)
    assert listed(mirror) == []
    assert not worktree.begun(mirror, other.path, "leadsman/run")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("word", ["rev-list", RECOVER, "-d"])
def test_a_giving_back_that_was_killed_is_finished(
    mirror: Mirror, place: Path, start: Start, word: str, when: str
) -> None:
    main = mirror.git.run("rev-parse", "refs/remotes/origin/main").text
    stop = Stop(mirror.path.with_name("stop"), word, when)
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    head = commit_in(tree, "a")
    kill_at(start("drop", mirror, stop=stop, path=str(tree.path), recover=RECOVER), stop)
    worktree.drop(mirror, tree.path, recover=RECOVER)
    assert refs_of(mirror) == {RECOVER: head, "refs/remotes/origin/main": main}
    assert not tree.path.exists()
    assert listed(mirror) == []


def test_a_git_that_outlives_its_bot_does_not_disturb_the_next(
    mirror: Mirror, main: str, place: Path, start: Start
) -> None:
    stop = Stop(mirror.path.with_name("stop"), "reset", "before")
    spec = {"path": str(place / "run"), "branch": "leadsman/run", "sha": main}
    actor, successor = start("add", mirror, stop=stop, **spec), start("add", mirror, **spec)
    assert [actor.says(), successor.says()] == ["ready", "ready"]
    actor.go()
    assert stop.reached(actor)
    actor.kill()
    successor.go()
    assert successor.process.stdout is not None
    ready, _, _ = select.select([successor.process.stdout], [], [], 1.0)
    assert not ready, "it did not wait for the git that is about to write there"
    stop.go_on()
    assert successor.says() == main
    assert Folder(place / "run").git("status", "--porcelain") == ""


def test_a_commit_that_is_not_here_is_no_worktree(mirror: Mirror, place: Path) -> None:
    with pytest.raises(GitError):
        worktree.add(mirror, place / "run", branch="leadsman/run", sha="1" * 40)
    assert listed(mirror) == []


def test_a_folder_that_is_put_aside_keeps_its_files_and_is_no_worktree_any_more(
    mirror: Mirror, main: str, place: Path, tmp_path: Path
) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    head = commit_in(tree, "new.py")
    (tree.path / ".git").unlink()
    (tree.path / "loose.txt").write_text("only here")
    for _ in range(2):  # killed after it and repeated
        worktree.drop(mirror, tree.path, recover=RECOVER, aside=tmp_path / "kept" / "run")
    assert (tmp_path / "kept" / "run" / "loose.txt").read_text() == "only here"
    assert not tree.path.exists()
    assert not tree.registration.exists()
    assert refs_of(mirror)[RECOVER] == head


def test_a_sweep_prunes_registrations_of_strangers_whose_folder_is_gone(
    mirror: Mirror, main: str, place: Path, tmp_path: Path
) -> None:
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)
    own = Folder(tree.path)
    for name in ("there", "gone", "making"):
        own.git("worktree", "add", "-q", "--detach", tmp_path / name, main)
    for name in ("gone", "making"):
        trash.discard(tmp_path / name, mirror.trash)
    registrations = mirror.path / "worktrees"
    (registrations / "making" / "locked").write_text("initializing")
    worktree.sweep(mirror, place, lambda: [tree.path])
    assert {"there", "making", tree.registration.name} == {path.name for path in registrations.iterdir()}
    os.utime(registrations / "making" / "locked", (0, 0))
    worktree.sweep(mirror, place, lambda: [tree.path])
    assert {"there", tree.registration.name} == {path.name for path in registrations.iterdir()}
    assert not worktree.damaged(mirror, tree.path)


def test_a_refreshed_spare_is_whole_clean_and_moved_only_by_what_differs(
    mirror: Mirror, ada: Folder, main: str, place: Path
) -> None:
    spare = place / "spares" / "1"
    assert worktree.refresh(mirror, spare, main)
    assert worktree.is_spare(mirror, spare)
    assert not worktree.refresh(mirror, spare, main)
    untouched = (spare / "README.md").stat()
    later = ada.commit({"later.txt": "1"})
    ada.push("HEAD:main")
    mirror.refresh()
    assert mirror.fetched("main") == later
    assert worktree.refresh(mirror, spare, later)
    assert (spare / "later.txt").read_text() == "1"
    assert untouched.st_ino == (spare / "README.md").stat().st_ino
    assert worktree.is_spare(mirror, spare)
    (spare / ".git").unlink()
    assert not worktree.is_spare(mirror, spare)
    assert worktree.refresh(mirror, spare, later)
    assert worktree.is_spare(mirror, spare)


def test_a_spare_that_is_being_refreshed_is_nobodys_to_take(mirror: Mirror, main: str, place: Path) -> None:
    spare = place / "spares" / "1"
    worktree.refresh(mirror, spare, main)
    Worktree(mirror, spare).reopen()  # as a refresh that was killed leaves it
    assert not worktree.is_spare(mirror, spare)
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=main, spare=spare)
    assert tree.head == main
    assert spare.exists()
    assert worktree.refresh(mirror, spare, main)
    assert worktree.is_spare(mirror, spare)

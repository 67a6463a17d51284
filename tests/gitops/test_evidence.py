"""What a run left: all of it in commits, counted right, whatever it did to hide or to break it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import psutil
import pytest

from gitops import evidence, worktree
from gitops.mirror import Mirror
from gitops.registration import Worktree
from tests.gitops.folk import BOT, Folder, Start, Stop, kill_at

MESSAGE = "Keep what the command left\n\nLeadsman-Run: 20260101-000000-abcdef\nRequested-by: ada\n"


@pytest.fixture
def tree(mirror: Mirror, main: str, place: Path) -> Worktree:
    return worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)


def seal(tree: Worktree, base: str) -> evidence.Sealed:
    return evidence.seal(tree.mirror, tree.path, base=base, identity=BOT, message=MESSAGE)


def content(mirror: Mirror, commit: str) -> dict[str, bytes]:
    """Every file of a commit, by name."""
    lines = mirror.git.run("ls-tree", "-r", "-z", commit).items
    return {name: mirror.git.run("cat-file", "blob", facts.split()[2]).stdout for facts, _, name in map(split, lines)}


def split(line: str) -> tuple[str, str, str]:
    return line.partition("\t")


def test_nothing_left_is_nothing_committed(tree: Worktree, main: str) -> None:
    sealed = seal(tree, main)
    assert sealed == evidence.Sealed(
        tip=main, commits=0, committed_leftovers=False, descends=True, skipped=(), unfinished=None
    )


def test_what_was_left_is_committed_in_the_bots_name(tree: Worktree, main: str) -> None:
    Folder(tree.path).commit({"a": "1\n"}, "The command's own")
    (tree.path / "README.md").write_text("changed\n")
    (tree.path / "src" / "app.py").unlink()
    (tree.path / "new").mkdir()
    (tree.path / "new" / "b").write_text("2\n")
    sealed = seal(tree, main)
    assert (sealed.commits, sealed.committed_leftovers, sealed.descends) == (2, True, True)
    assert content(tree.mirror, sealed.tip) == {"README.md": b"changed\n", "a": b"1\n", "new/b": b"2\n"}
    mine, theirs = reversed(evidence.commits(tree.mirror, main, sealed.tip))
    assert mine == evidence.Commit(
        sealed.tip,
        "Keep what the command left",
        "Leadsman <leadsman@bot.example>",
        (("Leadsman-Run", "20260101-000000-abcdef"), ("Requested-by", "ada")),
    )
    assert (theirs.subject, theirs.author, theirs.trailers) == ("The command's own", "Ada <ada@example.org>", ())


def test_the_worktree_stands_at_what_was_sealed(tree: Worktree, main: str) -> None:
    (tree.path / "new").write_text("1\n")
    sealed = seal(tree, main)
    folder = Folder(tree.path)
    assert folder.git("rev-parse", "HEAD", "refs/heads/leadsman/run").split() == [sealed.tip] * 2
    assert folder.git("status", "--porcelain") == ""
    assert seal(tree, main) == sealed, "sealing again is the same"


def test_names_of_any_kind_are_files(tree: Worktree, main: str) -> None:
    names = [
        "-rf",
        "q\"uo'te",
        "new\nline",
        "ünï",
        "$(touch pwned)",
        ":(exclude)x",
        "*",
        "a b",
        os.fsdecode(b"\xff\xfe"),
    ]
    for name in names:
        (tree.path / name).write_text("1\n")
    sealed = seal(tree, main)
    assert sealed.skipped == ()
    assert set(names) <= set(content(tree.mirror, sealed.tip))
    figures = evidence.figures(tree.mirror, main, sealed.tip)
    assert sorted(names) == sorted(file.path for file in figures.files)
    assert not list(tree.path.parent.rglob("pwned"))


def test_ignored_files_stay_out_and_changed_ones_that_are_tracked_do_not(tree: Worktree, main: str) -> None:
    (tree.path / ".gitignore").write_text("*.log\nREADME.md\n")
    (tree.path / "run.log").write_text("noise")
    (tree.path / "README.md").write_text("changed\n")
    sealed = seal(tree, main)
    assert set(content(tree.mirror, sealed.tip)) == {".gitignore", "README.md", "src/app.py"}
    assert content(tree.mirror, sealed.tip)["README.md"] == b"changed\n"


def test_an_ignored_file_that_was_added_by_name_is_part_of_the_work(tree: Worktree, main: str, tmp_path: Path) -> None:
    for name in (".gitignore", "run.log", "again.log", "gone.log", "kept.log", "away/x.log"):
        Folder(tree.path).write(name, "*.log\n")
    Folder(tree.path).git("add", "-f", "run.log", "gone.log", "away/x.log")
    (tree.path / "gone.log").unlink()
    (tree.path / "away").rename(tmp_path / "away")
    (tree.path / "away").symlink_to(tmp_path / "away")
    sealed = seal(tree, main)
    assert set(content(tree.mirror, sealed.tip)) == {".gitignore", "README.md", "away", "run.log", "src/app.py"}
    assert seal(tree, main).skipped == sealed.skipped == ()
    (tree.registration / "index").write_text("nonsense")
    (tree.path / "later").write_text("1")
    assert "later" in content(tree.mirror, seal(tree, main).tip)


def test_a_file_that_only_its_attributes_would_change_is_not_taken_for_changed(
    mirror: Mirror, ada: Folder, place: Path
) -> None:
    ada.write("dos.txt", "one\r\ntwo\r\n")
    ada.write("mixed.bat", "one\r\ntwo\n")
    ada.write("id.c", "$Id: 123$\n")
    ada.write("edited.txt", "one\r\n")
    ada.write("staged.txt", "one\r\n")
    ada.commit({})
    ada.write(".gitattributes", "*.txt text\n*.bat text eol=crlf\n*.c ident\n")
    ada.git("add", ".gitattributes")  # and nothing else, which would be put right along with it
    ada.git("commit", "-q", "-m", "Attributes")
    base = ada.git("rev-parse", "HEAD")
    ada.push("HEAD:main")
    mirror.refresh()
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=base)
    assert seal(tree, base).tip == base, "nobody touched anything"
    (tree.path / "edited.txt").write_bytes(b"two\r\n")
    (tree.path / "mixed.bat").chmod(0o755)
    (tree.path / "staged.txt").touch()  # what git has seen as it is, it does not look at again
    Folder(tree.path).git("add", "--renormalize", "staged.txt")
    figures = evidence.figures(mirror, base, seal(tree, base).tip)
    assert ["edited.txt", "mixed.bat", "staged.txt"] == [file.path for file in figures.files]


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_change_that_the_index_was_told_to_hide_is_found(tree: Worktree, main: str, flag: str) -> None:
    Folder(tree.path).git("update-index", flag, "README.md")
    (tree.path / "README.md").write_text("hidden\n")
    assert Folder(tree.path).git("status", "--porcelain") == ""
    assert content(tree.mirror, seal(tree, main).tip)["README.md"] == b"hidden\n"


def test_a_folder_in_place_of_a_file_and_the_reverse(tree: Worktree, main: str, tmp_path: Path) -> None:
    (tree.path / "README.md").unlink()
    (tree.path / "README.md").mkdir()
    (tree.path / "README.md" / "inner").write_text("1\n")
    shutil.rmtree(tree.path / "src")
    (tree.path / "src").symlink_to(tmp_path)
    (tmp_path / "app.py").write_text("outside\n")
    sealed = seal(tree, main)
    assert content(tree.mirror, sealed.tip) == {"README.md/inner": b"1\n", "src": bytes(tmp_path)}


def test_the_executable_bit_is_part_of_the_work(tree: Worktree, main: str) -> None:
    (tree.path / "README.md").chmod(0o755)
    assert "100755" in tree.mirror.git.run("ls-tree", seal(tree, main).tip, "README.md").text


def test_what_no_commit_can_carry_is_named(tree: Worktree, main: str, ada: Folder) -> None:
    inner = Folder(tree.path / "inner")
    inner.path.mkdir()
    inner.git("init", "-q")
    inner.commit({"x": "1"})
    unborn = Folder(tree.path / "unborn")
    unborn.path.mkdir()
    unborn.git("init", "-q")
    (tree.path / "unborn" / "y").write_text("1")
    (tree.path / "README.md").unlink()
    os.mkfifo(tree.path / "README.md")
    os.mkfifo(tree.path / "pipe")
    (tree.path / "good").write_text("1\n")
    sealed = seal(tree, main)
    assert sealed.skipped == ("README.md", "inner/", "unborn/")
    assert set(content(tree.mirror, sealed.tip)) == {"README.md", "good", "src/app.py"}


def test_a_submodule_that_was_moved_stays_where_it_was(mirror: Mirror, ada: Folder, place: Path) -> None:
    pinned = "1" * 40
    ada.git("update-index", "--add", "--cacheinfo", f"160000,{pinned},lib")
    ada.git("commit", "-q", "-m", "Submodule")
    ada.push("HEAD:main")
    mirror.refresh()
    base = ada.git("rev-parse", "HEAD")
    tree = worktree.add(mirror, place / "run", branch="leadsman/run", sha=base)
    inner = Folder(tree.path / "lib")
    inner.git("init", "-q")
    inner.commit({"x": "1"})
    (tree.path / "a").write_text("1\n")
    sealed = seal(tree, base)
    assert sealed.skipped == ("lib",)
    assert pinned in mirror.git.run("ls-tree", sealed.tip, "lib").text
    assert [file.path for file in evidence.figures(mirror, base, sealed.tip).files] == ["a"]


def test_a_run_that_left_its_branch_moves_nobody_elses(tree: Worktree, main: str) -> None:
    folder = Folder(tree.path)
    folder.git("branch", "leadsman/other")
    folder.git("symbolic-ref", "HEAD", "refs/heads/leadsman/other")
    (tree.path / "a").write_text("1\n")
    sealed = seal(tree, main)
    assert sealed.descends
    assert folder.git("rev-parse", "HEAD") == sealed.tip
    assert folder.git("rev-parse", "refs/heads/leadsman/other") == main


def test_work_that_does_not_descend_from_its_base_is_said_to(tree: Worktree, main: str) -> None:
    folder = Folder(tree.path)
    folder.git("checkout", "-q", "--orphan", "island")
    (tree.path / "a").write_text("1\n")
    sealed = seal(tree, main)
    assert not sealed.descends
    assert "a" in content(tree.mirror, sealed.tip)
    assert seal(tree, main) == sealed


def test_a_merge_that_was_left_half_done_is_said_to_be(tree: Worktree, main: str) -> None:
    folder = Folder(tree.path)
    folder.commit({"README.md": "mine\n"})
    folder.git("checkout", "-q", "-b", "side", main)
    folder.commit({"README.md": "theirs\n"})
    folder.git("merge", "leadsman/run", check=False)
    assert seal(tree, main).unfinished == "merge"


def test_replacements_and_grafts_of_a_run_change_no_figure(tree: Worktree, main: str) -> None:
    folder = Folder(tree.path)
    evil = folder.commit({"backdoor": "1\n"})
    mild = folder.git("commit-tree", "-p", main, "-m", "Mild", f"{main}^{{tree}}")
    folder.git("replace", evil, mild)
    assert evidence.figures(tree.mirror, main, evil).files == (evidence.FileFigures("backdoor", 1, 0),)
    assert [commit.subject for commit in evidence.commits(tree.mirror, main, evil)] == ["Change"]


def test_figures_count_lines_and_leave_binaries_uncounted(tree: Worktree, main: str) -> None:
    (tree.path / "README.md").write_text("one\n2\nthree\nfour\n")
    (tree.path / "data").write_bytes(b"\0\1")
    shutil.move(tree.path / "src" / "app.py", tree.path / "moved.py")
    figures = evidence.figures(tree.mirror, main, seal(tree, main).tip)
    assert figures.files == (
        evidence.FileFigures("README.md", 2, 1),
        evidence.FileFigures("data", None, None),
        evidence.FileFigures("moved.py", 1, 0),
        evidence.FileFigures("src/app.py", 0, 1),
    )
    assert (figures.additions, figures.deletions) == (3, 2)


def test_a_patch_gives_the_same_tree_again_and_none_is_no_file(tree: Worktree, main: str, tmp_path: Path) -> None:
    (tree.path / "data").write_bytes(bytes(range(256)) * 10)
    (tree.path / "README.md").write_text("no end of line")
    tip = seal(tree, main).tip
    size = evidence.write_patch(tree.mirror, main, tip, tmp_path / "changes.patch")
    assert size == (tmp_path / "changes.patch").stat().st_size > 0
    again = worktree.checkout(tree.mirror, tree.path.parent / "again", main)
    Folder(again.path).git("apply", "--index", str(tmp_path / "changes.patch"))
    assert Folder(again.path).git("write-tree") == tree.mirror.git.run("rev-parse", f"{tip}^{{tree}}").text
    assert evidence.write_patch(tree.mirror, tip, tip, tmp_path / "none.patch") == 0
    assert sorted(path.name for path in tmp_path.glob("*.patch")) == ["changes.patch"]


def test_reading_commits_leaves_no_process_behind(tree: Worktree, main: str) -> None:
    for number in range(3):
        Folder(tree.path).commit({"a": str(number)}, f"Step {number}")
    tip = seal(tree, main).tip
    before = set(psutil.Process().children(recursive=True))
    assert [c.subject for c in evidence.commits(tree.mirror, main, tip)] == ["Step 0", "Step 1", "Step 2"]
    new = set(psutil.Process().children(recursive=True)) - before
    assert [p for p in new if p.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "word",
    [
        *("read-tree", "--refresh", "diff-files", "ls-files", "--force-remove", "--replace", "write-tree"),
        *("commit-tree", "update-ref", "rev-list"),
    ],
)
def test_a_seal_that_was_killed_anywhere_ends_at_the_same_place(
    tree: Worktree, main: str, start: Start, word: str, when: str
) -> None:
    (tree.path / "src" / "app.py").unlink()
    (tree.path / "README.md").write_text("changed\n")
    (tree.path / "new").write_text("1\n")
    stop = Stop(tree.path.parent / "stop", word, when)
    actor = start("seal", tree.mirror, stop=stop, path=str(tree.path), base=main, message=MESSAGE)
    kill_at(actor, stop)
    sealed = seal(tree, main)
    assert (sealed.commits, sealed.committed_leftovers) == (1, True)
    assert content(tree.mirror, sealed.tip) == {"README.md": b"changed\n", "new": b"1\n"}
    assert Folder(tree.path).git("status", "--porcelain") == ""


def test_two_that_seal_at_once_agree(tree: Worktree, main: str, start: Start) -> None:
    for number in range(500):
        (tree.path / f"f{number}").write_text(f"{number}\n")
    actors = [start("seal", tree.mirror, path=str(tree.path), base=main, message=MESSAGE) for _ in range(3)]
    assert [actor.says() for actor in actors] == ["ready"] * 3
    for actor in actors:
        actor.go()
    tips = {json.dumps(actor.says()) for actor in actors}
    assert len(tips) == 1
    assert seal(tree, main).commits == 1

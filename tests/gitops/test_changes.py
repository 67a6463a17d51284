"""What two commits differ in, with the text of the difference: bounded, whatever a file holds."""

from __future__ import annotations

import os
from pathlib import Path

from gitops import clones
from gitops.changes import PATCH_BYTES, Changed, changed
from gitops.mirror import Mirror
from gitops.objects import merge_base, read_file
from tests.gitops.folk import Folder


def test_each_file_has_its_own_patch(ada: Folder, mirror: Mirror, main: str) -> None:
    old = ada.commit({"to-link": "text\n", "mode": "x\n", "moved": "1\n2\n", "gone": "bye\n", 'ne\nw"l': "1\n"})
    for name in ("to-link", "gone"):
        (ada.path / name).unlink()
    (ada.path / "to-link").symlink_to("README.md")
    (ada.path / "mode").chmod(0o755)
    (ada.path / "moved").rename(ada.path / "moved here")
    (ada.path / "binary").write_bytes(b"\0\1")
    (ada.path / os.fsdecode(b"\xff")).write_bytes(b"diff --git a/x b/x\r\n@@ -1 +1 @@\ncaf\xe9")
    (ada.path / "long").write_text("x" * PATCH_BYTES)
    (ada.path / "many").write_text("12345678\n" * (PATCH_BYTES // 9))
    (ada.path / "lib").mkdir()
    ada.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib")
    new = ada.commit({'ne\nw"l': "2\n", "README.md": "one\n2\nthree\n"})
    ada.push("main")
    mirror.refresh()
    found = {file.path: file for file in changed(mirror.git, old, new, patches=True)}
    wanted = [
        Changed("README.md", 1, 1, (" one", "-two", "+2", " three")),
        Changed("binary", None, None),
        Changed("gone", 0, 1, ("-bye",)),
        Changed("lib", 1, 0, (f"+Subproject commit {'1' * 40}",)),
        Changed("long", 1, 0),
        Changed("many", PATCH_BYTES // 9, 0),
        Changed("mode", 0, 0),
        Changed("moved", 0, 2, ("-1", "-2")),
        Changed("moved here", 2, 0, ("+1", "+2")),
        Changed('ne\nw"l', 1, 1, ("-1", "+2")),
        Changed("to-link", 1, 1, ("-text", "+README.md")),
        Changed(os.fsdecode(b"\xff"), 3, 0, ("+diff --git a/x b/x", "+@@ -1 +1 @@", "+caf\ufffd")),
    ]
    assert {file.path: file for file in wanted} == found
    plain = [Changed(file.path, file.added, file.deleted) for file in found.values()]
    assert plain == list(changed(mirror.git, old, new, patches=False))
    assert [] == list(changed(mirror.git, new, new, patches=True))


def test_a_clone_says_what_its_commits_say_whatever_it_configures(ada: Folder, main: str, tmp_path: Path) -> None:
    new = ada.commit({"README.md": "1\n", "-x": "1\n"})
    ada.git("worktree", "add", "-q", str(tmp_path / "linked"))
    (ada.path / ".gitattributes").write_text("* -diff\n")
    (ada.path / ".git/info/attributes").write_text("* -diff\n")
    for key, value in (("diff.context", "0"), ("diff.noprefix", "true"), ("diff.renames", "copies")):
        ada.git("config", key, value)
    before = sorted(path for path in ada.path.rglob("*"))
    for start in (ada.path / "src", tmp_path / "linked"):
        git_dir = clones.git_dir_of(start)
        assert git_dir is not None
        with clones.apart(git_dir) as git:
            assert main == merge_base(git, main, new)
            assert b"1\n" == read_file(git, new, "-x", limit=9)
            figures = [(file.path, file.added, file.deleted) for file in changed(git, main, new, patches=True)]
            assert [("-x", 1, 0), ("README.md", 1, 3)] == figures
            assert not clones.is_cut(git)
        assert not git.git_dir.exists()
    assert before == sorted(path for path in ada.path.rglob("*"))


def test_a_clone_that_was_cut_off_is_known_to_be(ada: Folder, tmp_path: Path) -> None:
    ada.commit({"a": "1\n"})
    ada.git("clone", "-q", "--depth", "1", f"file://{ada.path}", str(tmp_path / "cut"))
    with clones.apart(tmp_path / "cut/.git") as git:
        assert clones.is_cut(git)
        head = Folder(tmp_path / "cut").git("rev-parse", "HEAD")
        assert head == merge_base(git, head, head)

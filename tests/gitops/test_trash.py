"""Deleting what a stranger left: everything goes, nothing outside does."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from gitops import trash


def test_a_hostile_tree_goes_and_nothing_outside_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    tree = tmp_path / "tree"
    (tree / "sealed" / "deep").mkdir(parents=True)
    (tree / "sealed" / "deep" / "file").write_text("x")
    (tree / "to-folder").symlink_to(outside)
    (tree / "to-file").symlink_to(outside / "kept")
    (tree / "dangling").symlink_to("nowhere")
    os.mkfifo(tree / "pipe")
    (tree / "na\nme").mkdir()
    (tree / "sealed" / "deep").chmod(0)
    (tree / "sealed").chmod(0o500)
    tree.chmod(0)
    trash.discard(tree, tmp_path / "trash")
    assert not tree.exists()
    (moved,) = (tmp_path / "trash").iterdir()
    assert stat.S_IRWXU == moved.stat().st_mode & stat.S_IRWXU  # root may move it as it is, its owner may not
    assert trash.empty(tmp_path / "trash") == []
    assert list((tmp_path / "trash").iterdir()) == []
    assert (outside / "kept").read_text() == "kept"


def test_a_link_in_place_of_a_tree_goes_alone(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "tree").symlink_to(tmp_path / "outside")
    trash.discard(tmp_path / "tree", tmp_path / "trash")
    assert trash.empty(tmp_path / "trash") == []
    assert (tmp_path / "outside").is_dir()
    assert not (tmp_path / "tree").is_symlink()


def test_no_depth_is_too_deep(tmp_path: Path) -> None:
    script = "import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\n"
    (tmp_path / "tree").mkdir()
    subprocess.run(["python3", "-c", script], cwd=tmp_path / "tree", check=True)
    trash.discard(tmp_path / "tree", tmp_path / "trash")
    assert trash.empty(tmp_path / "trash") == []
    assert list((tmp_path / "trash").iterdir()) == []


def test_what_is_not_there_can_be_discarded(tmp_path: Path) -> None:
    trash.discard(tmp_path / "none", tmp_path / "trash")
    assert trash.empty(tmp_path / "trash") == []
    assert trash.empty(tmp_path / "no-trash") == []


@pytest.mark.skipif(os.stat("/dev/shm").st_dev == os.stat("/tmp").st_dev, reason="one disk")  # noqa: PTH116
def test_a_tree_on_another_disk_is_deleted_where_it_is(tmp_path: Path) -> None:
    tree = Path("/dev/shm") / f"leadsman-{os.getpid()}" / "tree"
    (tree / "a").mkdir(parents=True)
    try:
        trash.discard(tree, tmp_path / "trash")
        assert list(tree.parent.iterdir()) == []
    finally:
        tree.parent.rmdir()

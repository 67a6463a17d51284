"""What lies in a worktree, as a tree: read from the files alone, whatever the run told git about them."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gitops.git import TREE_SECONDS, Git

_INDEX = "leadsman-index"
_GITLINK = "160000"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`tree` is the worktree's content; `skipped` what a commit can't carry: repositories inside, pipes, unreadable."""

    tree: str
    skipped: tuple[str, ...]


def take(git: Git, files: Path, head: str | None) -> Snapshot:
    """`files`, the folder of `git`'s worktree, as a tree without what is ignored; what is skipped stays as in `head`.

    The index is a fresh one: in the run's own a file may be flagged as unchanged, and its edits would be lost.
    """
    index = git.git_dir / _INDEX
    for left in (index, Path(f"{index}.lock")):  # of a try that was killed
        left.unlink(missing_ok=True)
    own = {"GIT_INDEX_FILE": str(index)}
    git.run("read-tree", head or "--empty", environment=own)
    git.run("update-index", "-q", "--refresh", environment=own, timeout=TREE_SECONDS, check=False)
    gone, changed, links = _changes(git, own)
    untracked = git.run("ls-files", "-z", "--others", "--exclude-standard", environment=own, timeout=TREE_SECONDS).items
    inner = [name for name in untracked if name.endswith("/")]
    candidates = [*changed, *(name for name in untracked if not name.endswith("/"))]
    fit = [name for name in candidates if _is_file(files / name)]
    _update(git, own, "--force-remove", gone)
    _update(git, own, "--replace", fit)
    tree = git.run("write-tree", environment=own).text
    return Snapshot(tree, tuple(sorted({*links, *inner, *candidates} - {*fit})))


def keep_index(git: Git) -> None:
    """Make the index of the last snapshot the worktree's own."""
    (git.git_dir / _INDEX).replace(git.git_dir / "index")


def _changes(git: Git, own: dict[str, str]) -> tuple[list[str], list[str], list[str]]:
    """What was deleted, what was changed, and which repositories inside point elsewhere now than `head` says."""
    raw = git.run("diff-files", "-z", "--raw", "--no-renames", "--ignore-submodules=dirty", environment=own).items
    gone, changed, links = [], [], []
    for facts, name in zip(raw[::2], raw[1::2], strict=True):
        before, after, *_, status = facts.lstrip(":").split()
        if _GITLINK in (before, after):
            links.append(name)
        elif status == "D":
            gone.append(name)
        else:
            changed.append(name)
    return gone, changed, links


def _is_file(path: Path) -> bool:
    """Is it what a tree can hold and we can read: a link, or a file?"""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISLNK(mode) or (stat.S_ISREG(mode) and os.access(path, os.R_OK))


def _update(git: Git, own: dict[str, str], how: str, names: Sequence[str]) -> None:
    if not names:
        return
    git.run(
        *("update-index", "--add", "--remove", how, "-z", "--stdin"),
        stdin=b"".join(os.fsencode(name) + b"\0" for name in names),
        environment=own,
        timeout=TREE_SECONDS,
    )

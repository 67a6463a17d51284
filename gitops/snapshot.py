"""What lies in a worktree, as a tree: read from the files, whatever the run told git about them."""

from __future__ import annotations

import filecmp
import os
import stat
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gitops.git import TREE_SECONDS, Git
from gitops.objects import empty_tree

_INDEX = "leadsman-index"
_GITLINK = "160000"

_CONVERTING = ("text", "eol", "ident", "working-tree-encoding")
"""Attributes by which a file in the worktree is another than in its commit."""

_NOT_SET = {"unspecified", "unset", "auto"}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`tree` is the worktree's content; `skipped` what a commit can't carry: repositories inside, pipes, unreadable."""

    tree: str
    skipped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Changes:
    """What differs from the commit: names of files. `links` are repositories inside that point elsewhere now."""

    gone: tuple[str, ...]
    changed: tuple[str, ...]
    same_mode: frozenset[str]
    """Of those that were changed, whose kind and mode were not."""
    links: tuple[str, ...]


def take(git: Git, files: Path, head: str | None) -> Snapshot:
    """`files`, the folder of `git`'s worktree, as a tree without what is ignored; what is skipped stays as in `head`.

    The index is a fresh one: in the run's own a file may be flagged as unchanged, and its edits would be lost. All that
    is taken from that one is which files the run wished for by name, though they are ignored.
    """
    index = git.git_dir / _INDEX
    for left in (index, Path(f"{index}.lock")):  # of a try that was killed
        left.unlink(missing_ok=True)
    own = {"GIT_INDEX_FILE": str(index)}
    git.run("read-tree", head or "--empty", environment=own)
    git.run("update-index", "-q", "--refresh", environment=own, timeout=TREE_SECONDS, check=False)
    found = _changes(git, own)
    staged = _staged(git, head)
    untracked = git.run("ls-files", "-z", "--others", "--exclude-standard", environment=own, timeout=TREE_SECONDS).items
    inner = [name for name in untracked if name.endswith("/")]
    new = dict.fromkeys(name for name in untracked if not name.endswith("/"))
    new |= dict.fromkeys(name for name in staged["A"] if name not in new and _is_inside(files, name))
    candidates = [*_touched(git, own, files, found, staged["M"]), *new]
    fit = [name for name in candidates if _is_file(files / name)]
    _update(git, own, "--force-remove", found.gone)
    _update(git, own, "--replace", fit)
    tree = git.run("write-tree", environment=own).text
    return Snapshot(tree, tuple(sorted({*found.links, *inner, *candidates} - {*fit})))


def keep_index(git: Git) -> None:
    """Make the index of the last snapshot the worktree's own."""
    (git.git_dir / _INDEX).replace(git.git_dir / "index")


def _changes(git: Git, own: dict[str, str]) -> _Changes:
    raw = git.run("diff-files", "-z", "--raw", "--no-renames", "--ignore-submodules=dirty", environment=own).items
    gone, changed, same_mode, links = [], [], set(), []
    for facts, name in zip(raw[::2], raw[1::2], strict=True):
        before, after, *_, status = facts.lstrip(":").split()
        if _GITLINK in (before, after):
            links.append(name)
        elif status == "D":
            gone.append(name)
        else:
            changed.append(name)
            if before == after:
                same_mode.add(name)
    return _Changes(tuple(gone), tuple(changed), frozenset(same_mode), tuple(links))


def _staged(git: Git, head: str | None) -> dict[str, set[str]]:
    """What the run's own index has otherwise than `head`: `A` names of new files, `M` of changed ones."""
    found: dict[str, set[str]] = {"A": set(), "M": set()}
    index = git.git_dir / "index"
    if index.is_symlink() or not index.is_file():
        return found
    words = ("diff-index", "--cached", "-z", "--name-status", "--no-renames", "--diff-filter=AM")
    done = git.run(*words, head or empty_tree(git), check=False)
    if done.code == 0:  # else it is none that git can read
        for status, name in zip(done.items[::2], done.items[1::2], strict=True):
            found[status].add(name)
    return found


def _touched(git: Git, own: dict[str, str], files: Path, found: _Changes, staged: set[str]) -> list[str]:
    """Of what was changed, all but what lies there as git itself had put it: where the attributes want other line ends
    in the commit than are in it, a file looks changed that nobody touched."""
    doubtful = [name for name in _converted(git, own, found.same_mode - staged) if _is_plain(files / name)]
    if not doubtful:
        return list(found.changed)
    with tempfile.TemporaryDirectory(dir=git.git_dir) as folder:
        put = ("checkout-index", "-q", "-z", "--stdin", f"--prefix={folder}/")
        git.run(*put, stdin=_listed(doubtful), environment=own, timeout=TREE_SECONDS)
        as_put = {name for name in doubtful if filecmp.cmp(files / name, f"{folder}/{name}", shallow=False)}
    return [name for name in found.changed if name not in as_put]


def _converted(git: Git, own: dict[str, str], names: Iterable[str]) -> list[str]:
    """Those that git converts between a commit and the worktree."""
    names = sorted(names)
    if not names:
        return []
    answer = git.run("check-attr", "-z", "--stdin", *_CONVERTING, stdin=_listed(names), environment=own).items
    return sorted({name for name, value in zip(answer[::3], answer[2::3], strict=True) if value not in _NOT_SET})


def _is_inside(files: Path, name: str) -> bool:
    """Is it a file of this folder, and not of one that a link leads to?"""
    return _is_file(files / name) and not any((files / part).is_symlink() for part in Path(name).parents)


def _is_plain(path: Path) -> bool:
    return _is_file(path) and not path.is_symlink()


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
        stdin=_listed(names),
        environment=own,
        timeout=TREE_SECONDS,
    )


def _listed(names: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(name) + b"\0" for name in names)

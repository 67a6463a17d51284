"""Publishing: the very commit that was checked, never at the cost of anybody else's."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from gitops.git import Git, GitError, Identity
from gitops.mirror import Mirror
from gitops.names import is_sha
from gitops.objects import commit_tree, empty_tree, message_of, tree_of, trees_of
from gitops.push import Pushed, Rejected, push

__all__ = [
    "Conflict",
    "Pushed",
    "Rejected",
    "already_merged",
    "commit_files",
    "holds",
    "incorporate",
    "push_exact",
    "rebase",
    "remove",
    "same_files",
    "signed",
]


_NOBODY = Identity("nobody", "nobody@localhost")
"""Whose name stands in commits that nobody ever sees."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two commits that can't be put together without a person; `paths` is where."""

    paths: tuple[str, ...]


def push_exact(mirror: Mirror, sha: str, ref: str, *, expect: str | None) -> Pushed | Rejected:
    """Let the remote's `ref` hold the commit `sha` if it holds `expect`, which was seen and whose work is in `sha`.

    None: it must not be there. Repeated after a push whose end was not seen, it is `Pushed` all the same, also where
    others went on from it at once. `Rejected` without asking the remote to change anything where `sha` would drop
    commits of `expect`. GitError where the remote did not answer.
    """
    if not is_sha(sha) or not mirror.has(sha):
        raise ValueError(f"{sha!r} is not a commit of the mirror.")
    if expect is not None and not mirror.is_ancestor(expect, sha):
        pushed: Pushed | Rejected | None = Rejected(mirror.remote_ref(ref), f"{expect} is not part of {sha}")
    else:
        pushed = push(mirror, sha, ref, expect=expect)
    if isinstance(pushed, Rejected) and not holds(mirror, ref, pushed.seen, sha):
        return pushed
    return Pushed(sha, ref)


def holds(mirror: Mirror, ref: str, seen: str | None, sha: str) -> bool:
    """Is `sha` part of the commit `seen`, which the remote's `ref` was seen to hold?"""
    return seen is not None and mirror.fetch_commit(seen, ref=ref) and mirror.is_ancestor(sha, seen)


def remove(mirror: Mirror, ref: str, *, expect: str) -> bool:
    """Take the remote's `ref` away if it still holds `expect`; is it away?"""
    return push(mirror, None, ref, expect=expect) is None


def incorporate(mirror: Mirror, tip: str, onto: str, identity: Identity, message: str) -> str | Conflict:
    """A commit with the work of both `onto` and `tip`: one of them if it has the other, else a merge by `identity`."""
    if mirror.is_ancestor(onto, tip):
        return tip
    if mirror.is_ancestor(tip, onto):
        return onto
    git = mirror.git
    # Of two that share no history all is new: what both have, and differently, is a conflict.
    if mirror.merge_base(tip, onto) is not None:
        tree = _merge_trees(git, onto, tip)
    else:
        tree = _three_way(git, empty_tree(git), *trees_of(git, onto, tip))
    if isinstance(tree, Conflict):
        return tree
    return commit_tree(git, tree, parents=(onto, tip), message=message, identity=identity)


def commit_files(mirror: Mirror, onto: str | None, files: Mapping[str, bytes], identity: Identity, message: str) -> str:
    """A commit on top of `onto` (None: one without parents) in which `files` hold what is given, by path; `onto` itself
    where they hold it already."""
    git = mirror.git
    with tempfile.TemporaryDirectory(prefix="leadsman-") as folder:
        own = {"GIT_INDEX_FILE": f"{folder}/index"}
        git.run("read-tree", onto or "--empty", environment=own)
        entries = b""
        for path, content in files.items():
            blob = git.run("hash-object", "-w", "--stdin", stdin=content).text
            entries += f"100644 {blob}\t{path}\0".encode()
        git.run("update-index", "-z", "--index-info", stdin=entries, environment=own)
        tree = git.run("write-tree", environment=own).text
    if onto is not None and tree == tree_of(git, onto):
        return onto
    return commit_tree(git, tree, parents=(onto,) if onto else (), message=message, identity=identity)


def rebase(mirror: Mirror, tip: str, base: str, onto: str, identity: Identity) -> str | Conflict:
    """The commits of `base`..`tip` again, one by one on top of `onto`: their authors stay, the committer is `identity`.

    What `onto` has already is left out. ValueError if there is a merge among them.
    """
    git = mirror.git
    lines = git.run("rev-list", "--reverse", "--topo-order", "--parents", tip, "--not", base).text.splitlines()
    for line in lines:
        commit, *parents = line.split()
        if len(parents) != 1:
            raise ValueError(f"{commit} has {len(parents)} parents: only a straight line can be rebased.")
        tree = _replay(git, commit, parents[0], onto)
        if isinstance(tree, Conflict):
            return tree
        if tree is not None:
            message, author = message_of(git, commit), _author(git, commit)
            onto = commit_tree(git, tree, parents=(onto,), message=message, identity=identity, author=author)
    return onto


def signed(mirror: Mirror, base: str, tip: str, identity: Identity) -> str:
    """The commits of `base`..`tip` once more, signed by `identity`; `tip` itself where all of them are signed, or where
    a merge among them can't be made again without a person."""
    if identity.signing_key is None or not mirror.is_ancestor(base, tip):
        return tip
    git = mirror.git
    line = git.run("rev-list", tip, "--not", base).text.split()
    if all(b"\ngpgsig" in git.run("cat-file", "commit", sha).stdout.partition(b"\n\n")[0] for sha in line):
        return tip
    try:
        again = rebase(mirror, tip, base, base, identity)
    except ValueError:
        return tip
    return again if isinstance(again, str) and same_files(mirror, again, tip) else tip


def same_files(mirror: Mirror, one: str, other: str) -> bool:
    """Do two commits hold the very same files?"""
    tree, another = trees_of(mirror.git, one, other)
    return tree == another


def already_merged(mirror: Mirror, tip: str, base: str, into: str) -> bool:
    """Is the work of `base`..`tip` proved to be in `into`: reachable, or the same content (a squash)?

    False wherever that can't be proved, also for commits that change nothing. Content proves it where neither all of
    `tip` nor its difference to `base` alone would change anything: what takes back a part of `base` is in no `into`
    that has `base` without it, and may be no difference to the commit that the two have in common.
    """
    if mirror.is_ancestor(tip, into):
        return True
    git = mirror.git
    if tree_of(git, tip) == tree_of(git, base) or mirror.merge_base(tip, into) is None:
        return False
    return _merge_trees(git, into, tip) == tree_of(git, into) and _replay(git, tip, base, into) is None


def _replay(git: Git, commit: str, parent: str, onto: str) -> str | Conflict | None:
    """The tree of `onto` with what `commit` changed since `parent`; None where `onto` has that already."""
    before, there, wanted = trees_of(git, parent, onto, commit)
    merged = _three_way(git, before, there, wanted)
    return merged if merged != there else None


def _three_way(git: Git, before: str, ours: str, theirs: str) -> str | Conflict:
    """Three trees as one. `merge-tree` finds the common ancestor itself (it can be told only since 2.40): it gets one
    made for it."""
    root = commit_tree(git, before, parents=(), message="", identity=_NOBODY)
    sides = (commit_tree(git, tree, parents=(root,), message="", identity=_NOBODY) for tree in (ours, theirs))
    return _merge_trees(git, *sides)


def _merge_trees(git: Git, ours: str, theirs: str) -> str | Conflict:
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    done = git.run(*words, check=False)
    if done.code not in (0, 1):
        raise GitError(("git", *words), done.code, done.stderr)
    tree, *paths = done.items
    return tree if done.code == 0 else Conflict(tuple(path for path in paths if path))


def _author(git: Git, commit: str) -> dict[str, str]:
    shown = git.run("show", "--no-patch", "--format=%an%x00%ae%x00%ad%x00", "--date=raw", commit).items
    return dict(zip(("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"), shown, strict=False))

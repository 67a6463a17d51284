"""Worktrees of a mirror: a fresh one for each run, on a branch of its own, and clean checkouts of one commit."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from gitops import evidence, trash
from gitops.git import TREE_SECONDS, Git
from gitops.mirror import Mirror
from gitops.names import is_branch, is_ref, is_sha
from gitops.pinning import RECOVER, pin, pin_strays, tip_of
from gitops.registration import Damaged, Worktree, head_of, ready_on

BEING_MADE_SECONDS = 3600.0
"""How long a registration that git has locked and given no folder yet may be in the making."""


class Taken(Exception):
    """The folder is a complete worktree that holds something else; it is left alone."""


def add(mirror: Mirror, path: Path, *, branch: str, sha: str, spare: Path | None = None) -> Worktree:
    """A fresh worktree at `path` (absolute), on the new branch `branch` that begins at the commit `sha`.

    `spare` is a `checkout` of the same mirror that nobody has ever worked in: if it still is there it becomes this
    worktree, and only what differs is written.
    Can be repeated after a kill at any point: what is half-made is made anew, a complete one is given as it is.
    `Taken` where `path` is complete but on another branch, or its commits don't descend from `sha`.
    """
    if not is_branch(branch):
        raise ValueError(f"{branch!r} can't be the name of a branch.")
    tree = Worktree(mirror, path)
    if tree.branch is not None and tree.path.exists():
        _agree(tree, branch, sha)
        return tree
    with mirror.locked() as git:
        pin(git, tip_of(git, f"refs/heads/{branch}"), f"{RECOVER}/{branch}", safe=(sha,))
        if spare is None or not _move(git, Worktree(mirror, spare), tree, f"refs/heads/{branch}", sha):
            _register(git, tree, sha, "--no-track", "-B", branch)
    return _fill(tree, sha, branch)


def checkout(mirror: Mirror, path: Path, sha: str) -> Worktree:
    """The commit `sha`, whole and clean, at `path` (absolute). What was there before, used or half-made, goes."""
    tree = Worktree(mirror, path)
    with mirror.locked() as git:
        _register(git, tree, sha, "--detach")
    return _fill(tree, sha, "")


def is_spare(mirror: Mirror, path: Path) -> bool:
    """Is there a complete `checkout` at `path`?"""
    tree = Worktree(mirror, path)
    return tree.branch == "" and not tree.damaged


def refresh(mirror: Mirror, path: Path, sha: str) -> bool:
    """The commit `sha`, whole and clean, at `path`, like `checkout`; False if it stood there already. A checkout in
    which nobody ever worked, that is there, is moved: only the difference is written."""
    tree = Worktree(mirror, path)
    with mirror.locked():
        there = is_spare(mirror, path)
        if there and tree.head == sha:
            return False
        if there:
            tree.reopen()  # nobody takes it meanwhile, and if we are killed it is made anew
    if there:
        _fill(tree, sha, "")
    else:
        checkout(mirror, path, sha)
    return True


def begun(mirror: Mirror, path: Path, branch: str) -> bool:
    """Is there the worktree at `path` that is made on `branch`, or the beginning of one?"""
    tree = Worktree(mirror, path)
    return tree.branch in (None, branch) and any(map(os.path.lexists, (path, tree.registration, tree.half_made)))


def put_files(mirror: Mirror, path: Path, sha: str, files: Sequence[str]) -> None:
    """Make `files` of the worktree at `path` what they are in the commit `sha`; those it has not are removed."""
    if not files:
        return
    with Worktree(mirror, path).held() as git:
        git.run(
            *("restore", f"--source={sha}", "--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul"),
            stdin=b"".join(os.fsencode(name) + b"\0" for name in files),
            timeout=TREE_SECONDS,
        )


def head(mirror: Mirror, path: Path) -> str | None:
    """The commit that the worktree at `path` stands at, by its registration; None where there is none."""
    return Worktree(mirror, path).head


def damaged(mirror: Mirror, path: Path) -> bool:
    """Is the `.git` of the worktree at `path` gone, or another than the one that was put there; or is its registration
    gone? Then git can't say what was changed in it."""
    tree = Worktree(mirror, path)
    return tree.damaged or tree.branch is None


def keep_uncommitted(mirror: Mirror, path: Path, patch: Path) -> None:
    """Write what was not committed in the worktree at `path`, if anything, into the file `patch`; nothing of one that
    is damaged. Raises `GitError`, and OSError."""
    tree = Worktree(mirror, path)
    if tree.branch is not None:
        with suppress(Damaged):
            evidence.write_leftovers(tree, patch)


def drop(
    mirror: Mirror,
    path: Path,
    *,
    recover: str | None = None,
    safe: Sequence[str] = (),
    aside: Path | None = None,
) -> None:
    """Give the worktree at `path` back: away at once, deleted with the mirror's trash. Can be repeated.

    `aside` is where its folder is put in place of the trash, to be kept; no worktree of git's any more.
    `recover` is a full ref that takes its commits, as far as neither the remote nor `safe` (commits known to be
    published) has them.
    """
    if recover is not None and not is_ref(recover):
        raise ValueError(f"{recover!r} can't be the name of a ref.")
    tree = Worktree(mirror, path)
    with mirror.locked() as git:
        _remove(git, tree, recover, safe, aside)


def recovered(mirror: Mirror, recover: str) -> list[str]:
    """The refs in which `drop` has kept commits under the name `recover`."""
    return mirror.git.run("for-each-ref", "--format=%(refname)", recover, f"{recover}-*").text.splitlines()


def sweep(mirror: Mirror, root: Path, keep: Callable[[], Collection[Path]]) -> list[Path]:
    """Remove the worktrees at and below `root` (absolute) that `keep` does not name, and what else lies in it; gives
    what went. `keep` names every worktree anybody holds or is about to make, of this mirror or another's. It is asked
    once all that is there was listed: a run is known before it has a worktree, so one that begins meanwhile loses none.

    Commits that are nowhere else are pinned under `refs/leadsman/recover/<name of the folder>`. Registrations of
    anybody's whose folder is gone are removed, too.
    """
    gone = []
    with mirror.locked() as git:
        trees = _registered(mirror, root)
        there = sorted(root.iterdir()) if root.is_dir() else []
        kept = frozenset(keep())
        for tree in trees:
            if tree.path not in kept:
                _remove(git, tree, f"{RECOVER}/{tree.path.name}")
                gone.append(tree.path)
        _prune(mirror, kept)
        above = {parent for path in kept for parent in path.parents}
        for path in there:
            if path not in kept and path not in above and os.path.lexists(path):
                trash.discard(path, mirror.trash)
                gone.append(path)
    return gone


def _registered(mirror: Mirror, root: Path) -> list[Worktree]:
    """The worktrees of `mirror` at and below `root`, by what their registrations say, where these agree with it."""
    trees = []
    registrations = mirror.path / "worktrees"
    for registration in sorted(registrations.iterdir()) if registrations.is_dir() else ():
        with suppress(OSError):
            path = Path(os.fsdecode((registration / "gitdir").read_bytes())).parent
            tree = Worktree(mirror, path)
            if tree.registration == registration and root in path.parents and ".." not in path.parts:
                trees.append(tree)
    return trees


def _prune(mirror: Mirror, keep: Collection[Path]) -> None:
    """Remove registrations whose folder is gone: a run can make worktrees of its own in the mirror. Those that are
    there stay: whoever made them may still be at work. One that is being made is locked, and has no folder yet. That of
    a run's worktree goes with its run, which may have removed the folder itself: it knows what there is to recover."""
    registrations = mirror.path / "worktrees"
    for registration in sorted(registrations.iterdir()) if registrations.is_dir() else ():
        with suppress(OSError):
            folder = Path(os.fsdecode((registration / "gitdir").read_bytes().rstrip(b"\n"))).parent
            lock = registration / "locked"
            being_made = lock.exists() and time.time() - lock.stat().st_mtime < BEING_MADE_SECONDS
            of_a_run = bool(ready_on(registration))
            if folder not in keep and not being_made and not of_a_run and not os.path.lexists(folder):
                trash.discard(registration, mirror.trash)


def _agree(tree: Worktree, branch: str, sha: str) -> None:
    """`Taken` if the complete `tree` isn't what was asked for."""
    head = tree.head
    if tree.damaged or tree.branch != branch or head is None or not tree.mirror.is_ancestor(sha, head):
        raise Taken(f"{tree.path} was made for {tree.branch!r} and holds {head}: not {branch!r} from {sha}.")


def _register(git: Git, tree: Worktree, sha: str, *how: str) -> None:
    """Make the empty worktree and its registration, under the lock; what is left of an earlier try goes.

    Git names a registration after the last part of the path, with a number where that is taken: ours is renamed to a
    name that can be told beforehand.
    """
    if not is_sha(sha):
        raise ValueError(f"{sha!r} is not a full commit id.")
    trash.discard(tree.half_made, tree.mirror.trash)
    _clear(tree)
    git.run("worktree", "add", "--quiet", "--no-checkout", *how, "--", str(tree.path), sha)
    tree.half_made.rename(tree.registration)
    tree.link()


def _move(git: Git, spare: Worktree, tree: Worktree, ref: str, sha: str) -> bool:
    """Make the complete checkout `spare` the worktree `tree` that stands at `ref`, under the lock; False if it isn't
    one any more. It is complete again only once `sha` is checked out: what is killed before is made anew."""
    if spare.branch != "" or spare.damaged:
        return False
    spare.settle()
    spare.reopen()
    _clear(tree)
    spare.path.rename(tree.path)
    spare.registration.rename(tree.registration)
    tree.link()
    git.run("update-ref", "--no-deref", ref, sha)
    with tree.held() as inside:
        inside.run("symbolic-ref", "HEAD", ref)
    return True


def _clear(tree: Worktree) -> None:
    """Make room for `tree`."""
    tree.settle()
    for left in (tree.path, tree.registration):
        trash.discard(left, tree.mirror.trash)
    tree.path.parent.mkdir(parents=True, exist_ok=True)


def _fill(tree: Worktree, sha: str, branch: str) -> Worktree:
    """Check the commit out, which needs no lock."""
    with tree.held() as git:
        git.run("reset", "--quiet", "--hard", sha, timeout=TREE_SECONDS)
        tree.complete(branch)
    return tree


def _remove(git: Git, tree: Worktree, recover: str | None, safe: Sequence[str] = (), aside: Path | None = None) -> None:
    """Under the lock. The registration goes last: it knows the branch, for a try after this one is killed."""
    tree.settle()
    trash.let_us_in(tree.path)
    trash.discard(tree.half_made, tree.mirror.trash)
    ref = _branch_of(tree)
    if recover is not None:
        pin(git, tree.head, recover, safe=safe)
        pin(git, ref and tip_of(git, ref), recover, safe=safe)
    if aside is not None and tree.path.exists():
        aside.parent.mkdir(parents=True, exist_ok=True)
        tree.path.rename(aside)
    trash.discard(tree.path, tree.mirror.trash)
    if ref is not None:
        git.run("update-ref", "--no-deref", "-d", ref)
    others = _others(tree)
    if recover is not None and not any(map(ready_on, others)):  # no other run is at work: a checkout is nobody's
        pin_strays(git, recover, safe=safe, keep=set(map(head_of, others)))
    trash.discard(tree.registration, tree.mirror.trash)


def _branch_of(tree: Worktree) -> str | None:
    """The full name of the branch it was made on. Nobody has worked in one that is not complete: it stands there."""
    if tree.branch is None:
        return found if (found := head_of(tree.registration)).startswith("refs/heads/") else None
    return f"refs/heads/{tree.branch}" if tree.branch and is_branch(tree.branch) else None


def _others(tree: Worktree) -> list[Path]:
    """The registrations beside the one of `tree`."""
    registrations = tree.registration.parent
    there = registrations.iterdir() if registrations.is_dir() else ()
    return [one for one in there if one != tree.registration]

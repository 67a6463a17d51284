"""Keeps the commits that are nowhere else, under refs that no run and no fetch touches."""

from __future__ import annotations

from collections.abc import Container, Sequence

from gitops.git import Git

RECOVER = "refs/leadsman/recover"

_KNOWN_ELSEWHERE = ("--remotes", f"--glob={RECOVER}", "--glob=refs/leadsman/pull")
"""Refs whose commits the remote has, too, or that are pinned already."""


_OWN = ("refs/remotes/", "refs/leadsman/", "refs/notes/leadsman")
"""Where the bot's own refs are in a mirror, beside the branches of worktrees."""


def pin_strays(git: Git, recover: str, *, safe: Sequence[str], keep: Container[str]) -> None:
    """Pin what runs have left in refs beside their own branch, and remove these: the next run would find the names of
    its branches taken, and somebody else's stash. `keep` are branches that worktrees stand on, by their full name."""
    for line in git.run("for-each-ref", "--format=%(objectname) %(refname)").text.split("\n"):
        oid, _, ref = line.partition(" ")
        if not ref or ref.startswith(_OWN) or ref in keep or tip_of(git, oid) is None:
            continue
        if ref == "refs/stash":
            for tip in (oid, *git.run("rev-list", "--walk-reflogs", ref, check=False).text.split()):
                pin(git, tip, f"{recover}-{tip[:12]}", safe=safe)  # never in place of the commits it was made on
        else:
            pin(git, tip_of(git, oid), recover, safe=safe)
        git.run("update-ref", "--no-deref", "-d", ref, oid, check=False)


def pin(git: Git, tip: str | None, ref: str, *, safe: Sequence[str]) -> None:
    """Let `ref` hold `tip` if it has commits that are nowhere else; what `ref` holds already is never let go."""
    if tip is None:
        return
    known = [sha for sha in safe if git.run("cat-file", "-e", f"{sha}^{{commit}}", check=False).code == 0]
    if not git.run("rev-list", "--max-count=1", tip, "--not", *known, *_KNOWN_ELSEWHERE).stdout:
        return
    held = tip_of(git, ref)
    if held is not None and git.run("merge-base", "--is-ancestor", held, tip, check=False).code != 0:
        ref = f"{ref}-{tip[:12]}"
    git.run("update-ref", "--no-deref", ref, tip)


def tip_of(git: Git, ref: str) -> str | None:
    return git.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", check=False).text or None

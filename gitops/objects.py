"""Commits made without a working tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gitops.git import Git, GitError, Identity


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A file that was not read: it has `size` bytes."""

    size: int


def empty_tree(git: Git) -> str:
    """The tree without files, written: git knows it by heart, but can't push what isn't there."""
    return git.run("mktree").text


def tree_of(git: Git, commit: str) -> str:
    return git.run("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}").text


def trees_of(git: Git, *commits: str) -> list[str]:
    """The tree of each of `commits`, which are full ids."""
    return git.run("rev-parse", *(f"{commit}^{{tree}}" for commit in commits)).text.split()


def commit_tree(
    git: Git,
    tree: str,
    *,
    parents: tuple[str, ...],
    message: str,
    identity: Identity,
    author: Mapping[str, str] | None = None,
) -> str:
    """A commit by `identity`, signed if it has a key; `author` (`GIT_AUTHOR_*`) where somebody else wrote it."""
    signing: tuple[tuple[str, str], ...] = ()
    if identity.signing_key is not None:
        signing = (("gpg.format", "ssh"), ("user.signingKey", str(identity.signing_key)))
    return git.run(
        "commit-tree",
        *(("-S",) if signing else ()),
        *(word for parent in parents for word in ("-p", parent)),
        "-F",
        "-",
        tree,
        stdin=message.encode(errors="replace").replace(b"\0", b""),
        environment={**identity.environment(), **(author or {})},
        settings=signing,
    ).text


def message_of(git: Git, commit: str) -> str:
    """The message of a commit, as it was written but for a final line's end; "" for what is no commit."""
    raw = git.run("cat-file", "commit", commit, check=False)
    return raw.stdout.partition(b"\n\n")[2].decode(errors="replace").rstrip("\n")


def read_file(git: Git, sha: str, path: str, *, limit: int) -> bytes | TooLarge | None:
    """The file at `path` in the commit `sha`; None where there is no plain file (a link is not followed)."""
    if "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
        return None
    for entry in git.run("ls-tree", "-z", "--long", "--full-tree", sha, "--", path).items:
        facts, _, name = entry.partition("\t")
        mode, _, oid, size = facts.split()
        if name == path and mode in {"100644", "100755"}:
            return TooLarge(int(size)) if int(size) > limit else git.run("cat-file", "blob", oid).stdout
    return None


def merge_base(git: Git, one: str, other: str) -> str | None:
    """The best common ancestor of two commits, if they have one."""
    done = git.run("merge-base", one, other, check=False)
    if done.code > 1:
        raise GitError(("git", "merge-base", one, other), done.code, done.stderr)
    return done.text or None

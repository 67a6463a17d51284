"""Claims that git itself decides: a ref on the remote that one of many makes, and that its maker alone gives back."""

from __future__ import annotations

from dataclasses import dataclass

from gitops.git import GitError, Identity
from gitops.mirror import Mirror
from gitops.objects import commit_tree, empty_tree, message_of
from gitops.push import Pushed, Rejected, push

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Created:
    """The ref is ours: `oid` is the commit that proves it."""

    oid: str


@dataclass(frozen=True, slots=True)
class Taken:
    """The ref is somebody else's, and what they wrote."""

    oid: str
    message: str


@dataclass(frozen=True, slots=True)
class NamespaceRefused:
    """The remote takes no refs of this kind from us: `why` are its words."""

    why: str


def create(mirror: Mirror, ref: str, message: str, identity: Identity) -> Created | Taken | NamespaceRefused:
    """Make `ref` on the remote if it isn't there: a commit without parents and files that says `message`.

    `message` tells one claimer from another: a ref that says the same is ours, from a try whose end we did not see.
    GitError where the remote did not answer: then nobody knows, and the caller has nothing.
    """
    git = mirror.git
    oid = commit_tree(git, empty_tree(git), parents=(), message=message, identity=identity)
    why = ""
    for _ in range(ATTEMPTS):
        match push(mirror, oid, ref, expect=None):
            case Rejected(None, why):
                continue  # refused, or its holder let go meanwhile
            case Rejected(str(seen), why):
                held = said(mirror, ref, seen)
                if held is not None:
                    return Created(seen) if held == message.rstrip("\n") else Taken(seen, held)
            case _:
                return Created(oid)
    if _open(mirror, ref, oid):
        raise GitError(("git", "push", "--", mirror.remote.url, ref), 1, why)
    return NamespaceRefused(why)


def read(mirror: Mirror, ref: str) -> str | None:
    """The commit that the remote's `ref` holds now."""
    return mirror.remote_ref(ref)


def said(mirror: Mirror, ref: str, oid: str) -> str | None:
    """What the claim `oid` says that `ref` was seen to hold, "" if it is no commit; None if it is gone meanwhile."""
    mirror.fetch_commit(oid, ref=ref)
    is_here = mirror.git.run("cat-file", "-e", oid, check=False).code == 0
    return message_of(mirror.git, oid) if is_here else None


def delete(mirror: Mirror, ref: str, oid: str) -> bool:
    """Take `ref` away from the remote if it still holds `oid`. True if it is away, False if it is somebody else's now.

    GitError where it still is ours: the remote did not answer, or refused.
    """
    match push(mirror, None, ref, expect=oid):
        case Rejected(seen, why) if seen == oid:
            raise GitError(("git", "push", "--", mirror.remote.url, f":{ref}"), 1, why)
        case Rejected():
            return False
        case _:
            return True


def _open(mirror: Mirror, ref: str, oid: str) -> bool:
    """Does the remote take a new ref beside `ref`? Then it was not the namespace that it refused, and a claim made in
    another would be a second one."""
    probe = f"{ref}-probe-{oid}"
    match push(mirror, oid, probe, expect=None):
        case Pushed():
            push(mirror, None, probe, expect=oid)
            return True
        case _:
            return False

"""Notes on commits that travel with the repository: added to, never written over."""

from __future__ import annotations

from uuid import uuid4

from gitops.git import NETWORK_SECONDS, Git, Identity
from gitops.mirror import Mirror
from gitops.push import Pushed, Rejected, push

REF = "refs/notes/leadsman"
ATTEMPTS = 25


def write(mirror: Mirror, sha: str, content: bytes, identity: Identity, *, ref: str = REF) -> Pushed | Rejected:
    """Put `content` on the commit `sha` in the remote's `ref`, below what stands there; once, however often repeated.

    Whoever comes in between is kept, and it is tried again on top of theirs, `ATTEMPTS` times at most. GitError where
    the remote did not answer.
    """
    outcome = Rejected(None, "")
    # Those of this host come one after the other, so that they don't wear each other's attempts out.
    with mirror.locked() as git:
        for _ in range(ATTEMPTS):
            seen = _fetch(mirror, git, ref)
            notes = _with_note(git, seen, sha, content, identity)
            if notes == seen:
                return Pushed(notes, ref)
            pushed = push(mirror, notes, ref, expect=seen)
            if isinstance(pushed, Pushed):
                return pushed
            outcome = pushed or outcome
    return outcome


def read(mirror: Mirror, sha: str, *, ref: str = REF) -> bytes | None:
    """What the remote's `ref` says of the commit `sha`."""
    with mirror.locked() as git:
        seen = _fetch(mirror, git, ref)
        return _note(git, seen, sha) if seen is not None else None


def _fetch(mirror: Mirror, git: Git, ref: str) -> str | None:
    """The commit that the remote's notes are at, which is here from now on."""
    seen = mirror.remote_ref(ref)
    if seen is not None and not mirror.has(seen):
        git.run(
            *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", mirror.remote.url, ref),
            remote=mirror.remote,
            timeout=NETWORK_SECONDS,
        )
    return seen


def _with_note(git: Git, seen: str | None, sha: str, content: bytes, identity: Identity) -> str:
    """The notes of `seen` with `content` on `sha`; `seen` itself if it stands there already."""
    before = _note(git, seen, sha) if seen is not None else None
    if seen is not None and before is not None and _paragraphs(content) in _paragraphs(before):
        return seen
    whole = content if before is None else before.rstrip(b"\n") + b"\n\n" + content
    blob = git.run("hash-object", "-w", "--stdin", stdin=whole).text
    # `git notes` works on a ref: one of this call's own, so that nobody sees it half-way.
    own = f"refs/notes/leadsman-{uuid4().hex}"
    try:
        if seen is not None:
            git.run("update-ref", own, seen)
        git.run("notes", f"--ref={own}", "add", "--force", "-C", blob, sha, environment=identity.environment())
        return git.run("rev-parse", "--verify", own).text
    finally:
        git.run("update-ref", "--no-deref", "-d", own)


def _paragraphs(text: bytes) -> bytes:
    return b"\n\n" + text.strip(b"\n") + b"\n\n"


def _note(git: Git, notes: str, sha: str) -> bytes | None:
    """The note on `sha` in the notes tree: its path is the commit's id, with slashes wherever git found it crowded."""
    for entry in git.run("ls-tree", "-r", "-z", notes).items:
        facts, _, path = entry.partition("\t")
        if path.replace("/", "") == sha:
            return git.run("cat-file", "blob", facts.split()[2]).stdout
    return None

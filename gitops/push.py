"""One push of one ref with a lease, and what the remote holds afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from gitops.git import NETWORK_SECONDS, GitError
from gitops.mirror import Mirror
from gitops.names import is_ref


@dataclass(frozen=True, slots=True)
class Pushed:
    """The remote's `ref` holds `sha`: read back, not believed."""

    sha: str
    ref: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """The remote's ref holds `seen` (None: nothing) and not what was pushed; `why` is what git said, for people."""

    seen: str | None
    why: str


def push(mirror: Mirror, sha: str | None, ref: str, *, expect: str | None) -> Pushed | Rejected | None:
    """Let the remote's `ref` hold `sha` (None: nothing) if it holds `expect` (None: nothing) until then.

    What counts is what the remote holds afterwards: git's exit code tells only whether there was an answer, and its
    words differ between two that lose the same race. None is a deletion that came to pass. GitError where the remote
    did not answer.
    """
    if not is_ref(ref):
        raise ValueError(f"{ref!r} is not the full name of a ref.")
    done = mirror.git.run(
        *("push", "--porcelain", "--no-verify", "--no-signed", f"--force-with-lease={ref}:{expect or ''}"),
        *("--", mirror.remote.url, f"{sha or ''}:{ref}"),
        remote=mirror.remote,
        timeout=NETWORK_SECONDS,
        check=False,
    )
    seen = mirror.remote_ref(ref)
    if seen == sha:
        return Pushed(sha, ref) if sha is not None else None
    refusals = [line for line in done.text.splitlines() if line.startswith("!")]
    if done.code != 0 and not refusals and seen == expect:  # not a word about the ref: it was never asked
        raise GitError(("git", "push", "--", mirror.remote.url, f"{sha or ''}:{ref}"), done.code, done.stderr)
    return Rejected(seen, _why(refusals[0], done.stderr) if refusals else "it was changed again at once")


def _why(refusal: str, stderr: str) -> str:
    """Git's verdict on the ref, and what the other side said to it."""
    remote = (line.removeprefix("remote:").strip() for line in stderr.splitlines() if line.startswith("remote:"))
    return " ".join((refusal.rsplit("\t", maxsplit=1)[-1], *filter(None, remote)))[:500]

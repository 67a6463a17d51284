"""Puts the verified commit where it may go: a branch of the run's own, or the shared publish branch. Never main."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.ages import Sealed
from bot.claims import Claims
from bot.model import Failed, Lost, Outcome, Published, Run, Sha, Unchanged
from bot.publishing import PublishSettings, protecting
from bot.repositories import Repositories, git_trouble
from gitops import publish
from gitops.git import Identity
from gitops.mirror import Mirror

ATTEMPTS = 12
"""How often a run tries to come first on the shared branch before it says who was faster."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Others came first: `sealed` is the same work on top of theirs; it has to be verified again."""

    sealed: Sealed


class Landing:
    """Pushes what was verified, by its SHA, with a lease on what was seen and incorporated."""

    def __init__(
        self,
        repositories: Repositories,
        claims: Claims,
        settings: PublishSettings,
        identity: Identity,
    ) -> None:
        self._repositories = repositories
        self._claims = claims
        self._settings = settings
        self._identity = identity

    def land(self, run: Run, sealed: Sealed) -> Outcome | Moved:
        """Publishes the tip, or says why not. Repeated after a crash it finds its own push and says the same.

        Raises `Unavailable` where the remote did not answer.
        """
        intent = run.intent
        if sealed.tip == intent.head:
            return Unchanged("The command left no change.")
        if intent.task.publish == "none":
            return Unchanged(f'The task {intent.task.name} publishes nothing (publish = "none").')
        branch = self._settings.branch if intent.task.publish == "shared" else f"leadsman/run/{run.id}"
        if (why := self._forbidden(run, branch)) is not None:
            return Failed("publish", why)
        if not self._claims.ours(run.claim):
            return Lost("Its claim was taken away while it worked, so it published nothing.")
        mirror = self._repositories.mirror(intent.event.subject.repo)
        with git_trouble("The commit can't be pushed"):
            if intent.task.publish == "shared":
                return self._shared(run, sealed, mirror, f"refs/heads/{branch}")
            return self._own(sealed, mirror, f"refs/heads/{branch}")

    def _forbidden(self, run: Run, branch: str) -> str | None:
        """Never the default branch, nor one that `publish.never` names: asked of the forge now, not of a memory."""
        repo = run.intent.event.subject.repo
        default = self._repositories.forge(repo).repository(repo).default_branch
        why = protecting_now(self._settings, branch, default)
        return why and f"{why} ({repo.name})"

    def _own(self, sealed: Sealed, mirror: Mirror, ref: str) -> Outcome:
        match publish.push_exact(mirror, sealed.tip, ref, expect=None):
            case publish.Pushed():
                return Published(sealed.tip, ref)
            case publish.Rejected(seen, why):
                return Failed("publish", f"The remote refused {ref}{_there(seen)}: {why}")

    def _shared(self, run: Run, sealed: Sealed, mirror: Mirror, ref: str) -> Outcome | Moved:
        seen = mirror.remote_ref(ref)
        if seen is not None and seen != sealed.tip:
            mirror.refresh([f"+{ref}:refs/leadsman/publish"])
            if not mirror.is_ancestor(seen, sealed.tip):
                return self._incorporate(run, sealed, mirror, Sha(seen))
        match publish.push_exact(mirror, sealed.tip, ref, expect=seen):
            case publish.Pushed():
                return Published(sealed.tip, ref)
            case publish.Rejected(now, why) if now == seen:
                return Failed("publish", f"The remote refused {ref}: {why}")
            case publish.Rejected(now, _):
                mirror.refresh([f"+{ref}:refs/leadsman/publish"])
                if now is None:
                    return Moved(sealed)  # the branch was removed meanwhile: the next try makes it
                return self._incorporate(run, sealed, mirror, Sha(now))

    def _incorporate(self, run: Run, sealed: Sealed, mirror: Mirror, theirs: Sha) -> Outcome | Moved:
        if len(sealed.incorporated) >= ATTEMPTS:
            return Failed("publish", f"Others came first {ATTEMPTS} times; the last was {theirs}. {_kept(run)}")
        message = f"Merge the published work into run {run.id}"
        match publish.incorporate(mirror, sealed.tip, theirs, self._identity, message):
            case publish.Conflict(paths):
                return Failed("publish", f"It conflicts with {theirs} in {_list(paths)}. {_kept(run)}")
            case str(tip):
                return Moved(
                    Sealed(
                        tip=Sha(tip),
                        commits=sealed.commits,
                        leftovers_committed=sealed.leftovers_committed,
                        descends=sealed.descends,
                        skipped=sealed.skipped,
                        unfinished=sealed.unfinished,
                        incorporated=(*sealed.incorporated, theirs),
                    )
                )


def protecting_now(settings: PublishSettings, branch: str, default: str) -> str | None:
    """Why nothing is ever pushed to `branch`, or None; `default` is the default branch as the forge shows it now."""
    if branch == default:
        return f"{branch} is the default branch; nothing is ever pushed there."
    glob = protecting(settings.never, branch)
    return None if glob is None else f"{branch} is protected by [publish] never = {glob}."


def _there(seen: str | None) -> str:
    return f" (it holds {seen})" if seen else ""


def _kept(run: Run) -> str:
    return f"The run's own commits are kept under refs/leadsman/recover/{run.id} of the mirror."


def _list(paths: Sequence[str]) -> str:
    shown = ", ".join(f"{path}" for path in paths[:5])
    return shown if len(paths) <= 5 else f"{shown} and {len(paths) - 5} more"

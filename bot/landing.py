"""Puts the verified commit where it may go: a branch of the run's own, or the shared publish branch. Never main."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bot import wording
from bot.ages import Sealed
from bot.claims import Claims
from bot.errors import Forbidden, Gone
from bot.forges import Forge
from bot.model import Failed, Lost, Outcome, Published, PullRef, Repo, Run, Sha, Unchanged
from bot.publishing import RUN_BRANCHES, SKIP_CI, PublishSettings, protecting
from bot.repositories import Repositories, git_trouble
from bot.worksite import trailers
from gitops import publish, worktree
from gitops.git import Identity
from gitops.mirror import Mirror

ATTEMPTS = 20
"""How often a run tries to come first on the shared branch before it says who was faster."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Others came first: `sealed` is the same work on top of theirs. It has to be verified again, unless the files are
    the very same as before."""

    sealed: Sealed
    same_files: bool


class Landing:
    """Pushes what was verified, by its SHA, with a lease on what was seen and incorporated."""

    def __init__(self, repositories: Repositories, claims: Claims, identity: Identity) -> None:
        self._repositories = repositories
        self._claims = claims
        self._identity = identity

    def land(self, run: Run, sealed: Sealed) -> Outcome | Moved:
        """Publishes the tip, or says why not. Repeated after a crash it finds its own push and says the same.

        Raises `Unavailable` where the remote did not answer.
        """
        intent = run.intent
        if sealed.tip == intent.head:
            return Unchanged(wording.no_change(sealed.commits))
        if intent.task.publish == "none":
            return Unchanged(f'The task {intent.task.name} publishes nothing (publish = "none").')
        repo = intent.event.subject.repo
        shared = intent.task.publish == "shared"
        branch = intent.publish.branch if shared else f"{RUN_BRANCHES}{run.id}"
        if (why := forbidden(self._repositories.forge(repo), intent.publish, repo, branch)) is not None:
            return Failed("publish", f"In {repo.name}, {why}")
        if not self._claims.ours(run.claim):
            return Lost("Its claim was taken away while it worked, so it published nothing.")
        mirror = self._repositories.mirror(repo)
        with git_trouble("The commit can't be pushed"):
            if (why := _moved(mirror, run, sealed)) is not None:
                return Failed("publish", why)
            if shared:
                return self._shared(run, sealed, mirror, f"refs/heads/{branch}")
            return self._own(sealed, mirror, f"refs/heads/{branch}")

    def landed(self, run: Run, sealed: Sealed) -> bool:
        """Whether an earlier try has pushed it already. Raises `Unavailable` where the remote did not answer."""
        intent = run.intent
        if intent.task.publish == "none" or sealed.tip == intent.head:
            return False
        branch = intent.publish.branch if intent.task.publish == "shared" else f"{RUN_BRANCHES}{run.id}"
        mirror = self._repositories.mirror(intent.event.subject.repo)
        with git_trouble("The published branch can't be read"):
            ref = f"refs/heads/{branch}"
            return publish.holds(mirror, ref, mirror.remote_ref(ref), sealed.tip)

    def _own(self, sealed: Sealed, mirror: Mirror, ref: str) -> Outcome:
        match publish.push_exact(mirror, sealed.tip, ref, expect=None):
            case publish.Pushed():
                return Published(sealed.tip, ref)
            case publish.Rejected(seen, why):
                return Failed("publish", f"The remote refused {ref}{_there(seen)}: {why}")

    def _shared(self, run: Run, sealed: Sealed, mirror: Mirror, ref: str) -> Outcome | Moved:
        seen = mirror.remote_ref(ref)
        if seen is not None and seen != sealed.tip:
            if publish.holds(mirror, ref, seen, sealed.tip) and sealed.commits:
                return Published(sealed.tip, ref)  # by an earlier try, and others have gone on from it
            if not mirror.is_ancestor(seen, sealed.tip):
                return self._incorporate(run, sealed, mirror, Sha(seen))
        match publish.push_exact(mirror, sealed.tip, ref, expect=seen):
            case publish.Pushed():
                return Published(sealed.tip, ref)
            case publish.Rejected(now, why) if now == seen:
                return Failed("publish", f"The remote refused {ref}: {why}")
            case publish.Rejected(now, _):
                if now is None:
                    return Moved(sealed, same_files=True)  # the branch was removed meanwhile: the next try makes it
                mirror.fetch_commit(now, ref=ref)
                return self._incorporate(run, sealed, mirror, Sha(now))

    def _incorporate(self, run: Run, sealed: Sealed, mirror: Mirror, theirs: Sha) -> Outcome | Moved:
        if len(sealed.incorporated) >= ATTEMPTS:
            first = f"Others came first {ATTEMPTS} times: {_list((*sealed.incorporated[-3:], theirs))}."
            return Failed("publish", f"{first} {_kept(run)}")
        match self._together(run, sealed, mirror, theirs):
            case publish.Conflict(paths):
                return Failed("publish", f"It conflicts with {theirs} in {_list(paths)}. {_kept(run)}")
            case str(tip) if publish.same_files(mirror, tip, theirs):
                return Unchanged(f"What it did was there already, in {theirs}.")
            case str(tip):
                moved = replace(sealed, tip=Sha(tip), incorporated=(*sealed.incorporated, theirs))
                commits = int(mirror.git.run("rev-list", "--count", tip, "--not", theirs).text)
                same = publish.same_files(mirror, tip, sealed.tip)
                return Moved(replace(moved, commits=commits), same_files=same)

    def _together(self, run: Run, sealed: Sealed, mirror: Mirror, theirs: Sha) -> str | publish.Conflict:
        """One commit with both: the run's own replayed on top of theirs, or merged with them where that is wished, or
        where they hold a merge of their own, which can't be replayed."""
        settings = run.intent.publish
        if settings.mode == "rebase" and sealed.descends:
            try:
                return publish.rebase(mirror, sealed.tip, sealed.since(run.intent.head), theirs, self._identity)
            except ValueError:
                pass
        ci = f" {SKIP_CI}" if settings.skip_ci else ""
        lines = "\n".join(f"{key}: {' '.join(value.split())}" for key, value in trailers(run).items())
        message = f"Merge the published work into run {run.id}{ci}\n\n{lines}\n"
        return publish.incorporate(mirror, sealed.tip, theirs, self._identity, message)

    def open_pull(self, run: Run, published: Published) -> str:
        """Opens a pull request from the run's own branch where that is wished: its address, or why there is none.

        Repeated it finds the one that is open. Raises `Unavailable`.
        """
        intent = run.intent
        wish = intent.publish.open_pr
        if wish is False or intent.task.publish != "run":
            return ""
        repo = intent.event.subject.repo
        forge = self._repositories.forge(repo)
        try:
            return forge.open_pull(
                repo,
                head=published.ref.removeprefix("refs/heads/"),
                base=_meant_for(run, forge),
                title=wording.pull_title(intent),
                body=wording.pull_body(intent),
                draft=wish == "draft",
            )
        except (Gone, Forbidden) as problem:
            return f"could not be opened: {problem}"


def forbidden(forge: Forge, settings: PublishSettings, repo: Repo, branch: str) -> str | None:
    """Why nothing may be pushed to `branch`, asked of the forge now: never the default branch, nor one that it protects
    or that `publish.never` names."""
    why = protecting_now(settings, branch, forge.repository(repo).default_branch)
    if why is None and forge.protected(repo, branch):
        return f"{branch} is protected on the forge; nothing is ever pushed there."
    return why


def protecting_now(settings: PublishSettings, branch: str, default: str) -> str | None:
    """Why nothing is ever pushed to `branch`, or None; `default` is the default branch as the forge shows it now."""
    if branch == default:
        return f"{branch} is the default branch; nothing is ever pushed there."
    glob = protecting(settings.never, branch)
    return None if glob is None else f"{branch} is protected by [publish] never = {glob}."


def _moved(mirror: Mirror, run: Run, sealed: Sealed) -> str | None:
    """Why the commit is not what the run stands at any more: what was verified is what is published, or nothing is."""
    now = worktree.head(mirror, run.worktree)
    if sealed.head is None or now == sealed.head:
        return None
    return f"HEAD of the run's worktree moved after it was verified: from {sealed.head} to {now or 'nothing'}."


def _meant_for(run: Run, forge: Forge) -> str:
    """The branch that a pull request from the run's branch is for: the one that it started from, where it is here."""
    subject = run.intent.event.subject
    if isinstance(subject, PullRef):
        pull = forge.pull(subject)
        return pull.base_ref if pull.is_fork else pull.head_ref
    return run.intent.base_ref


def _there(seen: str | None) -> str:
    return f" (it holds {seen})" if seen else ""


def _kept(run: Run) -> str:
    return f"The run's own commits are kept under refs/leadsman/recover/{run.id} of the mirror."


def _list(items: Iterable[str]) -> str:
    found: Sequence[str] = tuple(items)
    shown = ", ".join(found[:5])
    return shown if len(found) <= 5 else f"{shown} and {len(found) - 5} more"

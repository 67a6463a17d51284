"""Where a run works: a fresh worktree at the pinned commit, an environment built from nothing, a spec to start from."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from bot import occupants
from bot.errors import Gone
from bot.forges import Forge
from bot.model import BranchRef, Claim, Failed, Intent, IssueRef, PullRef, Repo, Run, Sha, TicketRef
from bot.passes import wrapped
from bot.pool import pool_environment
from bot.publishing import SKIP_CI
from bot.repositories import Repositories, git_trouble
from bot.rundir import RunDir, read_json, write_json
from bot.trackers import Attached, Tracker
from gitops import hooks, worktree
from gitops.git import GitError, Identity
from gitops.mirror import Mirror
from gitops.pinning import RECOVER

DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"

TICKET_CHARACTERS = 20_000
"""How much of a title or a text reaches a run."""

ATTACHMENTS = 100
"""How many of a ticket's files a run is told of."""

KEPT = "kept.json"
"""In a run's directory: where its worktree's files are kept, and why."""


class Worksite:
    """Prepares and gives back the place of a run."""

    def __init__(
        self,
        repositories: Repositories,
        worktrees: Path,
        identity: Identity,
        *,
        trackers: Mapping[str, Tracker],
        environ: Mapping[str, str],
        load: Callable[[], tuple[float, int]],
        clock: Callable[[], float],
        keep_failed: bool = False,
        spare: Callable[[Repo, Mirror], Path | None] = lambda _repo, _mirror: None,
    ) -> None:
        self._repositories = repositories
        self._worktrees = worktrees
        self._keep_failed = keep_failed
        self._spare = spare
        self._identity = identity
        self._trackers = trackers
        self._environ = environ
        self._load = load
        self._clock = clock

    def path(self, run_id: str) -> Path:
        return self._worktrees / run_id

    def prepare(self, claim: Claim, run_dir: Path) -> Run | Failed:
        """Makes the worktree and writes the supervisor's spec; repeated after a crash it ends at the same place.

        `Failed` where the commit can't be had any more; raises `Unavailable` where the remote did not answer.
        """
        intent = claim.intent
        repo = intent.event.subject.repo
        mirror = self._repositories.mirror(repo)
        if not self._fetched(mirror, intent):
            why = f"{intent.head} is in {repo.name} no more: a force push took it away. Ask again for the new head."
            return Failed("fetch", why)
        branch = _branch(intent)
        path = self.path(intent.run_id)
        try:
            with git_trouble("The worktree can't be made"):
                worktree.add(mirror, path, branch=branch, sha=intent.head, spare=self._spare(repo, mirror))
        except worktree.Taken as problem:
            return Failed("prepare", f"{path} holds another worktree, which was left alone: {problem}")
        at = datetime.fromtimestamp(self._clock(), UTC)
        run = Run(claim=claim, branch=branch, worktree=path, run_dir=run_dir, load=round(self._load()[0], 2), at=at)
        self._write_ticket(run)
        self._write_spec(run)
        return run

    def _fetched(self, mirror: Mirror, intent: Intent) -> bool:
        if mirror.has(intent.head):
            return True
        extra = []
        if isinstance(subject := intent.event.subject, PullRef):
            extra.append(f"+refs/pull/{subject.number}/head:refs/leadsman/pull/{subject.number}")
        with git_trouble(f"{intent.event.subject.repo} can't be fetched"):
            mirror.refresh(extra)
            return mirror.has(intent.head) or mirror.fetch_commit(intent.head)

    def _write_spec(self, run: Run) -> None:
        intent = run.intent
        (run.run_dir / "hooks").mkdir(exist_ok=True)
        suffix = SKIP_CI if intent.publish.skip_ci else ""
        hooks.write(run.run_dir / "hooks", trailers(run), suffix=suffix)
        environment = {
            **base_environment(intent.task.env, self._environ, run.run_dir),
            **hooks.run_environment(run.run_dir / "hooks", self._identity),
            "PATH": f"{self._environ.get('PATH', DEFAULT_PATH)}:{run.run_dir / 'hooks'}",
            "LEADSMAN_RUN_ID": intent.run_id,
            "LEADSMAN_RUN_DIR": str(run.run_dir),
            "LEADSMAN_STATUS_LOG": str(RunDir(run.run_dir).status_log),
            "LEADSMAN_REPORT": str(run.run_dir / "worker-report.md"),
            "LEADSMAN_TICKET": str(run.run_dir / "ticket.json"),
            "LEADSMAN_BASE": intent.head,
            "LEADSMAN_BRANCH": run.branch,
            "LEADSMAN_MAX_TURNS": str(intent.limit.turns),
            "LEADSMAN_DEADLINE": str(int(run.at.timestamp()) + intent.limit.seconds),
        }
        spec = supervised(
            intent.run_id,
            intent.task.name,
            (*intent.task.run, *intent.args),
            run.worktree,
            environment,
            seconds=intent.limit.seconds,
            passes=intent.task.passes,
            note=run.run_dir,
        )
        write_json(RunDir(run.run_dir).spec, {**spec, "speaks": intent.task.speaks})

    def _write_ticket(self, run: Run) -> None:
        subject = run.intent.event.subject
        told = {"subject": str(subject), "repository": subject.repo.name, "task": run.intent.task.name}
        files: tuple[Attached, ...] = ()
        try:
            if isinstance(subject, TicketRef):
                texts, files = _of_ticket(self._trackers[subject.tracker], subject)
            else:
                texts = _texts(self._repositories.forge(subject.repo), subject)
        except Gone:
            texts = {}
        ticket: dict[str, object] = {**told, **{key: clean(text) for key, text in texts.items()}}
        if isinstance(subject, TicketRef):
            ticket["attachments"] = [
                {"name": clean(one.name), "size": one.size, "url": clean(one.url)} for one in files[:ATTACHMENTS]
            ]
        write_json(run.run_dir / "ticket.json", ticket)

    def give_back(self, run: Run, *, well: bool, published: Sha | None = None) -> None:
        """Removes the worktree; commits that are nowhere else (`published` is on the remote) stay under
        `refs/leadsman/recover/<run_id>`.

        Of a run that did not end well, what was not committed is kept as `changes.patch` in its directory and, where
        that is configured, or the worktree is damaged, so that git can't say what it is, the worktree's files as they
        are. Whoever still works in it is ended before. Raises `Unavailable` where somebody outlives that, or it can't
        be told: then it is kept.
        """
        mirror = self._repositories.mirror(run.intent.event.subject.repo)
        occupants.clear(run.worktree, run.at.timestamp())
        with git_trouble("The worktree can't be given back"):
            aside = None if well else self._aside(mirror, run)
            safe = () if published is None else (published,)
            worktree.drop(mirror, run.worktree, recover=f"{RECOVER}/{run.id}", safe=safe, aside=aside)

    def abandon(self, intent: Intent) -> None:
        """Removes what was begun of the worktree of a run that never came to work in it; another's is left alone."""
        mirror = self._repositories.known_mirror(intent.event.subject.repo)
        path = self.path(intent.run_id)
        if mirror is not None and worktree.begun(mirror, path, _branch(intent)):
            with git_trouble("The worktree that was begun can't be removed"):
                worktree.drop(mirror, path, recover=f"{RECOVER}/{intent.run_id}")

    def _aside(self, mirror: Mirror, run: Run) -> Path | None:
        """Keeps what was not committed, as a patch. Where the worktree's files are to be kept, too: written down
        beforehand, since a try that is killed is repeated."""
        note = run.run_dir / KEPT
        if (noted := read_json(note)) is not None:
            return Path(str(noted["worktree"]))
        if not run.worktree.exists() or (why := self._why_kept(mirror, run)) is None:
            return None
        aside = self._worktrees.parent / "kept" / run.id
        write_json(note, {"worktree": str(aside), "why": why})
        return aside

    def _why_kept(self, mirror: Mirror, run: Run) -> str | None:
        if worktree.damaged(mirror, run.worktree):
            return "it is damaged"
        try:
            worktree.keep_uncommitted(mirror, run.worktree, RunDir(run.run_dir).changes_patch)
        except (GitError, OSError):  # the slot does not wait for what a run has broken for good
            return "git can't tell what was changed in it"
        return "the run did not end well" if self._keep_failed else None


def _branch(intent: Intent) -> str:
    return f"leadsman/{intent.run_id}"


def supervised(
    run_id: str,
    task: str,
    argv: tuple[str, ...],
    cwd: Path,
    environment: Mapping[str, str],
    *,
    seconds: int | None,
    passes: int | Literal["all"],
    note: Path,
) -> dict[str, object]:
    """The spec that a supervisor starts from; with CPU passes, the command is started by what takes them.

    `seconds` is the time limit, which begins once the passes are held. `note` is the folder that says since when.
    """
    held, extra = wrapped(argv, passes, label=f"{task} {run_id}", note=note)
    return {
        "run_id": run_id,
        "task": task,
        "argv": list(held),
        "cwd": str(cwd),
        "env": dict(environment),
        "time_limit": seconds,
        "driver": "setsid",
        **extra,
    }


def base_environment(names: Sequence[str], environ: Mapping[str, str], run_dir: Path) -> dict[str, str]:
    """PATH, a home and a temporary folder of the run's own, and the variables of those `names`; nothing else."""
    home, temporary = run_dir / "home", run_dir / "tmp"
    home.mkdir(mode=0o700, exist_ok=True)
    temporary.mkdir(mode=0o700, exist_ok=True)
    named = {name: environ[name] for name in names if name in environ}
    return {
        "PATH": environ.get("PATH", DEFAULT_PATH),
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        **pool_environment(environ),
        **named,
    }


def check_environment(
    names: Sequence[str], environ: Mapping[str, str], folder: Path, repository: Path
) -> dict[str, str]:
    """As `base_environment`, for a checkout of the mirror at `repository`: nothing is pushed from there."""
    base = base_environment(names, environ, folder)
    hooks.write(folder / "hooks", {})
    guard = hooks.checkout_environment(folder / "hooks", repository)
    return {**base, **guard, "PATH": f"{base['PATH']}:{folder / 'hooks'}"}


def trailers(run: Run) -> dict[str, str]:
    """What the run's commits say of where they come from."""
    return {
        "Leadsman-Run": run.id,
        "Leadsman-Task": run.intent.task.name,
        "Claim-Id": run.claim.oid,
        "Requested-by": run.intent.event.actor.login,
    }


def clean(text: str) -> str:
    """`text` without control and bidirectional characters (line breaks and tabs stay), capped."""
    kept = (c for c in text[:TICKET_CHARACTERS] if c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cf", "Cs"})
    return "".join(kept)


def _texts(forge: Forge, subject: PullRef | IssueRef | BranchRef) -> dict[str, str]:
    match subject:
        case PullRef():
            pull = forge.pull(subject)
            return {"title": pull.title, "author": pull.author.login, "head": pull.head_ref, "base": pull.base_ref}
        case IssueRef():
            issue = forge.issue(subject)
            return {"title": issue.title, "text": issue.body, "author": issue.author.login}
        case BranchRef():
            return {"ref": subject.ref}


def _of_ticket(tracker: Tracker, ref: TicketRef) -> tuple[dict[str, str], tuple[Attached, ...]]:
    ticket = tracker.ticket(ref)
    texts = {
        "title": ticket.title,
        "text": ticket.text,
        "author": ticket.author.login,
        "status": ticket.status,
        "category": ticket.category or "",
        "url": tracker.ticket_url(ref),
    }
    return texts, ticket.attached

"""What the bot asks of a forge: the values it gets, and the calls it may make."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from bot.forges.asking import Checkup, Hooks, News
from bot.model import Actor, IssueRef, Permission, PullRef, Repo, Sha
from bot.secret import Secret

if TYPE_CHECKING:  # opening a store costs 0.1 s, and settings are read without one
    from bot.store.engine import Store

FORGES = {"github": "bot.forges.github", "local": "bot.forges.local"}
"""kind -> module. Each has `Settings` (its table), `connect(name, settings, around) -> Forge`, and as
`tuple[Secret, ...]` `webhook_secrets(name, settings, around)`, what deliveries are signed with, and `credentials(...)`,
what it is asked with. Modules are imported only when a configured forge needs them: PyGithub alone costs 0.2 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a client may need of its surroundings. Paths of the configuration are relative to `base`."""

    store: Store
    home: Path
    base: Path
    environ: Mapping[str, str]
    public_url: str
    clock: Callable[[], float]


Reaction = Literal["eyes", "rocket", "confused"]


@dataclass(frozen=True, slots=True)
class RepoFacts:
    """A repository as the forge shows it now."""

    repo: Repo
    default_branch: str
    clone_url: str
    web_url: str


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request as the forge shows it now."""

    ref: PullRef
    title: str
    author: Actor
    open: bool
    merged: bool
    head_sha: Sha
    head_ref: str
    """Name of the head branch, without refs/heads/."""
    head_repo: str | None
    """`owner/name` the head lives in; None when that fork was deleted."""
    base_ref: str
    labels: tuple[str, ...]
    updated_at: datetime

    @property
    def is_fork(self) -> bool:
        return self.head_repo != self.ref.repo.name

    def has(self, label: str) -> bool:
        """Forges take `Bug` and `bug` for one label."""
        return label.casefold() in {name.casefold() for name in self.labels}


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue as the forge shows it now."""

    ref: IssueRef
    title: str
    body: str
    author: Actor
    open: bool
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    updated_at: datetime

    def has(self, label: str) -> bool:
        """As a pull request's."""
        return label.casefold() in {name.casefold() for name in self.labels}


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One thing of an issue's history: a comment, a label that was set or taken off, somebody who was (un)assigned."""

    id: str
    """A comment's is its number; that of an event differs from all of them."""
    author: Actor
    """Who did it."""
    at: datetime
    text: str = ""
    """Of the comment, as it reads now."""
    by_member: bool = True
    """Whether the comment's author belongs to those who work there. On a public forge anybody may comment."""
    set_label: str = ""
    lost_label: str = ""
    assigns: bool = False
    """Somebody was assigned or unassigned."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment as the forge shows it now."""

    id: str
    author: Actor
    body: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStatus:
    """What a forge shows beside a commit. Neutral is neither a success nor a failure."""

    name: str
    grade: Literal["green", "red", "neutral"]
    text: str
    url: str
    run: str


@dataclass(frozen=True, slots=True)
class GitAccess:
    """How git reaches a repository. `token` is None where none is needed (a folder)."""

    url: str
    username: str = ""
    token: Secret | None = None


class Forge(Protocol):
    """One configured forge.

    Calls raise `bot.errors.Gone`, `Forbidden` or `Unavailable`, and nothing of the client library's own. Thread-safe;
    every call has a deadline; writes of one token are at least a second apart (GitHub's rule).
    """

    name: str
    kind: str

    @property
    def hooks(self) -> Hooks | None:
        """Its webhooks; None for a forge that has none, and loses nothing."""

    @property
    def news(self) -> News | None:
        """What happened; None for a forge that need not be asked."""

    @property
    def checkup(self) -> Checkup | None:
        """Who the bot is there; None where there is nothing to look at."""

    def me(self) -> Actor: ...
    def repository(self, repo: Repo) -> RepoFacts: ...
    def branch_sha(self, repo: Repo, branch: str) -> Sha: ...
    def file(self, repo: Repo, path: str, at: Sha) -> bytes | None: ...
    def pull(self, ref: PullRef) -> Pull: ...
    def changed_between(self, repo: Repo, before: Sha, after: Sha) -> tuple[str, ...] | None: ...
    def changed_files(self, ref: PullRef) -> tuple[str, ...]: ...
    def issue(self, ref: IssueRef) -> Issue: ...
    def labeled(self, repo: Repo, label: str, *, open_only: bool) -> Iterable[Issue]:
        """The issues (no pull requests) with that label, the oldest first."""

    def history(self, ref: IssueRef) -> tuple[Past, ...]:
        """What happened on the issue, in the forge's own order, the oldest first."""

    def permission(self, repo: Repo, who: Actor) -> Permission: ...
    def comment(self, on: PullRef | IssueRef, comment_id: str) -> Comment: ...
    def comments(self, on: PullRef | IssueRef, *, since: datetime | None = None) -> Iterable[Comment]: ...
    def post(self, on: PullRef | IssueRef, body: str) -> str: ...
    def edit(self, on: PullRef | IssueRef, comment_id: str, body: str) -> None: ...
    def assign(self, on: PullRef | IssueRef, logins: Collection[str]) -> None:
        """Makes these its assignees, and no others. Who can't be assigned is left out."""

    def label(self, on: PullRef | IssueRef, name: str) -> None: ...
    def unlabel(self, on: PullRef | IssueRef, name: str) -> None:
        """Takes the label off where it is set."""

    def react(self, on: PullRef | IssueRef, comment_id: str, reaction: Reaction) -> None: ...
    def git(self, repo: Repo) -> GitAccess: ...
    def set_status(self, repo: Repo, sha: Sha, status: CommitStatus) -> None:
        """Shows it beside the commit, where the forge has such a thing; a later one of the same name replaces it."""

    def open_pull(self, repo: Repo, *, head: str, base: str, title: str, body: str, draft: bool) -> str:
        """Opens a pull request between two branches of the repository, or finds the one that is open: its address."""

    def protected(self, repo: Repo, branch: str) -> bool:
        """Whether the forge lets only some push there, or nobody. A branch that is not there yet is not."""

    def comment_url(self, on: PullRef | IssueRef, comment_id: str) -> str: ...
    def commit_url(self, repo: Repo, sha: Sha) -> str: ...
    def branch_url(self, repo: Repo, branch: str) -> str: ...

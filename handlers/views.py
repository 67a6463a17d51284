"""What the decisions look at: the forge as it is now, and the bot's own books. They change nothing through it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.forges import Comment, Issue, Pull, RepoFacts
from bot.model import (
    Actor,
    AnyTicket,
    Intent,
    IssueRef,
    Limit,
    Permission,
    PullRef,
    Repo,
    RunId,
    Sha,
    Subject,
    Thread,
)
from bot.passview import Passes
from bot.projects import Project
from bot.publishing import PublishSettings
from bot.recheck import Finding
from bot.tasks import Rule, Task
from bot.trackers import Ticket


class ForgeView(Protocol):
    """The part of `bot.forges.Forge` that is read. Calls raise `Gone`, `Forbidden` or `Unavailable`."""

    def me(self) -> Actor: ...
    def repository(self, repo: Repo) -> RepoFacts: ...
    def branch_sha(self, repo: Repo, branch: str) -> Sha: ...
    def pull(self, ref: PullRef) -> Pull: ...
    def changed_files(self, ref: PullRef) -> tuple[str, ...]: ...
    def issue(self, ref: IssueRef) -> Issue: ...


class TalkView(Protocol):
    """The part of `bot.talk.Talk` that is read."""

    def me(self) -> Actor: ...
    def permission(self, on: Thread, who: Actor) -> Permission: ...
    def comment(self, on: Thread, comment_id: str) -> Comment: ...


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A task, where it is written ("leadsman.toml", or ".leadsman.toml at <sha> of main"), and how what it does is
    published in this project."""

    task: Task
    origin: str
    publish: PublishSettings = field(default_factory=PublishSettings)


@dataclass(frozen=True, slots=True)
class PlacedRule:
    """A rule, and its place: "leadsman.toml [[rule]] 2"."""

    rule: Rule
    place: str


@dataclass(frozen=True, slots=True)
class WrongFile:
    """A repository's `.leadsman.toml` that can't be used. `name` stays the same while its content does."""

    name: str
    sha: Sha
    branch: str
    problems: tuple[str, ...]
    earlier_counts: bool
    """Is there an earlier one that was right, and counts instead?"""


@dataclass(frozen=True, slots=True)
class TaskList:
    """What may run in a project: the server's tasks and rules, and those of the default branch's `.leadsman.toml`."""

    tasks: Mapping[str, KnownTask]
    rules: Sequence[PlacedRule] = ()
    warnings: Sequence[str] = ()
    wrong: WrongFile | None = None


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as the index shows it. `position` is its place among the waiting, 0 where it does not wait."""

    intent: Intent
    phase: str
    reason: str
    position: int
    is_open: bool
    pid: int | None = None
    """Of its command, while that is alive."""
    starts: int = 1
    """How often its command was started."""
    host: str = ""
    """The other host that has its files; empty where they are here."""

    @property
    def run_id(self) -> RunId:
        return self.intent.run_id

    @property
    def task(self) -> str:
        return self.intent.task.name

    @property
    def is_stopped(self) -> bool:
        """It waits for people, without a process, until it is resumed or cancelled."""
        return self.is_open and self.phase in ("blocked", "interrupted")

    @property
    def asked_by(self) -> Actor:
        return self.intent.event.actor


@dataclass(frozen=True, slots=True)
class HostView:
    """How full the bot's host is. `peak`: the most slots that were held at once. `dispatched`: runs that were ever
    given one. `paused_by` is empty where nobody paused new runs."""

    slots: int
    held: int
    peak: int
    pending: int
    dispatched: int
    reports: int
    paused_by: str = ""
    passes: Passes = field(default_factory=lambda: Passes(0, ()))
    """Who holds its CPU passes."""


class Runs(Protocol):
    def host(self) -> HostView:
        """How full the host is now."""

    def open_on(self, subject: Subject) -> Sequence[RunView]:
        """The runs on it that have not ended, the oldest first."""

    def recent_on(self, subject: Subject) -> Sequence[RunView]:
        """The last few runs on it, open or ended, the newest first."""

    def find(self, subject: Subject, prefix: str) -> Sequence[RunView]:
        """The runs on it whose id starts with `prefix`: more than one is for the person to choose from."""

    def log_tail(self, run_id: RunId, lines: int) -> Sequence[str]:
        """The last lines of its log, secrets masked; none where there is no log yet."""


@dataclass(frozen=True, slots=True)
class HoldView:
    """Who keeps new runs from starting, and why (may be empty)."""

    by: str
    reason: str


class Memory(Protocol):
    """What was decided before."""

    def held(self, subject: Subject) -> HoldView | None:
        """The hold on it, or on its whole repository."""

    def approved(self, repo: Repo, sha: Sha) -> bool:
        """Did somebody with write permission post `/ok-to-test` for exactly this commit?"""

    def already_obeyed(self, repo: Repo, comment_id: str, line: str, occurrence: int) -> bool:
        """Is this in the books, put there with an earlier `Decision.obeyed`?"""

    def head_seen(self, pull: PullRef, at: datetime, live: Sha) -> Sha | None:
        """The pull request's head at that time, where the bot knows from the deliveries that `live` came after it;
        `live` where it can't tell otherwise: a delivery that is late says nothing."""


class Desk(Protocol):
    """Everything that a decision may look at."""

    @property
    def runs(self) -> Runs: ...
    @property
    def memory(self) -> Memory: ...
    def forge(self, repo: Repo) -> ForgeView: ...
    def talk(self, on: Thread) -> TalkView: ...
    def ticket(self, ref: AnyTicket) -> Ticket: ...
    def bot_names(self, on: Thread) -> Collection[str]:
        """The logins that people address the bot by there (`@leadsman`)."""

    def allowed_bots(self, on: Subject) -> Collection[str]:
        """Logins of the bots whose comments count."""

    def project_of(self, repo: Repo) -> Project | None: ...
    def tasks(self, project: Project) -> TaskList: ...
    def limit_for(self, task: Task, difficulty: str | None) -> Limit:
        """Raises `UserError` for a difficulty that is not in the table; None is the task's own."""

    def changed_between(self, repo: Repo, before: Sha, after: Sha) -> Collection[str] | None:
        """The paths that a push to a branch changed; None where that can't be told."""

    def verified(self, run: RunView) -> Sequence[Finding]:
        """What is found of the claims of an ended run's report, now; nothing where it has none."""

    def new_run_id(self) -> RunId: ...
    def now(self) -> datetime: ...

"""A desk in memory: a forge with people, pull requests and comments, and the bot's books, both as plain values."""

# ruff: noqa: ARG002 - what it answers does not depend on all that it is asked with

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from bot import wording
from bot.budget import BudgetSettings
from bot.errors import Gone
from bot.forges import Comment, Issue, Pull, RepoFacts
from bot.model import (
    Actor,
    Commented,
    Event,
    Happening,
    Ignored,
    IssueRef,
    Limit,
    Permission,
    PullRef,
    Repo,
    RunId,
    Sha,
    Subject,
    Thread,
    TicketRef,
)
from bot.projects import Project
from bot.recheck import Finding
from bot.tasks import Rule, Task
from bot.trackers import Ticket
from handlers.decide import decide
from handlers.decision import Approve, Decision, Hold, Result, Say, Start, Stop, Unhold
from handlers.views import HoldView, HostView, KnownTask, PlacedRule, RunView, TaskList

REPO = Repo("github", "acme/shop")
PULL = PullRef(REPO, 7)
ISSUE = IssueRef(REPO, 9)
HEAD, NEWER, MAIN = Sha("a" * 40), Sha("b" * 40), Sha("c" * 40)
Key = TypeVar("Key")
Value = TypeVar("Value")

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def actor(login: str) -> Actor:
    return Actor(login, f"id-{login}", is_bot=login.endswith("[bot]"))


@dataclass
class Room:
    """The forge, the books and the desk in one: what they do is look things up in these fields."""

    people: dict[str, Permission] = field(
        default_factory=lambda: {
            "ann": Permission.ADMIN,
            "will": Permission.WRITE,
            "tria": Permission.TRIAGE,
            "rea": Permission.READ,
        }
    )
    pulls: dict[PullRef, Pull] = field(default_factory=dict)
    issues: dict[IssueRef, Issue] = field(default_factory=dict)
    tickets: dict[TicketRef, Ticket] = field(default_factory=dict)
    branches: dict[str, Sha] = field(default_factory=lambda: {"main": MAIN})
    said: dict[str, Comment] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    pushed_paths: tuple[str, ...] | None = None
    tasks_: dict[str, KnownTask] = field(
        default_factory=lambda: {
            name: KnownTask(Task(name=name, run=("make", name), help=text), "leadsman.toml")
            for name, text in (("fix", "mends *things*"), ("test", ""))
        }
    )
    rules: list[Rule] = field(default_factory=list)
    warnings: tuple[str, ...] = ()
    base: str | None = None
    allowed: tuple[str, ...] = ()
    seen: dict[PullRef, list[tuple[datetime, Sha]]] = field(default_factory=dict)
    holds: dict[Subject, HoldView] = field(default_factory=dict)
    approvals: set[Sha] = field(default_factory=set)
    obeyed: set[tuple[Repo, str, str, int]] = field(default_factory=set)
    rows: list[RunView] = field(default_factory=list)
    fullness: HostView = field(
        default_factory=lambda: HostView(slots=4, held=1, peak=2, pending=3, dispatched=9, reports=8)
    )
    logs: dict[RunId, list[str]] = field(default_factory=dict)
    findings: dict[RunId, tuple[Finding, ...]] = field(default_factory=dict)
    time: datetime = NOW
    ids: int = 0
    failing: dict[str, Exception] = field(default_factory=dict)
    """Name of a call -> what it raises."""
    decided: Decision | Ignored | None = None
    """What the last event came to."""

    def __post_init__(self) -> None:
        self.pulls[PULL] = Pull(
            ref=PULL, title="Mend", author=actor("rea"), open=True, merged=False, head_sha=HEAD, head_ref="topic",
            head_repo=REPO.name, base_ref="main", labels=(), updated_at=NOW,
        )  # fmt: skip
        self.issues[ISSUE] = Issue(
            ref=ISSUE, title="Broken", body="", author=actor("rea"), open=True, labels=("bot",), assignees=(),
            updated_at=NOW,
        )  # fmt: skip

    # What people do

    def says(self, who: str, text: str, on: PullRef | IssueRef = PULL) -> str:
        """Posts a comment, has it decided and carried out; returns what the answer says."""
        comment_id = str(len(self.said) + 1)
        self.said[comment_id] = Comment(comment_id, actor(who), text, self.time, self.time)
        return self.happens(Commented(comment_id, actor(who), text, None), on, who=who)

    def edits(self, who: str, text: str, on: PullRef | IssueRef = PULL) -> str:
        """Gives the last comment another text."""
        old = self.said[str(len(self.said))]
        self.said[old.id] = replace(old, body=text)
        return self.happens(Commented(old.id, old.author, text, old.body), on, who=who)

    def pushes(self, sha: Sha) -> None:
        self.pulls[PULL] = replace(self.pulls[PULL], head_sha=sha)

    def forks(self) -> None:
        self.pulls[PULL] = replace(self.pulls[PULL], head_repo="mallory/shop")

    def closes(self, *, merged: bool = False) -> None:
        self.pulls[PULL] = replace(self.pulls[PULL], open=False, merged=merged)

    def happens(
        self, what: Happening, on: Subject, *, who: str = "will", head: Sha | None = None, at: datetime | None = None
    ) -> str:
        event = Event(
            source="github", delivery="d-1", subject=on, actor=actor(who), what=what, head_sha=head, at=at or self.time
        )
        self.decided = decide(event, self)
        return self._carried_out(self.decided)

    def _carried_out(self, decision: Decision | Ignored) -> str:
        if isinstance(decision, Ignored):
            return f"(nothing: {decision.reason})"
        for done in decision.obeyed:
            self.obeyed.add((done.repo, done.comment_id, done.line, done.occurrence))
        return "\n\n---\n\n".join(filter(None, (self._done(result) for result in decision.results)))

    def _done(self, result: Result) -> str:
        match result:
            case Say(text):
                return text
            case Start(intent):
                self.rows.append(RunView(intent, "waiting", "no slot is free", len(self.rows) + 1, is_open=True))
                return wording.waiting(intent.run_id, intent.task.name, "no slot is free", len(self.rows))
            case Hold(subject, by, reason):
                self.holds[subject] = HoldView(by.login, reason)
            case Unhold(subject):
                self.holds.pop(subject, None)
            case Approve(sha=sha):
                self.approvals.add(sha)
            case Stop(run_id):
                self.ends(run_id)
            case _:
                pass
        return ""

    def ends(self, run_id: str) -> None:
        self.rows = [
            replace(row, phase="closed", reason="", position=0, is_open=False) if row.run_id == run_id else row
            for row in self.rows
        ]

    @property
    def results(self) -> tuple[Result, ...]:
        return self.decided.results if isinstance(self.decided, Decision) else ()

    # The forge

    def me(self) -> Actor:
        return actor("leadsman[bot]")

    def repository(self, repo: Repo) -> RepoFacts:
        return RepoFacts(repo, "main", "", "")

    def branch_sha(self, repo: Repo, branch: str) -> Sha:
        return self._found(self.branches, branch, "branch_sha")

    def pull(self, ref: PullRef) -> Pull:
        return self._found(self.pulls, ref, "pull")

    def changed_files(self, ref: PullRef) -> tuple[str, ...]:
        self._trip("changed_files")
        return self.changed

    def issue(self, ref: IssueRef) -> Issue:
        return self._found(self.issues, ref, "issue")

    def permission(self, on: Thread, who: Actor) -> Permission:
        self._trip("permission")
        return self.people.get(who.login, Permission.NONE)

    def comment(self, on: Thread, comment_id: str) -> Comment:
        return self._found(self.said, comment_id, "comment")

    def _found(self, where: dict[Key, Value], key: Key, call: str) -> Value:
        self._trip(call)
        if key not in where:
            raise Gone(f"{call} {key} is not there")
        return where[key]

    def _trip(self, call: str) -> None:
        if call in self.failing:
            raise self.failing[call]

    # The books

    def held(self, subject: Subject) -> HoldView | None:
        return self.holds.get(subject)

    def approved(self, repo: Repo, sha: Sha) -> bool:
        return sha in self.approvals

    def already_obeyed(self, repo: Repo, comment_id: str, line: str, occurrence: int) -> bool:
        return (repo, comment_id, line, occurrence) in self.obeyed

    def head_seen(self, pull: PullRef, at: datetime, live: Sha) -> Sha | None:
        seen = self.seen.get(pull, [])
        moved = any(sha == live and when >= at for when, sha in seen)
        return next((sha for _, sha in reversed(seen) if sha != live), live) if moved else live

    def host(self) -> HostView:
        return self.fullness

    def open_on(self, subject: Subject) -> Sequence[RunView]:
        return [row for row in self.rows if row.is_open and row.intent.event.subject == subject]

    def recent_on(self, subject: Subject) -> Sequence[RunView]:
        return [row for row in reversed(self.rows) if row.intent.event.subject == subject]

    def find(self, subject: Subject, prefix: str) -> Sequence[RunView]:
        return [row for row in self.recent_on(subject) if row.run_id.startswith(prefix)]

    def log_tail(self, run_id: RunId, lines: int) -> Sequence[str]:
        return self.logs.get(run_id, [])[-lines:]

    # The desk

    @property
    def runs(self) -> Room:
        return self

    @property
    def memory(self) -> Room:
        return self

    def forge(self, repo: Repo) -> Room:
        return self

    def talk(self, on: Thread) -> Room:
        return self

    def ticket(self, ref: TicketRef) -> Ticket:
        return self._found(self.tickets, ref, "ticket")

    def bot_names(self, on: Thread) -> Collection[str]:
        return ("leadsman", "leadsman[bot]")

    def allowed_bots(self, on: Subject) -> Collection[str]:
        return self.allowed

    def project_of(self, repo: Repo) -> Project | None:
        return Project(name="shop", forge="github", repository="acme/shop", base=self.base) if repo == REPO else None

    def tasks(self, project: Project) -> TaskList:
        placed = [PlacedRule(rule, f"leadsman.toml [[rule]] {n}") for n, rule in enumerate(self.rules, 1)]
        return TaskList(self.tasks_, placed, self.warnings)

    def limit_for(self, task: Task, difficulty: str | None) -> Limit:
        return BudgetSettings().limit_for(task, difficulty)

    def changed_between(self, repo: Repo, before: Sha, after: Sha) -> Collection[str] | None:
        return self.pushed_paths

    def verified(self, run: RunView) -> Sequence[Finding]:
        return self.findings.get(run.run_id, ())

    def new_run_id(self) -> RunId:
        self.ids += 1
        return RunId(f"20260301-120000-{0xA00000 + self.ids:06x}")

    def now(self) -> datetime:
        return self.time

"""The words of the domain: the values that a delivery becomes on its way to a report.

    delivery -> Event -> Intent -> Claim -> Run -> Report

Each age holds the one before. They are plain frozen dataclasses, written to a run's directory as JSON (`bot.codec`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from typing import Literal, NewType

from bot.publishing import PublishSettings
from bot.tasks import Task

Sha = NewType("Sha", str)
"""A full object id: 40 (or 64) lower-case hex digits. Short ones are never accepted from outside."""

RunId = NewType("RunId", str)
"""`YYYYmmdd-HHMMSS-<6 hex>`, made by `bot.rundir.new_run_id`."""


class Permission(IntEnum):
    """What a person may do in a repository, by the forge's own answer, in rising order."""

    NONE = 0
    READ = 1
    TRIAGE = 2
    WRITE = 3
    MAINTAIN = 4
    ADMIN = 5


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository on one configured forge: `forge` is the name of its table, `name` is `owner/name`."""

    forge: str
    name: str

    def __str__(self) -> str:
        return f"{self.forge}:{self.name}"


@dataclass(frozen=True, slots=True)
class PullRef:
    repo: Repo
    number: int
    kind: Literal["pull"] = "pull"

    def __str__(self) -> str:
        return f"{self.repo}#{self.number}"


@dataclass(frozen=True, slots=True)
class IssueRef:
    repo: Repo
    number: int
    kind: Literal["issue"] = "issue"

    @property
    def tracker(self) -> str:
        """A forge is the tracker of its own issues."""
        return self.repo.forge

    def __str__(self) -> str:
        return f"{self.repo}#{self.number}"


@dataclass(frozen=True, slots=True)
class BranchRef:
    """A branch, by its full ref name (`refs/heads/...`)."""

    repo: Repo
    ref: str
    kind: Literal["branch"] = "branch"

    def __str__(self) -> str:
        return f"{self.repo}@{self.ref}"


@dataclass(frozen=True, slots=True)
class TicketRef:
    """A ticket of a tracker beside the forge. `repo` is the repository of the project that its tickets are for."""

    repo: Repo
    tracker: str
    """The name of its table, `[trackers.<name>]`."""
    number: int
    kind: Literal["ticket"] = "ticket"

    def __str__(self) -> str:
        return f"{self.tracker}:{self.number}"


AnyTicket = IssueRef | TicketRef
"""What is claimed whole."""

Thread = PullRef | AnyTicket
"""What people talk on."""

Subject = Thread | BranchRef


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it. `id` is the forge's own, as text: logins can be renamed and taken over."""

    login: str
    id: str
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Commented:
    """A comment was written (`before` is None) or edited (`before` is its text until then)."""

    comment_id: str
    author: Actor
    text: str
    before: str | None
    kind: Literal["commented"] = "commented"


@dataclass(frozen=True, slots=True)
class Opened:
    title: str
    kind: Literal["opened"] = "opened"


@dataclass(frozen=True, slots=True)
class Pushed:
    """New commits: on a pull request's head (its subject is the pull request) or on a branch."""

    before: Sha | None
    after: Sha | None
    """None when the branch was deleted."""
    kind: Literal["pushed"] = "pushed"


@dataclass(frozen=True, slots=True)
class Closed:
    merged: bool
    kind: Literal["closed"] = "closed"


@dataclass(frozen=True, slots=True)
class Labeled:
    label: str
    kind: Literal["labeled"] = "labeled"


@dataclass(frozen=True, slots=True)
class Updated:
    """A ticket's status or assignee was changed. Statuses are names; both are the same where it was the assignee.

    On a forge's issue a label was taken off, which is `old`, or somebody was assigned or unassigned.
    """

    note_id: str
    """The tracker's id of this change; empty where it was told without one."""
    old: str
    new: str
    assignee: bool
    kind: Literal["updated"] = "updated"


@dataclass(frozen=True, slots=True)
class Claimable:
    """A ticket stands there to be taken. `stamp` tells one state of it from the next (`bot.epoch.stamp`)."""

    stamp: str
    kind: Literal["claimable"] = "claimable"


@dataclass(frozen=True, slots=True)
class Retried:
    """An ended run was asked for once more, on this host's command line."""

    run_id: str
    kind: Literal["retried"] = "retried"


Happening = Commented | Opened | Pushed | Closed | Labeled | Updated | Claimable | Retried


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened, as the delivery told it. What matters is read from the forge again before acting."""

    source: str
    """The name of the forge's (or tracker's) table in the configuration."""
    delivery: str
    subject: Subject
    actor: Actor
    what: Happening
    head_sha: Sha | None
    """The pull request's head that the payload showed, where it showed one."""
    at: datetime


@dataclass(frozen=True, slots=True)
class LookAgain:
    """A delivery that says no more than that a ticket changed: it is read from the tracker."""

    number: int
    since: datetime | None = None
    """From which moment of its journal on; None = as far back as a poll would look."""
    entry: str | None = None
    """The one entry of its journal that counts, by its id, and no other; "" = the ticket itself."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """A delivery that asks nothing of us, and why: an answer, not an error."""

    reason: str


@dataclass(frozen=True, slots=True)
class Command:
    """Why a run was asked for: a line of a comment, as the person wrote it."""

    line: str
    kind: Literal["command"] = "command"


@dataclass(frozen=True, slots=True)
class RuleFired:
    """Why a run was asked for: a `[[rule]]`, by its `on` and its place in the file (`leadsman.toml [[rule]] 2`)."""

    on: str
    place: str
    kind: Literal["rule"] = "rule"


@dataclass(frozen=True, slots=True)
class Limit:
    """How long a run may take, and where that figure comes from."""

    seconds: int
    turns: int
    origin: str

    @property
    def turn_seconds(self) -> int:
        """What one turn may take."""
        return self.seconds // max(1, self.turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What is asked for: everything a run needs to know, resolved when it was decided and never looked up again."""

    run_id: RunId
    event: Event
    ordinal: int
    """Which command of the comment it is, from 0."""
    reason: Command | RuleFired
    project: str
    task: Task
    args: tuple[str, ...]
    """What stood behind the task's name; it follows the task's own argv."""
    head: Sha
    """The commit the run starts from."""
    head_why: str
    """Why that one, for the report: "the head of #7 when the bot acted"."""
    base_ref: str
    """The branch it is meant for (`main`), without `refs/heads/`."""
    trusted_from: str
    """Where the task came from: "leadsman.toml", or ".leadsman.toml at <sha> of main"."""
    limit: Limit
    answer: str
    """The key of the comment that answers (`bot.answers`)."""
    at: datetime
    publish: PublishSettings = field(default_factory=PublishSettings)
    """How its commits are published: the server's word, with what the repository may say."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A slot that is held: `id` is new at each acquisition, so that a late release frees nothing."""

    slot: str
    id: str
    host: str = ""
    """Whose slot it is; empty in what was written before slots were those of a host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is held: the slot, and the ref on the remote that proves the ticket is ours."""

    intent: Intent
    lease: Lease
    key: str
    """What is claimed: `github:acme/shop#7:fix` for a pull request and task, `github:acme/shop#9` for a ticket."""
    ref: str
    oid: Sha
    """The claim's commit: the fence that publishing, reporting and releasing check."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What goes on: a command in a worktree."""

    claim: Claim
    branch: str
    """`leadsman/<run_id>`, the worktree's own branch, local."""
    worktree: Path
    run_dir: Path
    load: float
    """The host's load average over one minute when it was prepared."""
    at: datetime

    @property
    def intent(self) -> Intent:
        return self.claim.intent

    @property
    def id(self) -> RunId:
        return self.claim.intent.run_id


@dataclass(frozen=True, slots=True)
class Published:
    tip: Sha
    ref: str
    """The remote ref that was read back and holds the tip."""
    kind: Literal["published"] = "published"


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The command ended well and left nothing to publish."""

    why: str
    kind: Literal["unchanged"] = "unchanged"


UNSEEN = "push"
"""The stage of a run whose commits were to be pushed to a remote that then gave no answer: they may be there."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It did not end well; nothing was published, unless that could not be seen. `stage` is the step that failed."""

    stage: str
    why: str
    kind: Literal["failed"] = "failed"

    @property
    def published(self) -> str:
        """What is known of its commits, in words."""
        return "whether it was published is not known" if self.stage == UNSEEN else "nothing was published"


@dataclass(frozen=True, slots=True)
class Blocked:
    waits_for: str
    kind: Literal["blocked"] = "blocked"


@dataclass(frozen=True, slots=True)
class Cancelled:
    by: str
    how: str = ""
    """A sentence: how it came to its end, where it was asked to stop after its turn."""
    kind: Literal["cancelled"] = "cancelled"


@dataclass(frozen=True, slots=True)
class Lost:
    why: str
    kind: Literal["lost"] = "lost"


Outcome = Published | Unchanged | Failed | Blocked | Cancelled | Lost


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody else has it: an outcome, not an error."""

    by: str
    since: str
    run_id: str
    where: str
    link: str = ""
    """Where the run can be followed, as far as that is known."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Not now, and what would let it pass."""

    reason: Literal[
        "crew_cap_reached",
        "no_free_slot",
        "repo_busy",
        "insufficient_cycle_time",
        "retry_pressure",
        "host_overloaded",
        "registry_unreadable",
        "paused",
        "on_hold",
    ]
    what_would_pass: str

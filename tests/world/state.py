"""What the world remembers of people and what they leave behind: plain records, changed only under the world's lock."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.world.deliveries import Delivery

ROLES: dict[str, dict[str, bool]] = {
    "read": {"pull": True, "triage": False, "push": False, "maintain": False, "admin": False},
    "triage": {"pull": True, "triage": True, "push": False, "maintain": False, "admin": False},
    "write": {"pull": True, "triage": True, "push": True, "maintain": False, "admin": False},
    "maintain": {"pull": True, "triage": True, "push": True, "maintain": True, "admin": False},
    "admin": {"pull": True, "triage": True, "push": True, "maintain": True, "admin": True},
}
"""GitHub's five roles and what each may. The old `permission` field knows only none, read, write and admin."""

NOTHING = dict.fromkeys(ROLES["admin"], False)


@dataclass(slots=True)
class User:
    """An account; `type` is GitHub's word: User, Bot or Organization."""

    id: int
    login: str
    type: str
    token: str
    created_at: datetime
    scopes: tuple[str, ...] | None = ("repo",)
    """Of a classic token; None: the token is a fine-grained one, which shows none."""

    @property
    def is_bot(self) -> bool:
        return self.type == "Bot"


@dataclass(slots=True)
class Role:
    """What somebody may in a repository: one of GitHub's five roles, or a custom one that builds on one of them."""

    name: str
    base: str

    @property
    def permissions(self) -> dict[str, bool]:
        return ROLES[self.base]


@dataclass(slots=True)
class Reaction:
    id: int
    user: User
    content: str
    created_at: datetime


@dataclass(slots=True)
class Comment:
    id: int
    number: int
    """Of the issue or pull request it stands on."""
    author: User | None
    """None when the account was deleted."""
    body: str
    created_at: datetime
    updated_at: datetime
    reactions: list[Reaction] = field(default_factory=list)

    @property
    def seen(self) -> set[str]:
        """Contents of the reactions it carries."""
        return {reaction.content for reaction in self.reactions}


@dataclass(slots=True)
class Label:
    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(slots=True)
class Status:
    id: int
    sha: str
    state: str
    context: str
    description: str | None
    target_url: str | None
    creator: User
    at: datetime


@dataclass(slots=True)
class CheckRun:
    id: int
    head_sha: str
    name: str
    status: str
    conclusion: str | None
    details_url: str | None
    external_id: str
    output: dict[str, Any]
    started_at: datetime
    completed_at: datetime | None
    app: App | None


@dataclass(slots=True)
class Hook:
    id: int
    url: str
    events: list[str]
    secret: str | None
    active: bool
    created_at: datetime
    content_type: str = "json"
    attempts: list[Attempt] = field(default_factory=list)
    """Oldest first."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a delivery; `code` and `status` are what GitHub shows of it."""

    id: int
    delivery: Delivery
    repository_id: int
    at: datetime
    again: bool
    code: int
    status: str


@dataclass(frozen=True, slots=True)
class IssueEvent:
    """What happened to an issue or a pull request: labeled, unlabeled, assigned, unassigned, closed, reopened, merged.

    `actor` did it. Its id is of another sequence than a comment's.
    """

    id: int
    event: str
    number: int
    actor: User
    at: datetime
    label: Label | None
    assignee: User | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """A push, as a repository remembers it."""

    id: int
    ref: str
    before: str
    after: str
    actor: User
    at: datetime
    kind: str


@dataclass(slots=True)
class App:
    id: int
    slug: str
    name: str
    owner: User
    bot: User
    private_key: str
    """PEM, RSA."""
    public_key: str
    created_at: datetime
    permissions: dict[str, str]
    hook: Hook | None = None
    """The one webhook that an App has for all its installations."""


@dataclass(slots=True)
class Installation:
    id: int
    app: App
    account: User
    repositories: set[str]
    """Full names."""
    created_at: datetime
    tokens_made: int = 0
    suspended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whose token a request carried, and what it may reach."""

    user: User
    installation: Installation | None = None
    repositories: frozenset[str] | None = None
    """An installation token's; None = whatever the user may see."""

    @property
    def key(self) -> str:
        """What its rate limit is counted by."""
        return f"installation {self.installation.id}" if self.installation else f"user {self.user.id}"

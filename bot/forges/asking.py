"""What a forge may be asked beside the calls of a run: what it could not deliver, what happened, who the bot is there.

Calls raise `bot.errors.Gone`, `Forbidden` or `Unavailable`, as a forge's own do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.finding import Finding
from bot.model import Event, PullRef, Repo, Sha


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A webhook as the forge shows it now."""

    id: str
    repo: Repo | None
    """None: it is an App's, for all its repositories."""
    url: str
    active: bool
    json: bool
    """Deliveries are JSON; a form is refused at the door."""
    lacks: tuple[str, ...]
    """Events that the bot needs and that it does not bring."""
    last_code: int | None
    """HTTP status of its latest delivery, where the forge says it."""

    @property
    def works(self) -> bool:
        """It is set so that everything comes; whether it arrives is another question."""
        return self.active and self.json and not self.lacks

    def __str__(self) -> str:
        return f"webhook {self.id} of {self.repo}" if self.repo else "the App's webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One try at delivering something. All tries at the same thing have the same `guid`."""

    id: str
    guid: str
    at: datetime
    code: int
    """HTTP status of the answer, or what the forge puts in its place."""
    again: bool
    """It was asked for, by us or by somebody, after an earlier one."""
    what: str
    """`issue_comment.created`."""
    status: str
    """How it ended, in the forge's words."""

    @property
    def arrived(self) -> bool:
        return 200 <= self.code < 300


class Hooks(Protocol):
    """The webhooks of a forge, and what became of their deliveries."""

    def of(self, repo: Repo) -> tuple[Hook, ...]:
        """Those that tell of this repository. Raises `Gone` or `Forbidden` where the bot may not know them."""

    def sent(self, hook: Hook, since: datetime) -> tuple[Sent, ...]:
        """Its tries since then at what concerns the bot, the latest first."""

    def send_again(self, hook: Hook, sent: Sent) -> None:
        """Asks for one more try."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a pull request stood when the forge was asked. `at`: when it was last changed, by the forge's clock."""

    pull: PullRef
    sha: Sha
    at: datetime


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found. `at`: when that was, by the forge's clock.

    An event's `delivery` is made of what it tells, so that a thing found twice has the same one.
    """

    at: datetime
    events: tuple[Event, ...] = ()
    """Oldest first."""
    heads: tuple[Head, ...] = ()
    """Of the open pull requests that were looked at."""


class News(Protocol):
    """What happened in a repository, for those that no webhook tells of."""

    @property
    def every(self) -> int:
        """Seconds between two looks; 0 = never look."""

    def heads(self, repo: Repo) -> Look:
        """Where all open pull requests stand, to know later which of them have moved."""

    def since(self, repo: Repo, since: datetime, known: Callable[[PullRef], Sha | None]) -> Look:
        """What happened since then. `known`: the head that was last seen; one not seen before has not moved.

        Nobody says who edited a comment, nor what it said before: the event of an edited one has its whole text as
        what stood there before, so that nothing in it is new.
        """


class Checkup(Protocol):
    """What `leadsman doctor` asks a forge about the bot itself."""

    def account(self) -> Iterator[Finding]:
        """Who the bot is, what its token may, and what the clock says."""

    def branches(self, repo: Repo, ours: Iterable[str], default: str) -> Iterator[Finding]:
        """Whether the bot can push to `ours`, and who keeps others from pushing to `default`."""

"""Where tickets stand: ticket systems beside the forges, and the forges with their issues. What the bot gets from them,
and may ask of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from bot.model import Actor, AnyTicket, TicketRef
from bot.talk import Talk

TRACKERS = {"redmine": "bot.trackers.redmine"}
"""kind -> module, imported only for a kind that the configuration names. Each has `Settings` (its table),
`connect(name, settings, projects, around) -> TicketSystem`, and `api_key`, `webhook_secrets` and `webhook_token`, each
called with `(name, settings, around)`."""

Stage = Literal["claimable", "open", "claimed", "other"]
"""Where a ticket stands, as its status shows it: to be taken by whoever looks; to be taken by a run that somebody asks
for on it; held; in people's hands."""

Move = Literal["claimed", "claimable", "done"]
"""Where a bot puts a ticket: it takes it, it gives it back, it has ended well with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a ticket's journal: a note, changes, or both. `at` is in whole seconds."""

    id: str
    """The tracker's own. It tells one entry from another; which came first, the journal's order says alone."""
    author: Actor
    text: str
    private: bool
    at: datetime
    old_status: str | None = None
    new_status: str | None = None
    """Names; None where the entry changes no status."""
    assignee_changed: bool = False
    by_member: bool = True
    """Whether the author belongs to those who work there: a note of the protocol by anybody else is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """A file that lies with a ticket; `size` in bytes."""

    name: str
    size: int
    url: str


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that the tracker has, and that no ticket shows yet: a note takes it along."""

    name: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A ticket as the tracker shows it now. `journal` is in the tracker's own order, the oldest entry first."""

    ref: AnyTicket
    title: str
    text: str
    author: Actor
    status: str
    stage: Stage
    is_closed: bool
    category: str | None
    priority: int
    """Higher is more urgent."""
    assignee: Actor | None
    updated_at: datetime
    created_at: datetime | None = None
    """None where the tracker is not asked for it."""
    journal: tuple[Entry, ...] = ()
    allowed: frozenset[str] | None = None
    """Statuses that the bot's workflow lets it set now; None where the tracker does not tell."""
    blocked_by: tuple[int, ...] = ()
    """Numbers of the tickets that have to be closed before this one."""
    attached: tuple[Attached, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claiming:
    """How tickets are claimed on a tracker: its table's words."""

    enabled: bool
    claimable: str
    claimed: str
    after: Mapping[str, str]
    """Claim status -> status after a run that ended well."""
    link_field: str | None = None
    limit: int | None = None
    """Seconds: a claim twice as old is stale. 0 = none ever is; None = as the claim itself says."""
    log_bytes: int = 0
    """How much of a run's log goes along with its report; 0 = none of it."""

    def status(self, move: Move) -> str:
        """What the ticket's status is to be then."""
        match move:
            case "claimed":
                return self.claimed
            case "claimable":
                return self.claimable
            case "done":
                return self.after.get(self.claimed, self.claimed)


class Tracker(Talk, Protocol):
    """Where tickets are claimed: a ticket system, or a forge with its issues. Thread-safe; every call has a deadline.

    A `project` is a ticket system's identifier, or `owner/name`.
    """

    name: str
    kind: str
    claiming: Claiming

    def ticket(self, ref: AnyTicket) -> Ticket:
        """The ticket with its journal, and what the bot may do with it now. `Gone` where it left its project."""

    def claimable(self, project: str) -> Iterable[Ticket]:
        """Tickets that may be taken: the most urgent first, then the oldest; no journals. Asks page by page."""

    def claimed(self, project: str) -> Iterable[Ticket]:
        """Tickets in the claim status; no journals."""

    def write(
        self,
        ref: AnyTicket,
        note: str,
        *,
        to: Move | None = None,
        of: Actor | None = None,
        link: str | None = None,
        upload: Upload | None = None,
    ) -> Ticket:
        """A note of the protocol, with the status that goes along where that is one write; the ticket as it is read
        back after it. `of`: whose claim ends with it.

        Redmine keeps the note and ignores a status that its workflow forbids: compare. On a forge the note alone
        claims: `hold` shows it once it was won. Raises `Unavailable` for a write that collided with another (nothing
        was written), `Forbidden` for one that is refused.
        """

    def upload(self, name: str, content: bytes) -> Upload:
        """Puts a file onto the tracker, for the next note. Raises `Forbidden` where it takes none such."""

    def hold(self, ticket: Ticket) -> Ticket:
        """Shows a claim that was won, where `write` could not: the ticket as it then is. Safe to repeat."""

    def look_at_formatting(self, ref: AnyTicket, word: str) -> None:
        """Finds out how notes are read, where that is not known: by a note on that ticket that has `word` as code."""

    def open_among(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Those of these tickets that are not closed."""

    def render(self, markdown: str) -> str:
        """A note as the tracker will give it back."""

    def ticket_url(self, ref: AnyTicket) -> str: ...


class TicketSystem(Tracker, Protocol):
    """One configured tracker beside the forges."""

    def whoami(self) -> Actor:
        """The bot's own user, asked anew: `Forbidden` for a key that is refused, which other calls may not tell."""

    def find(self, number: int) -> TicketRef | None:
        """Which project's ticket it is, by its number; None for one that is none of ours. `Forbidden` for a key that
        is refused: then nobody knows."""

    def project_of(self, ref: TicketRef) -> str:
        """The site's identifier of the project of ours that it is in. `Gone` where it is in none (any more)."""

    def changed(self, project: str, since: datetime, skip: int = 0) -> tuple[Ticket, ...]:
        """Up to `PAGE` tickets that changed at or after that second, the longest unchanged first; no journals."""

    def latest(self, project: str) -> datetime | None:
        """When a ticket of the project changed last, by the tracker's clock; None while it has none."""


MOST_AWAY = 3
"""After so many tickets in a row that could not be read or written for now, the tracker is taken for away."""

PAGE = 100
"""How many tickets one answer holds at most."""

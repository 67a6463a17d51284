"""What the pages show, as plain values, and the one thing they ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from bot.masking import Masking

Mood = Literal["live", "waiting", "good", "bad", "quiet"]
"""How a run stands, for its colour and its order; the words beside it say the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """A run in a list. `phase` is one word, `reason` why it waits or how it ended; the URLs may be empty."""

    id: str
    task: str
    project: str
    subject: str
    subject_url: str
    asked_by: str
    phase: str
    reason: str
    mood: Mood
    created_at: datetime
    closed_at: datetime | None
    host: str = ""
    """Where it is, where there are several hosts."""

    @property
    def is_open(self) -> bool:
        return self.closed_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The front page: what runs, what waits (first in the queue first), what ended (the newest first)."""

    live: tuple[RunLine, ...]
    waiting: tuple[RunLine, ...]
    recent: tuple[RunLine, ...]
    notices: tuple[str, ...] = ()
    """What an operator should know now: a configuration that was not taken up, a pause."""
    passes: str = ""
    """Who holds the host's CPU passes, in one line."""


@dataclass(frozen=True, slots=True)
class Step:
    """A stretch of a run's way. `ended` is None while it goes on."""

    name: str
    started: datetime
    ended: datetime | None


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of what is known about a run; `url` may be empty."""

    name: str
    text: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    line: RunLine
    steps: tuple[Step, ...]
    facts: tuple[Fact, ...]
    folder: Path | None
    """The run's directory, where it is on this host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A comment of a thread. `body` is Markdown as it was written."""

    id: str
    author: str
    body: str
    at: datetime
    edited: bool
    reactions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadLine:
    repo: str
    number: int
    kind: Literal["pull", "issue"]
    title: str
    author: str
    state: Literal["open", "closed", "merged"]
    labels: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """A pull request or issue of a local forge. The last three are empty for an issue."""

    line: ThreadLine
    body: str
    remarks: tuple[Remark, ...]
    runs: tuple[RunLine, ...]
    head_ref: str = ""
    base_ref: str = ""
    head_sha: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoPage:
    """A repository of a local forge: its threads, the newest first, and its branches with their tips."""

    repo: str
    place: str
    default_branch: str
    branches: tuple[tuple[str, str], ...]
    threads: tuple[ThreadLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLine:
    id: int
    source: str
    delivery: str
    event: str
    lane: str
    received_at: datetime
    state: str
    tries: int
    note: str


class View(Protocol):
    """What the pages read. None stands for what isn't there; `Unavailable` is raised when the store can't be read."""

    @property
    def public_url(self) -> str:
        """Where people find the pages."""

    @property
    def masking(self) -> Masking:
        """Takes the secrets out of what runs have written."""

    def board(self) -> Board: ...
    def run(self, run_id: str) -> RunPage | None: ...
    def deliveries(self) -> Sequence[DeliveryLine]: ...
    def repositories(self) -> Sequence[str]: ...
    def repository(self, repo: str) -> RepoPage | None: ...
    def thread(self, repo: str, number: int) -> ThreadPage | None: ...
    def commit(self, repo: str, sha: str) -> str | None: ...

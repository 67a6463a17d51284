"""The report: everything that was seen of a run, as data that is signed. What people read is rendered from it.

A line says only what was seen. What did not run is named, with why; no checks at all is never green.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bot.ages import NotRun, Ran, Use, Verdict
from bot.model import Outcome, Published, RunId, Sha, Unchanged
from bot.risk import Tier

Grade = Literal["green", "red", "neutral"]
"""What a run came to, in a word. Neutral: it says neither yes nor no (nothing was checked, it was cancelled)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """Where the commits are. `url` is how git reaches it without a credential; empty for a folder of the host."""

    forge: str
    name: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Where people find it; empty = nowhere."""

    run: str
    base: str
    tip: str = ""
    ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed file. None = binary."""

    path: str
    added: int | None
    deleted: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """How much care the change asks for, and why. `tier` is None where nothing changed, and "unknown" where it could
    not be told; then the reason is what was in the way."""

    tier: Tier | Literal["unknown"] | None
    reasons: tuple[str, ...]
    branch: str = ""
    """The branch that the change is meant for: its rules count."""
    rules_at: Sha | None = None
    """The commit of it whose rules these are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The host's load average over one minute when the command started, and when the run ended, and its CPUs."""

    at_start: float | None
    at_end: float | None
    cpus: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the run might take, where that figure comes from, and the rounds it said it had taken."""

    seconds: int
    turns: int
    origin: str
    round: int | None
    rounds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The end of a log, with secrets masked."""

    what: str
    log: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything the report says: the predicate `leadsman/run-report/v1`."""

    run: RunId
    task: str
    project: str
    subject: str
    repository: Repository
    asked_by: str
    asked_with: str
    trusted_from: str
    claim: str | None
    base: Sha
    base_why: str
    tip: Sha | None
    """The commit with the run's work; None where it left none."""
    ref: str | None
    """The remote ref that was read back and held the tip."""
    pull: str
    """The pull request that was opened from it: its address, or why there is none; empty where none was asked for."""
    outcome: Outcome
    commits: int
    leftovers_committed: bool
    descends: bool
    incorporated: tuple[Sha, ...]
    changes: tuple[Change, ...]
    changes_since: Sha
    """The commit that `changes` are the difference to."""
    skipped: tuple[str, ...]
    checked_at: Sha | None
    """The commit that the checks ran on."""
    ran: tuple[Ran, ...]
    verdicts: tuple[Verdict, ...]
    not_run: tuple[NotRun, ...]
    limits: Limits
    env: tuple[str, ...]
    """Names of the variables that were passed through to the commands."""
    use: Use | None
    """What the task's command has used."""
    load: Load
    host: str
    tried: tuple[str, ...]
    """What the command tried and was refused, as far as that could be seen."""
    kept: tuple[str, ...]
    """What was kept of the work that was not published."""
    does_not_close: str
    """What is still for people to do."""
    tails: tuple[Tail, ...]
    """The ends of the logs of what did not end well."""
    links: Links
    at: datetime
    risk: Risk | None = None
    """None where no work was sealed, and in reports from before there were tiers."""

    @property
    def added(self) -> int:
        return sum(change.added or 0 for change in self.changes)

    @property
    def deleted(self) -> int:
        return sum(change.deleted or 0 for change in self.changes)

    @property
    def all_ran(self) -> tuple[Ran, ...]:
        """Every command that ran, the task's own first."""
        checks = (ran for one in self.verdicts for ran in (*one.tries, *((one.at_base,) if one.at_base else ())))
        return (*self.ran, *checks)

    @property
    def holding(self) -> int:
        """How many checks hold."""
        return sum(1 for verdict in self.verdicts if verdict.holds)

    @property
    def grade(self) -> Grade:
        match self.outcome.kind:
            case "published" | "unchanged":
                green = bool(self.verdicts) and self.holding == len(self.verdicts)
                return "green" if green else "neutral"
            case "failed" | "lost":
                return "red"
            case _:
                return "neutral"

    @property
    def well(self) -> bool:
        return isinstance(self.outcome, Published | Unchanged)

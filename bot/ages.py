"""What a run's directory says of its way along the road: one file for each age, written once, whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from bot import codec
from bot.counts import Counts
from bot.model import Claim, Held, Intent, Outcome, Run, Sha
from bot.ownhand import OwnHand
from bot.statefiles import read_plain

Age = TypeVar("Age")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """What the command left, as commits: nothing moves any more."""

    tip: Sha
    commits: int
    leftovers_committed: bool
    """The bot committed, in its own name, what the command had left uncommitted."""
    descends: bool
    """The tip descends from the commit that the run started from."""
    skipped: tuple[str, ...] = ()
    """Paths that were not taken up: repositories inside the worktree, pipes, sockets."""
    unfinished: str | None = None
    """What the command was in the middle of: "merge", "rebase", ..."""
    head: Sha | None = None
    """Where the worktree stood when it was sealed: it must stand there still when the tip is published."""
    incorporated: tuple[Sha, ...] = ()
    """Tips of the shared publish branch that were merged in because they came first."""

    def since(self, head: Sha) -> Sha:
        """The commit that the run's own work is the difference to: the one it started from, or what came first."""
        return self.incorporated[-1] if self.incorporated else head


State = Literal["green", "red", "cancelled", "unknown"]
"""What a command came to. One that was cancelled is neither green nor red, and what nobody saw end is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a command and all that it started have used; the memory is that of the largest process."""

    cpu_seconds: float
    max_rss_kib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One command that ran, as its supervisor saw it. Times are seconds; `waited` is the wait for CPU passes."""

    what: str
    argv: tuple[str, ...]
    exit_code: int | None
    signal: int | None
    seconds: float
    waited: float | None
    stop_reason: str
    log: str
    """The log's path inside the run's directory."""
    log_bytes: int
    log_sha256: str
    ended: str
    """The state its supervisor gave it: done, failed, cancelled, blocked, lost."""
    by: str = ""
    """Who cancelled it."""
    counts: Counts | None = None
    use: Use | None = None
    at: Sha | None = None
    """The commit it ran on; None for a run's own command, which begins at its base and moves on."""

    @property
    def state(self) -> State:
        match self.ended:
            case "done":
                return "green" if self.exit_code == 0 else "unknown"
            case "failed":
                return "red"
            case "cancelled":
                return "cancelled"
            case _:
                return "unknown"

    @property
    def passed(self) -> bool:
        return self.state == "green"


@dataclass(frozen=True, slots=True)
class NotRun:
    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one `[[task.verify]]` came to: its tries at the tip, and its try at the base where that was asked."""

    argv: tuple[str, ...]
    tries: tuple[Ran, ...]
    at_base: Ran | None
    wanted_red: bool
    red_at_base: tuple[str, ...] = ()
    """The changed files that alone were put onto the base, where it had to fail."""
    passes: int | Literal["all"] = 0
    timeout: int | None = None

    @property
    def was_red_at_base(self) -> bool:
        """It ended by itself, and badly: a time limit or a signal proves nothing."""
        there = self.at_base
        return there is not None and there.stop_reason == "exit_code" and there.state == "red"

    @property
    def state(self) -> State:
        states = [ran.state for ran in (*self.tries, *((self.at_base,) if self.at_base else ()))]
        for doubtful in ("cancelled", "unknown"):
            if doubtful in states:
                return doubtful
        green = bool(self.tries) and all(ran.passed for ran in self.tries)
        return "green" if green and (not self.wanted_red or self.was_red_at_base) else "red"

    @property
    def holds(self) -> bool:
        return self.state == "green"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    tip: Sha
    verdicts: tuple[Verdict, ...]
    not_run: tuple[NotRun, ...]

    @property
    def holds(self) -> bool:
        """Nothing that ran said no, and nothing that was to run did not. No checks at all is no "green"."""
        return all(verdict.holds for verdict in self.verdicts) and not self.not_run

    @property
    def green(self) -> bool:
        """There were checks, and all of them hold."""
        return self.holds and bool(self.verdicts)


@dataclass(frozen=True, slots=True)
class Ended:
    """How the run ended, and when that was settled."""

    outcome: Outcome
    at: datetime
    pull: str = ""
    """The pull request that was opened from its branch: its address, or why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What was left of the report beside the comment: where, or why it was not."""

    note: str
    status: str


@dataclass(frozen=True, slots=True)
class Closed:
    """Nothing of the run is left to do: slot, worktree and claim were given back."""

    at: datetime


AGES: dict[str, Any] = {
    "intent": Intent,
    "held": Held,
    "claim": Claim,
    "run": Run,
    "sealed": Sealed,
    "checked": Checked,
    "ended": Ended,
    "left": Left,
    "closed": Closed,
}

Step = Literal[
    "claim", "prepare", "start", "follow", "seal", "check", "publish", "give_back", "report", "leave", "close"
]


OURS = (*(f"{name}.json" for name in AGES), "report.json", "claiming", "silenced", "meddled")
"""The files that say where a run is on its way."""


class Ages:
    """The ages in one run's directory. A file that can't be read raises `codec.Unreadable`: never taken for absent.

    `hand` is told of what is written: whoever takes a run along its way has one.
    """

    def __init__(self, path: Path, hand: OwnHand | None = None) -> None:
        self.path = path
        self._hand = hand or OwnHand(path, ())

    def has(self, name: str) -> bool:
        return (self.path / f"{name}.json").exists()

    def read(self, name: str) -> Any:
        """The age of that name, or None where it has not come yet."""
        text = self._text(name)
        return None if text is None else codec.load_any(AGES[name], text)

    def _text(self, name: str) -> bytes | None:
        try:
            return read_plain(self.path / f"{name}.json")
        except OSError as problem:
            raise codec.Unreadable(str(problem)) from problem

    def need(self, name: str, kind: type[Age]) -> Age:
        """The age of that name, which must have come: the step that asks comes after the one that wrote it."""
        value = self.read(name)
        if not isinstance(value, kind):
            raise codec.Unreadable(f"{self.path / name}.json is missing")
        return value

    def write(self, name: str, value: object) -> None:
        self._hand.write(f"{name}.json", codec.dump(AGES[name], value))

    def forget(self, name: str) -> None:
        (self.path / f"{name}.json").unlink(missing_ok=True)
        self._hand.take(f"{name}.json")

    def reported(self) -> None:
        """The report was written."""
        self._hand.take("report.json")

    def put_right(self) -> list[str]:
        """Undoes what anybody else did to these files, and remembers which it was. Returns these."""
        changed = self._hand.put_right()
        if changed:
            self._hand.write("meddled", "\n".join(sorted({*self.meddled, *changed})))
        return changed

    @property
    def meddled(self) -> list[str]:
        """The files that somebody else changed."""
        try:
            return (self.path / "meddled").read_text().split()
        except FileNotFoundError:
            return []

    def reach_for_claim(self) -> None:
        """From here on the remote may hold a claim of this run, written down or not."""
        (self.path / "claiming").touch()
        self._hand.take("claiming")

    @property
    def reached_for_claim(self) -> bool:
        return (self.path / "claiming").exists()

    def silence(self) -> None:
        """From here on nothing is said of the run in public: its claim was taken away."""
        (self.path / "silenced").touch()
        self._hand.take("silenced")

    @property
    def silenced(self) -> bool:
        return (self.path / "silenced").exists()

    @property
    def report(self) -> str:
        """`report.json`: the signed envelope."""
        text = self._text("report")
        if text is None:
            raise codec.Unreadable(f"{self.path / 'report.json'} is missing")
        return text.decode("utf-8", "replace")

    @property
    def intent(self) -> Intent:
        return self.need("intent", Intent)

    @property
    def claim(self) -> Claim | None:
        return self.need("claim", Claim) if self.has("claim") else None

    @property
    def run(self) -> Run | None:
        return self.need("run", Run) if self.has("run") else None

    @property
    def ended(self) -> Ended | None:
        return self.need("ended", Ended) if self.has("ended") else None

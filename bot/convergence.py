"""Do runs converge: of the first ten that reached review since a cutover, did all end well within two fix rounds?

Membership is by creation, and waits for stragglers, so that slow or failed runs can't be left out; once all ten are
known and nothing before the tenth still runs, membership and verdict are frozen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from bot.statefiles import Broken, read_json, write_json

WANTED = 10
"""How many runs are judged. Not to be chosen: whoever may choose the sample may choose the verdict."""

FIX_ROUNDS = 2
"""How many further rounds a run may take and still converge."""

TIMEOUT_CLASSES = ("wall-clock", "did not reply", "timed out", "cold start")

ENDED_WELL = ("done", "published", "unchanged", "landed")
ENDED_BADLY = ("failed", "cancelled", "lost")
"""The states that end a run; in every other one it is live."""


class JudgedRun(NamedTuple):
    """What a run is judged from: a line of `leadsman runs --jsonl`."""

    run: str
    created_at: float
    """Seconds since 1970."""
    status: str
    reached_review: bool = False
    """The command had ended well, and its commits were there to be judged."""
    fix_rounds: int = 0
    """Rounds after the first."""
    error: str | None = None
    ended_at: float | None = None

    @property
    def live(self) -> bool:
        return self.status not in (*ENDED_WELL, *ENDED_BADLY)

    def jsonl(self) -> str:
        return json.dumps(self._asdict())


class Convergence(NamedTuple):
    """The cohort so far, and the verdict: None = pending."""

    cohort: tuple[JudgedRun, ...]
    converged: bool | None

    def as_json(self) -> dict[str, Any]:
        return {
            "runs_wanted": WANTED,
            "runs_considered": len(self.cohort),
            "cohort": [_member(run) for run in self.cohort],
            "converged_within_2_fix_rounds": self.converged,
        }


class UnreadableRuns(Exception):
    """The runs can't be read, or not all of them, so they can't be judged; the text says why."""

    def __init__(self, why: str, readable: Iterable[JudgedRun] = ()) -> None:
        super().__init__(why)
        self.readable = tuple(readable)


def judge(runs: Iterable[JudgedRun], since: float) -> Convergence:
    """The verdict on the runs created at or after `since`."""
    in_order = sorted((run for run in runs if run.created_at >= since), key=lambda run: (run.created_at, run.run))
    cohort = tuple(run for run in in_order if run.reached_review)[:WANTED]
    if len(cohort) < WANTED:
        return Convergence(cohort, None)
    tenth = in_order.index(cohort[-1])
    if any(run.live for run in in_order[: tenth + 1]):
        return Convergence(cohort, None)
    return Convergence(cohort, all(converged(run) for run in cohort))


def converged(run: JudgedRun) -> bool:
    return run.status in ENDED_WELL and run.fix_rounds <= FIX_ROUNDS and timeout_class(run.error) is None


def timeout_class(error: str | None) -> str | None:
    """The class of time-out that an error's text names, or None."""
    return next((name for name in TIMEOUT_CLASSES if name in (error or "").casefold()), None)


def _member(run: JudgedRun) -> dict[str, Any]:
    return {
        "run": run.run,
        "status": run.status,
        "created_at": run.created_at,
        "fix_rounds": run.fix_rounds,
        "timed_out": timeout_class(run.error),
        "converged": None if run.live else converged(run),
    }


class Verdicts:
    """Keeps the verdicts that are final, by cutover and by the store they were made from."""

    def __init__(self, home: Path, source: str = "") -> None:
        self._folder = home / "convergence"
        self._mark = f"-{hashlib.sha256(source.encode()).hexdigest()[:12]}" if source else ""

    def read(self, since: float) -> dict[str, Any] | None:
        """The frozen verdict of that cutover, as it was printed. Raises UnreadableRuns when it is broken."""
        kept = read_json(self._file(since))
        if isinstance(kept, Broken):
            raise UnreadableRuns(f"The verdict that was kept can't be read: {kept.why}")
        return kept

    def freeze(self, since: float, verdict: Convergence) -> None:
        """Keeps a verdict for good. Raises OSError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        write_json(self._file(since), verdict.as_json())

    def _file(self, since: float) -> Path:
        cutover = f"{since:.6f}".rstrip("0").rstrip(".")
        return self._folder / f"since-{cutover}{self._mark}.json"


def runs_of_file(path: Path) -> list[JudgedRun]:
    """The runs that `leadsman runs --jsonl` printed; of two lines about one the later counts.

    Raises UnreadableRuns, with those that can be read.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="backslashreplace").split("\n")
    except OSError as problem:
        raise UnreadableRuns(f"{path} can't be read: {problem}") from problem
    found: dict[str, JudgedRun] = {}
    wrong = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                run = _parsed(json.loads(line))
            except (ValueError, KeyError, TypeError, RecursionError) as problem:
                wrong.append(f"{path}:{number} is no run: {problem!r}")
            else:
                found[run.run] = run
    if wrong:
        more = f" ({len(wrong)} such lines)" if len(wrong) > 1 else ""
        raise UnreadableRuns(f"{wrong[0]}{more}", found.values())
    return list(found.values())


def _parsed(raw: dict[str, Any]) -> JudgedRun:
    run = JudgedRun(
        run=raw["run"],
        created_at=_moment(raw["created_at"]),
        status=raw["status"],
        reached_review=raw["reached_review"],
        fix_rounds=raw["fix_rounds"] if raw.get("fix_rounds") is not None else 0,
        error=raw.get("error"),
        ended_at=None if raw.get("ended_at") is None else _moment(raw["ended_at"]),
    )
    wanted = (str, float, str, bool, int, str if run.error is not None else type(None))
    if tuple(map(type, run[:6])) != wanted or run.fix_rounds < 0:
        raise TypeError("a field is of another type than it should be")
    return run


def _moment(value: object) -> float:
    """Seconds since 1970, from such a number or a date (RFC 3339)."""
    if isinstance(value, str):
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError("a date without a time zone")
        return moment.timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise TypeError("a moment is a number of seconds, or a date")
    return float(value)

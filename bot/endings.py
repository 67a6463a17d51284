"""What ends a run, and what its end means."""

from __future__ import annotations

from bot.words import WAITING, Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

STARTUP_GRACE, BLOCKED_GRACE, KILL_GRACE = 120.0, 60.0, 5.0
"""Seconds: until a speaking task's first word; for a blocked run to find its own way; from SIGTERM to SIGKILL."""

NEXT_ROUND, TURN_OVER = "next_round", "turn_over"
"""`stop_reason` of a run that was asked to stop after its turn, and did not by itself."""

BY_SIGNAL = "a signal"
"""`cancelled_by` of a run whose supervisor was sent SIGTERM: by somebody, or by a host that goes down."""

GRACES = {"startup_grace": STARTUP_GRACE, "blocked_grace": BLOCKED_GRACE, "kill_grace": KILL_GRACE}


def grace(spec: Mapping[str, Any], name: str) -> float:
    """A grace of the run, in seconds: its spec's, or the usual one."""
    return float(spec.get(name, GRACES[name]))


class Limits:
    """When a run has to be ended. Times are seconds of a clock that only goes forward."""

    def __init__(self, spec: Mapping[str, Any], began: float | None) -> None:
        self._spec = spec
        self.began = began
        """None while it still waits for CPU passes: until then nothing runs out."""
        self._blocked_at: float | None = None
        self._turn_ends: float | None = None
        self._last_round: int | None = None

    @property
    def deadline(self) -> float | None:
        """When its time or, where it was asked to stop after it, its turn is over; None where neither ever is."""
        limit = self._spec.get("time_limit")
        over = None if limit is None or self.began is None else self.began + float(limit)
        return min((at for at in (over, self._turn_ends) if at is not None), default=None)

    def stop_after_turn(self, turn_ends: float, round_: int | None) -> None:
        """It is asked to stop after its turn, `round_` being the last that it said it had begun. Heard again, the
        first round and the earliest end count: it can't talk itself out of it."""
        if self._turn_ends is None:
            self._turn_ends, self._last_round = turn_ends, round_
        self._turn_ends = min(self._turn_ends, turn_ends)

    def hear(self, verb: str, now: float) -> None:
        """Takes in the newest word: a run is blocked from its first word that says so until one that does not."""
        if verb not in WAITING:
            self._blocked_at = None
        elif self._blocked_at is None:
            self._blocked_at = now

    def passed(self, now: float, words: Words) -> str | None:
        """The `stop_reason` of a limit that was passed; None while there is none."""
        if self._turn_ends is not None and words.round != self._last_round:
            return NEXT_ROUND
        if self._turn_ends is not None and now >= self._turn_ends:
            return TURN_OVER
        if self.deadline is not None and now >= self.deadline:
            return "time_limit"
        silent_at = None if self.began is None else self.began + grace(self._spec, "startup_grace")
        if self._spec.get("speaks") and not words.heard and silent_at is not None and now >= silent_at:
            return "silent"
        if self._blocked_at is not None and now >= self._blocked_at + grace(self._spec, "blocked_grace"):
            return "blocked"
        return None


def meaning(spec: Mapping[str, Any], stop_reason: str | None, words: Words, code: int) -> dict[str, str | None]:
    """`state`, `stop_reason` and `error`: from who ended it, its last word and its exit code, in that order.

    `code` is negative for a signal.
    """
    match stop_reason:
        case "time_limit":
            return _ended("failed", "time_limit", f"It did not end within its time limit of {spec['time_limit']:g} s.")
        case "silent":
            within = f"{grace(spec, 'startup_grace'):g} s"
            return _ended(
                "failed", "silent", f"It said no word within its first {within}, and its task says it speaks."
            )
        case str() if stop_reason != "blocked":
            return _ended("cancelled", stop_reason, None)
    # What it says and how it ends once it is told to end, since it waited too long, is not its own choice.
    ended_for_that = stop_reason == "blocked" and (code != 0 or words.verb == "failed")
    if words.verb in WAITING or ended_for_that:
        return _ended("blocked", "blocked", words.waits_for or "It waits for a decision, and did not say which.")
    if words.verb == "failed":
        return _ended("failed", "said_failed", words.text or "Its last word was `failed`.")
    if code == 0:
        return _ended("done", "resolved" if words.verb == "resolved" else None, None)
    if code < 0:
        return _ended("failed", "signal", f"It was ended by signal {-code}.")
    return _ended("failed", "exit_code", f"It ended with exit code {code}.")


def _ended(state: str, stop_reason: str | None, error: str | None) -> dict[str, str | None]:
    return {"state": state, "stop_reason": stop_reason, "error": error}

"""The steps of a run as people read them, from what its directory noted of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from bot.dashboard.views import Step
from bot.timeline import marks

DOING: Mapping[str, str] = {
    "claim": "waiting",
    "prepare": "preparing",
    "start": "starting",
    "follow": "running",
    "seal": "collecting",
    "check": "checking",
    "publish": "publishing",
    "give_back": "tidying up",
    "report": "reporting",
    "leave": "noting",
    "close": "closing",
}
"""A step of the road -> the word for what goes on meanwhile."""

_THEN: Mapping[str, str] = {
    "claim": "prepare",
    "prepare": "start",
    "start": "follow",
    "follow": "check",
    "seal": "check",
    "check": "publish",
    "publish": "give_back",
    "give_back": "report",
    "report": "leave",
    "leave": "close",
}


def doing_after(step: str) -> str:
    """The word for what goes on once `step` (or "waiting", which is none) is done."""
    return DOING["claim"] if step == "waiting" else DOING.get(_THEN.get(step, ""), step)


def steps(folder: Path, begun: datetime, *, is_open: bool) -> tuple[Step, ...]:
    """What the run did and when; the last step of an open run goes on."""
    found, last, done = [], begun, "waiting"
    for mark in marks(folder):
        at = max(last, datetime.fromtimestamp(mark.at, UTC))
        found.append(Step(DOING.get(mark.step, mark.step), last, at))
        last, done = at, mark.step
    if is_open:
        found.append(Step(doing_after(done), last, None))
    return tuple(found)

"""Lays the steps of a run out along one line, as the bars of its timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.dashboard.views import Step

WIDTH = 1000
SLIVER = 4
"""The narrowest a bar gets, of WIDTH: a step of milliseconds is still to be seen."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A step with its place on the line; `seconds` is how long it took, or takes so far."""

    step: Step
    seconds: float
    left: int
    width: int


def chart(steps: Sequence[Step], now: datetime) -> list[Bar]:
    """One bar a step, to one scale, from the first start to the last end (or `now`, while a step goes on)."""
    if not steps:
        return []
    first = min(step.started for step in steps)
    last = max(step.ended or now for step in steps)
    scale = WIDTH / max((last - first).total_seconds(), 0.001)
    bars = []
    for step in steps:
        seconds = max(((step.ended or now) - step.started).total_seconds(), 0.0)
        width = min(WIDTH, max(SLIVER, round(seconds * scale)))
        left = min(round((step.started - first).total_seconds() * scale), WIDTH - width)
        bars.append(Bar(step, seconds, left, width))
    return bars

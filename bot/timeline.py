"""When each step of a run ended: one JSON object a line in `timeline.jsonl` of its directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bot.ages import Step
from bot.journal import append_line
from bot.statefiles import read_plain


@dataclass(frozen=True, slots=True)
class Mark:
    """A step that has ended, in seconds since 1970."""

    step: str
    at: float


class Timeline:
    """Notes steps as they end, and reads them back."""

    def __init__(self, runs_dir: Path, clock: Callable[[], float]) -> None:
        self._runs_dir = runs_dir
        self._clock = clock

    def note(self, run_id: str, step: Step, *, ended: bool) -> None:
        if ended:
            append_line(self._runs_dir / run_id / "timeline.jsonl", {"step": step, "at": round(self._clock(), 4)})


def marks(run_dir: Path) -> list[Mark]:
    """The steps in the order they ended; a line that can't be read is left out."""
    try:
        lines = (read_plain(run_dir / "timeline.jsonl") or b"").decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            raw = json.loads(line)
            found.append(Mark(str(raw["step"]), float(raw["at"])))
        except (ValueError, KeyError, TypeError):
            continue
    return found

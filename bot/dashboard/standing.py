"""How a run stands, in the words of the pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from bot.dashboard.timeline import doing_after
from bot.dashboard.views import Mood
from bot.model import Blocked, Cancelled, Failed, Lost, Outcome, Published, Unchanged
from bot.store.runs import Row

_MOODS: Mapping[str, Mood] = {
    "published": "good",
    "unchanged": "good",
    "failed": "bad",
    "lost": "bad",
    "blocked": "waiting",
    "cancelled": "quiet",
}


def standing(row: Row, outcome: Outcome | None) -> tuple[str, str, Mood]:
    """A word for it, why it is so, and the mood. `outcome` is None while there is none, or where it is not known."""
    if row.closed_at is not None:
        return _ended(row, outcome)
    if row.cancel is not None:
        return "being cancelled", f"asked for by {row.cancel}", "live"
    if row.stop_by is not None:
        return "stopping after its turn", f"asked for by {row.stop_by}", "live"
    if row.phase == "waiting":
        return "waiting", row.reason, "waiting"
    outdated = f"Its head was replaced by {row.outdated[:12]}." if row.outdated else ""
    return doing_after(row.phase), outdated or row.reason, "live"


def _ended(row: Row, outcome: Outcome | None) -> tuple[str, str, Mood]:
    if outcome is not None:
        return outcome.kind, _came_to(outcome), _MOODS[outcome.kind]
    if row.reason in _MOODS:  # its directory is on another host; the index has the one word
        return row.reason, "", _MOODS[row.reason]
    return "held", row.reason, "quiet"


def _came_to(outcome: Outcome) -> str:
    match outcome:
        case Published(tip, ref):
            return f"{tip[:12]} on {ref.removeprefix('refs/heads/')}"
        case Unchanged(why) | Lost(why):
            return why
        case Failed(stage, why):
            return f"{why} ({stage})"
        case Blocked(waits_for):
            return f"it waits for {waits_for}"
        case Cancelled(by, how):
            return f"by {by}. {how}" if how else f"by {by}"
        case unreachable:
            assert_never(unreachable)

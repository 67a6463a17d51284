"""A person took the ticket: its run is asked to stop after its turn. Until when it may go on, and what its end means.

Asking is `bot.store.runs.ask_to_stop`, in the transaction of what was decided. All the rest follows from that row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bot import wording
from bot.endings import NEXT_ROUND, TURN_OVER
from bot.model import Cancelled, Limit
from bot.store.runs import Row


@dataclass(frozen=True, slots=True)
class Asked:
    """`by` says who, and why; `until` is when its turn is over for good."""

    by: str
    at: datetime
    until: datetime


def asked_of(row: Row | None, limit: Limit) -> Asked | None:
    """What the run was asked; None where nobody did."""
    if row is None or row.stop_by is None or row.stop_at is None:
        return None
    at = datetime.fromtimestamp(row.stop_at, UTC)
    return Asked(row.stop_by, at, at + timedelta(seconds=limit.turn_seconds))


def outcome(asked: Asked, status: Mapping[str, object], limit: Limit) -> Cancelled:
    """What a run comes to of which nothing goes on any more. `status` is its last, empty where it had not begun."""
    return Cancelled(asked.by, wording.stopped(f"{asked.at:%Y-%m-%dT%H:%M:%SZ}", _how(status, limit)))


def _how(status: Mapping[str, object], limit: Limit) -> str:
    ended = f"ended by itself at {status.get('finished')}"
    match status.get("state"), status.get("stop_reason"):
        case ((None | "created"), _):
            return "its command had not begun"
        case "cancelled", str(reason) if reason == NEXT_ROUND:
            return f"it was ended when it began round {status.get('round')}"
        case "cancelled", str(reason) if reason == TURN_OVER:
            return f"it was ended when the {limit.turn_seconds} s of one turn were over"
        case "cancelled", _:
            return f"it was cancelled by {status.get('cancelled_by') or 'a signal'}"
        case "blocked", _:
            return "it was given up, since it waited for people"
        case "lost", _:
            return "it was given up, since a restart of its host had interrupted it"
        case "failed", _:
            return f"it {ended}: {str(status.get('error') or 'it failed').removesuffix('.')}"
        case _:
            return f"it {ended}"

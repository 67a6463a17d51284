"""When a command that works without a server is done: nothing is open any more but what can't start in its time."""

from __future__ import annotations

from bot import answers
from bot.store import runs
from bot.store.engine import Store

NOT_NOW = ("insufficient_cycle_time", "paused", "on_hold")
"""Reasons for which a run waits for another day: nothing that this command does would change them."""


def is_unfinished(store: Store) -> bool:
    """Whether there is still something to wait for."""
    with store.read() as connection:
        rows = runs.open_runs(connection)
        due = set(answers.due(connection))
    postponed = [row for row in rows if row.phase == "waiting" and row.reason.partition(":")[0] in NOT_NOW]
    return len(rows) > len(postponed) or not due <= {row.answer for row in postponed}

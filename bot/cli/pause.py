"""`leadsman pause`: no new runs on this host until `leadsman unpause`."""

from __future__ import annotations

import click

from bot import slots
from bot.cli.cancel import user
from bot.cli.clicked import Setting, examples
from bot.cli.pausing import changing
from bot.statefiles import time_text


@click.command(
    "pause",
    epilog=examples(
        "leadsman pause",
        note="What runs goes on, what is asked for waits; it holds through restarts of the server.",
    ),
)
@click.pass_obj
def command(setting: Setting) -> int:
    """No new runs start until `leadsman unpause`."""
    with changing(setting) as connection:
        fresh = slots.pause(connection, user(), time_text())
        pause = slots.paused(connection)
    by = f" by {pause.by} since {pause.at}" if pause is not None else ""
    print(f"New runs are paused{by}." if fresh else f"New runs were paused already{by}.")
    return 0

"""`leadsman unpause`: new runs start again."""

from __future__ import annotations

import click

from bot import slots
from bot.cli.clicked import Setting, examples
from bot.cli.pausing import changing


@click.command("unpause", epilog=examples("leadsman unpause", note="What waited starts in the order it came."))
@click.pass_obj
def command(setting: Setting) -> int:
    """New runs start again."""
    with changing(setting) as connection:
        ended = slots.unpause(connection)
    print("New runs start again." if ended else "New runs were not paused.")
    return 0

"""`leadsman doctor --repair`: the index of the runs, built anew from their directories."""

from __future__ import annotations

import sys

from bot import home
from bot.cli.clicked import Setting
from bot.errors import Unavailable, UserError
from bot.rebuilding import repair


def repaired(setting: Setting) -> int:
    """Repairs the store of the home while no server holds it. Answers 1 where a run's directory can't be read.

    Raises `HomeHeld` (4) beside a running server, `UserError` where the store is none that can be repaired here.
    """
    folder = home.make(setting.home)
    config = setting.config()
    with home.serving(folder):
        try:
            rebuilt = repair(config.store, folder)
        except Unavailable as problem:
            raise UserError(f"{problem}. Repair the database itself, with its own tools.") from problem
    print(rebuilt, file=sys.stderr if rebuilt.unreadable else sys.stdout)
    return 1 if rebuilt.unreadable else 0

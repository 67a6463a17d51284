"""`leadsman reload`: has the server of this home read its configuration anew, and says what came of it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from bot import home
from bot.errors import UsageError, UserError
from bot.serverstate import Configuration, configuration_of

USAGE = """Usage: leadsman reload

Has the server that holds the home read its configuration anew (SIGHUP). A wrong one is not taken up: the last good one
stays in force. Exit codes: 0 it was taken up, 1 it was not, or no server is there.

  leadsman reload
  leadsman --home /srv/leadsman reload
"""

PATIENCE = 30.0
"""Seconds for the server to say what came of it. What goes on is let end first."""


def main(argv: list[str]) -> int:
    if any(word in ("-h", "--help") for word in argv):
        sys.stdout.write(USAGE)
        return 0
    if argv:
        raise UsageError(f"`leadsman reload` takes no words, not `{' '.join(argv)}`.")
    folder = home.resolve(None, os.environ)
    holder = home.held_by(folder)
    if holder is None:
        raise UserError(f"No server holds {folder}. `leadsman serve` reads its configuration when it starts.")
    told_at = time.time()
    if not home.signal_holder(holder, signal.SIGHUP):
        raise UserError(f"The server of {folder} can't be told: pid {holder.pid} on {holder.host} is not it any more.")
    found = _answer(folder, told_at)
    if found is None:
        raise UserError(f"The server (pid {holder.pid}) was told, and has not answered within {PATIENCE:g} s.")
    if found.problem:
        raise UserError(f"The configuration is wrong, and the last good one stays in force: {found.problem}")
    print(f"The server (pid {holder.pid}) has read its configuration anew.")
    return 0


def _answer(folder: Path, told_at: float) -> Configuration | None:
    """What the server says of a reading that began after it was told; None where it does not in time. Another one may
    be under way, of the file as it was."""
    from bot.cli.watching import Watch
    from bot.rundir import RunDir

    until = time.monotonic() + PATIENCE
    with Watch(RunDir(folder)) as watch:
        while time.monotonic() < until:
            now = configuration_of(folder)
            if now.was_read_after(told_at):
                return now
            watch.pause()
    return None

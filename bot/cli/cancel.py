"""`leadsman cancel`: ends a run and everything it started."""

from __future__ import annotations

import os
import pwd
import sys

from bot.cli.options import read, say
from bot.cli.status import brief
from bot.liveness import end, is_over, reading, request_cancel
from bot.rundir import RunDir, find

USAGE = """Usage: leadsman cancel ID [--store DIR]

Ends the run: SIGTERM to everything it started, SIGKILL after 5 s; returns once nothing of it is alive. Exit codes:
0 it is cancelled, 1 it had ended before.

  leadsman cancel 20260105-0900
"""


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, words=(1, 1))
    if options is None:
        return 0
    run = find(options.store, options.words[0])
    status = reading(run.path)
    if not is_over(status):
        status = cancel(run)
    say(brief(status))
    if status["state"] == "cancelled":
        return 0
    if is_over(status):
        print(f"Run {run.run_id} was {status['state']} before it could be cancelled.", file=sys.stderr)
    else:
        print(f"Nothing of run {run.run_id} is alive, but {status.get('error')}. Repair that file.", file=sys.stderr)
    return 1


def cancel(run: RunDir) -> dict[str, object]:
    """Asks for the run's end in this user's name, sees to it, and answers the last reading."""
    by = f"{user()} on the command line"
    request_cancel(run.path, by)
    return end(run.path, by=by)


def user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"

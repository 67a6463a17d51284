"""`leadsman cancel`: ends a run and everything it started."""

from __future__ import annotations

import json
import os
import pwd
import sys
from collections.abc import Mapping
from contextlib import suppress

from bot.cli.options import printable, read, say
from bot.cli.status import brief
from bot.liveness import end, is_interrupted, is_over, reading, request_cancel
from bot.rundir import RunDir, find
from bot.statefiles import is_there
from bot.wake import ring

USAGE = """Usage: leadsman cancel ID [--store DIR] [--json]

Ends the run: SIGTERM to everything it started, SIGKILL after 5 s; returns once nothing of it is alive. A blocked run is
given up, and the server gives its worktree back. Exit codes: 0 it is cancelled, 1 it had ended before.

  --json   the object of status.json, as it is then

  leadsman cancel 20260105-0900
"""


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, flags=("--json",), words=(1, 1))
    if options is None:
        return 0
    run = find(options.store, options.words[0])
    status = reading(run.path)
    if not is_over(status) or _waits_for_people(run, status):
        status = cancel(run)
        ring(options.store.parent, "run", run.path.name)
    say(json.dumps(status) if "--json" in options.flags else brief(status))
    if status["state"] == "cancelled":
        return 0
    if is_over(status):
        print(f"Run {run.run_id} has ended before ({status['state']}): there is nothing to cancel.", file=sys.stderr)
    else:
        print(f"Run {run.run_id} is not cancelled: {_why_not(status)}.", file=sys.stderr)
    return 1


def _why_not(status: Mapping[str, object]) -> str:
    if status.get("supervisor") == "gone":
        return "what asks for that is part of it. It is cancelled once that has ended"
    return printable(status.get("error") or "it was started again meanwhile, so cancel it once more")


def _waits_for_people(run: RunDir, status: Mapping[str, object]) -> bool:
    """Whether it has no process, and a worktree that is kept until it is resumed or cancelled."""
    open_at_the_server = is_there(run.path / "intent.json") and not is_there(run.path / "ended.json")
    return status.get("state") == "blocked" or (open_at_the_server and is_interrupted(status))


def cancel(run: RunDir) -> dict[str, object]:
    """Asks for the run's end in this user's name, sees to it, and answers the last reading."""
    by = f"{user()} on the command line"
    with suppress(OSError):  # where nothing can be written, what is alive of it is ended all the same
        request_cancel(run.path, by)
    return end(run.path, by=by)


def user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"

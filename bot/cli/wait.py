"""`leadsman wait`: waits for a run's end."""

from __future__ import annotations

import json
import sys

from bot.cli.options import read, say
from bot.cli.status import brief
from bot.errors import UserError
from bot.liveness import is_forgotten, is_over, settled
from bot.rundir import find

USAGE = """Usage: leadsman wait ID [--store DIR] [--timeout S] [--json]

Waits until the run has ended. Exit codes: 0 done, 1 failed, blocked, cancelled or lost, 124 S seconds were not enough.

  --json   the object of status.json, as it is then

  leadsman wait 20260105-0900 --timeout 600
"""

EXIT_TIMEOUT = 124
FOREVER = 1e9


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, flags=("--json",), values=("--timeout",), words=(1, 1))
    if options is None:
        return 0
    limit = options.seconds("--timeout")
    run = find(options.store, options.words[0])
    status = settled(run.path, FOREVER if limit is None else limit)
    if is_forgotten(run.path, status):
        raise UserError(f"{run.path} was removed, and nothing of that run is alive: nobody knows how it ended.")
    say(json.dumps(status) if "--json" in options.flags else brief(status))
    if not is_over(status):
        waited = f"has not ended within {limit or 0:g} s, and was last seen {status['state']}"
        print(f"Run {run.path.name} {waited}. `leadsman logs -f {run.path.name}` shows what it does.", file=sys.stderr)
        return EXIT_TIMEOUT
    return 0 if status["state"] == "done" else 1

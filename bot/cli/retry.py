"""`leadsman retry`: starts the command of an ended run again, as a new run."""

from __future__ import annotations

from bot.cli.handoff import not_recorded, told
from bot.cli.options import read
from bot.rundir import find

USAGE = """Usage: leadsman retry ID [--store DIR] [--wait S] [--json]

Starts the command of an ended run from its beginning, as a new run with an id of its own. Refused while any of the old
one is alive. Exit codes: as `leadsman handoff`, 1 it is alive.

  leadsman retry 20260105-0900
"""


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, flags=("--json",), values=("--wait",), words=(1, 1))
    if options is None:
        return 0
    from bot import handoff

    old = find(options.store, options.words[0])
    try:
        run, record = handoff.retry(options.store, old, wait=options.seconds("--wait") or 0.0)
    except OSError as problem:
        return not_recorded(options.store, problem, options)
    return told(run, record, as_json="--json" in options.flags)

"""`leadsman resume`: starts an ended run again, where it was."""

from __future__ import annotations

from bot.cli.handoff import not_recorded, told
from bot.cli.options import read
from bot.rundir import find
from bot.wake import ring

USAGE = """Usage: leadsman resume ID [--store DIR] [--wait S] [--json]

Starts the run's command again, as its next round: same directory, same worktree, what it left is there. Refused while
any of the run is alive. Exit codes: as `leadsman handoff`, 1 it is alive.

  leadsman resume 20260105-0900
"""


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, flags=("--json",), values=("--wait",), words=(1, 1))
    if options is None:
        return 0
    from bot import handoff

    run = find(options.store, options.words[0])
    try:
        record = handoff.resume(run, wait=options.seconds("--wait") or 0.0)
    except OSError as problem:
        return not_recorded(run.path, problem, options)
    ring(options.store.parent, "run", run.path.name)  # the server, where it is a run of its own, follows it again
    return told(run, record, as_json="--json" in options.flags)

"""`leadsman retry`: starts the command of an ended run again, as a new run."""

from __future__ import annotations

from bot.cli.handoff import not_recorded, told
from bot.cli.options import read
from bot.rundir import find
from bot.statefiles import is_there

USAGE = """Usage: leadsman retry ID [--store DIR] [--wait S] [--json]

Starts the command of an ended run from its beginning, as a new run with an id of its own. Refused while any of the old
one is alive. A run of the server is asked for like with `/retry`, at the commit that the forge shows now; where no
server runs the next one starts it. Exit codes: as `leadsman handoff`, 1 it is alive or may not be started.

  leadsman retry 20260105-0900
"""


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, flags=("--json",), values=("--wait", "--config"), words=(1, 1))
    if options is None:
        return 0
    from bot import handoff

    old = find(options.store, options.words[0])
    if is_there(old.path / "intent.json"):
        handoff.refuse_alive(old)
        from bot.cli.again import ask_again

        return ask_again(old, options)
    try:
        run, record = handoff.retry(options.store, old, wait=options.seconds("--wait") or 0.0)
    except OSError as problem:
        return not_recorded(options.store, problem, options)
    return told(run, record, as_json="--json" in options.flags)

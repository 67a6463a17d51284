"""`leadsman attach`: a run's live terminal."""

from __future__ import annotations

from bot.cli.options import read
from bot.errors import UserError
from bot.liveness import is_over, reading
from bot.rundir import find
from bot.statefiles import is_there

USAGE = """Usage: leadsman attach ID [--store DIR]

Shows the run's output as it comes, in its tmux session; that of a server's run is opened now. Leave it with tmux's own
keys (Ctrl-b d); that, or closing the window, ends no run.

  leadsman attach 20260105-0900
"""


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, words=(1, 1))
    if options is None:
        return 0
    from bot.launchers import tmux

    run = find(options.store, options.words[0])
    status = reading(run.path)
    session = status.get("session")
    if not session and not is_over(status) and is_there(run.path / "intent.json"):
        session = tmux.opened_for(run)
    if is_over(status) or not session or not tmux.alive(session):
        follow = "" if is_over(status) else " -f"
        raise UserError(
            f"Run {run.run_id} ({status['state']}) has no terminal to attach to. "
            f"`leadsman logs{follow} {run.run_id}` shows its output."
        )
    return tmux.show(session)

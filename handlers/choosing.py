"""Which run a command is about, where it is about one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot import wording
from handlers import permission
from handlers.decision import Say
from handlers.record import Ask, RunRecord
from handlers.views import Runs, RunView

_START_OF_RUN_ID = re.compile(r"[0-9a-f-]{1,32}", re.ASCII)


def choose(command: RunRecord, ask: Ask, runs: Runs) -> RunView | Say:
    """The run that is meant, or what to say instead: none, several, not yours, not in the right state."""
    named = ask.arguments.word(0)
    found = _by_id(named, ask, runs) if named is not None else _without_id(command, ask, runs)
    allowed = [run for run in found if permission.check(command, ask.permission, ask.who, run) is None]
    if not allowed and (denied := permission.check(command, ask.permission, ask.who)) is not None:
        return Say(permission.explain(denied, command, ask.who), well=False)
    if not allowed:
        return Say(wording.unknown_run(named) if named else wording.no_run_here(command.purpose), well=False)
    if len(allowed) > 1:
        return Say(wording.which_run(command.name, [run.run_id for run in allowed]), well=False)
    return _in_state(command, allowed[0])


def _by_id(prefix: str, ask: Ask, runs: Runs) -> Sequence[RunView]:
    if _START_OF_RUN_ID.fullmatch(prefix) is None:
        return ()
    return [*(run for run in ask.started(runs) if run.run_id.startswith(prefix)), *runs.find(ask.on, prefix)]


def _without_id(command: RunRecord, ask: Ask, runs: Runs) -> Sequence[RunView]:
    """All open runs, or the newest that fits: an end is for one to choose, a look back is at the last."""
    mine_only = permission.check(command, ask.permission, ask.who) is not None
    if command.about in ("open", "stopped"):
        open_ones = [*runs.open_on(ask.on), *ask.started(runs)]
        return [run for run in open_ones if run.is_stopped] or open_ones if command.about == "stopped" else open_ones
    recent = [*reversed(ask.started(runs)), *runs.recent_on(ask.on)]
    fitting = [
        run
        for run in recent
        if (command.about == "any" or not run.is_open) and (not mine_only or permission.asked_for(run, ask.who))
    ]
    if not fitting and command.about == "ended":
        fitting = [run for run in recent if not mine_only or permission.asked_for(run, ask.who)]  # all under way yet
    return fitting[:1]


def _in_state(command: RunRecord, run: RunView) -> RunView | Say:
    if command.about == "open" and not run.is_open:
        return Say(wording.run_has_ended(run.run_id, run.task), well=False)
    if command.about == "ended" and run.is_open:
        return Say(wording.run_is_open(run.run_id, run.task, run.pid), well=False)
    if command.about == "stopped" and not run.is_stopped:
        return Say(_not_stopped(run), well=False)
    return run


def _not_stopped(run: RunView) -> str:
    if not run.is_open:
        return wording.run_has_ended(run.run_id, run.task)
    if run.phase in ("waiting", "claim", "prepare"):
        return wording.nothing_to_resume(run.run_id, run.task)
    return wording.run_is_open(run.run_id, run.task, run.pid)

"""`/status`: the runs here, and why they wait."""

from __future__ import annotations

from bot import wording
from bot.model import Permission
from handlers.decision import Say
from handlers.record import Ask, Record
from handlers.views import Desk, RunView


def _handle(ask: Ask, desk: Desk) -> tuple[Say, ...]:
    open_runs = [*desk.runs.open_on(ask.on), *ask.started(desk.runs)]
    ended = [run for run in desk.runs.recent_on(ask.on) if not run.is_open]
    host = desk.runs.host()
    done = (host.dispatched, host.reports)
    line = wording.host_line(
        host.held, host.slots, host.peak, host.pending, done=done, paused_by=host.paused_by, passes=host.passes
    )
    return (Say(wording.run_list([_line(run) for run in open_runs], [_line(run) for run in ended], line)),)


def _line(run: RunView) -> wording.RunLine:
    return wording.RunLine(
        run_id=run.run_id,
        task=run.task,
        phase=run.phase,
        reason=run.reason,
        position=run.position,
        asked_by=run.asked_by.login,
        head=run.intent.head,
    )


STATUS = Record(
    name="status",
    usage="/status",
    help="the runs here, their place in the queue and why they wait",
    needs=Permission.READ,
    handle=_handle,
)

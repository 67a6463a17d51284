"""`/logs`: the end of a run's log."""

from __future__ import annotations

from bot import wording
from bot.model import Permission
from handlers.arguments import Spec
from handlers.decision import Say
from handlers.record import Ask, RunRecord
from handlers.views import Desk, RunView

_LINES = 40
_MOST_LINES = 1000


def _handle(ask: Ask, desk: Desk, run: RunView) -> tuple[Say, ...]:
    asked = ask.arguments.values.get("lines", str(_LINES))
    if not (asked.isascii() and asked.isdigit() and len(asked) < 5 and 0 < int(asked) <= _MOST_LINES):
        wanted = f"a number from 1 to {_MOST_LINES}"
        return (Say(wording.bad_value("lines", asked, wanted, usage=LOGS.usage), well=False),)
    if run.host:
        return (
            Say(wording.files_elsewhere(run.run_id, run.task, run.host, f"leadsman logs {run.run_id}"), well=False),
        )
    return (Say(wording.log_tail(run.run_id, run.task, desk.runs.log_tail(run.run_id, int(asked)))),)


LOGS = RunRecord(
    name="logs",
    usage="/logs [RUN] [lines=N]",
    help="the end of a run's log; without RUN: the newest run's",
    needs=Permission.READ,
    about="any",
    purpose="to show a log of",
    takes=Spec(optional=("RUN",), keys=("lines",)),
    handle=_handle,
)

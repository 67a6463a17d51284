"""`/cancel`: ends a run, waiting or under way."""

from __future__ import annotations

from bot import wording
from bot.model import Permission
from handlers.decision import Say, Stop
from handlers.record import Ask, RunRecord
from handlers.views import Desk, RunView


def _handle(ask: Ask, desk: Desk, run: RunView) -> tuple[Stop | Say, ...]:  # noqa: ARG001
    why = wording.cancelled_in_comment(ask.line)
    return Stop(run.run_id, ask.who, why), Say(wording.stopping(run.run_id, run.task))


CANCEL = RunRecord(
    name="cancel",
    usage="/cancel [RUN]",
    help="ends a run, waiting or under way",
    needs=Permission.WRITE,
    about="open",
    purpose="to cancel",
    or_asker=True,
    handle=_handle,
)

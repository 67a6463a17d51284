"""`/resume`: starts the command of a blocked or interrupted run again, in its own worktree."""

from __future__ import annotations

from bot import wording
from bot.model import Permission
from handlers.decision import Resume, Say
from handlers.record import Ask, RunRecord
from handlers.views import Desk, RunView


def _handle(ask: Ask, desk: Desk, run: RunView) -> tuple[Resume | Say, ...]:  # noqa: ARG001
    return Resume(run.run_id, ask.who, run.starts + 1), Say(wording.resuming(run.run_id, run.task))


RESUME = RunRecord(
    name="resume",
    usage="/resume [RUN]",
    help="starts a blocked or interrupted run again, where it was",
    needs=Permission.WRITE,
    about="stopped",
    purpose="to resume",
    or_asker=True,
    handle=_handle,
)

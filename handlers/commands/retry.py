"""`/retry`: what an ended run was to do, once more, at the head that the forge shows now."""

from __future__ import annotations

import shlex

from bot import wording
from bot.model import Permission
from bot.nearest import nearest
from handlers.decision import Once, Say, Start
from handlers.record import Ask, RunRecord
from handlers.starting import Wish, head_now, notes, start
from handlers.views import Desk, RunView


def retried(ask: Ask, desk: Desk, run: RunView) -> tuple[Start | Say | Once, ...]:
    """That run's task once more, as it is configured now, with the same arguments."""
    listing = desk.tasks(ask.project)
    tasks, said = listing.tasks, notes(listing, ask.on.repo)
    known = tasks.get(run.task)  # as it is configured now: a task that was taken away does not come back this way
    if known is None:
        return (Say(wording.unknown_task(run.task, nearest(run.task, tasks), tasks), well=False), *said)
    head = head_now(ask.on, ask.project, desk.forge(ask.on.repo))
    behind = f" -- {shlex.join(run.intent.args)}" if run.intent.args else ""
    again = f"/run {run.task} sha={head.sha}{behind}"
    return (start(ask, desk, head, Wish(known, run.intent.args, None, run.intent.limit, again)), *said)


RETRY = RunRecord(
    name="retry",
    usage="/retry [RUN]",
    help="starts an ended run anew, at the head that the forge shows now; without RUN: the newest",
    needs=Permission.WRITE,
    about="ended",
    purpose="to try again",
    or_asker=True,
    handle=retried,
)

"""`/tasks`: what may be run here."""

from __future__ import annotations

from bot import wording
from bot.model import Permission
from handlers.decision import Once, Say
from handlers.record import Ask, Record
from handlers.starting import notes
from handlers.views import Desk


def _handle(ask: Ask, desk: Desk) -> tuple[Say | Once, ...]:
    listing = desk.tasks(ask.project)
    lines = [
        wording.TaskLine(name, known.task.help, known.task.difficulty, known.origin)
        for name, known in listing.tasks.items()
    ]
    return Say(wording.task_list(lines, listing.warnings)), *notes(listing, ask.on.repo)


TASKS = Record(name="tasks", usage="/tasks", help="the tasks configured here", needs=Permission.READ, handle=_handle)

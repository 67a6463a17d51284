"""`/run`: a task at the head that the forge shows now."""

from __future__ import annotations

from bot import wording
from bot.model import Permission
from bot.nearest import nearest
from handlers.arguments import Spec
from handlers.decision import Once, Say, Start
from handlers.record import Ask, Record
from handlers.starting import Wish, full_sha, head_now, notes, start
from handlers.views import Desk


def _handle(ask: Ask, desk: Desk) -> tuple[Start | Say | Once, ...]:
    asked = ask.arguments
    name = asked.words[0]
    listing = desk.tasks(ask.project)
    tasks, said = listing.tasks, notes(listing, ask.on.repo)
    known = tasks.get(name)
    if known is None:
        return (Say(wording.unknown_task(name, nearest(name, tasks), tasks), well=False), *said)
    limit = desk.limit_for(known.task, asked.values.get("difficulty"))
    head = head_now(ask.on, ask.project, desk.forge(ask.on.repo))
    given = asked.values.get("sha")
    sha = None if given is None else full_sha(given, argument="sha", usage=RUN.usage)
    if isinstance(sha, Say):
        return (sha,)
    again = f"/run {asked.as_written(sha=head.sha)}"
    return (start(ask, desk, head, Wish(known, asked.words[1:] + asked.tail, sha, limit, again)), *said)


RUN = Record(
    name="run",
    usage="/run TASK [WORDS...] [sha=<40 hex>] [difficulty=<name>] [-- WORDS...]",
    help="starts a task at the head that the forge shows now; words go to the task, those behind -- as they are",
    needs=Permission.WRITE,
    takes=Spec(needed=("TASK",), keys=("sha", "difficulty"), more=True),
    handle=_handle,
)

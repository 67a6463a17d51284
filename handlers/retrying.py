"""`leadsman retry` on a run of the server: decided like `/retry`, for somebody who may do anything on this host."""

from __future__ import annotations

import hashlib

from bot import wording
from bot.errors import Forbidden, Gone, UserError
from bot.model import BranchRef, Event, Ignored, Permission, Retried
from bot.projects import Project
from handlers.arguments import Arguments
from handlers.commands import COMMANDS
from handlers.commands.retry import retried
from handlers.decision import Answer, Decision, Obeyed, Say, Start
from handlers.record import Ask
from handlers.views import Desk, RunView

WHERE = "command line"
"""In the books, in the place of a comment's id."""


def decide_retried(event: Event, what: Retried, project: Project, desk: Desk) -> Decision | Ignored:
    """A new run as that one is now configured, answered on its thread like a run of a rule; or why not, for whoever
    reads it on a terminal."""
    repo = event.subject.repo
    once = Obeyed(repo, WHERE, event.delivery, 0)
    if desk.memory.already_obeyed(repo, once.comment_id, once.line, once.occurrence):
        return Decision((), None, (once,))  # before a crash: the run that is under way now is the one it started
    run = next((run for run in desk.runs.find(event.subject, what.run_id) if run.run_id == what.run_id), None)
    if run is None:
        return Ignored(wording.unknown_to_the_store(what.run_id))
    under_way = next((one for one in desk.runs.open_on(event.subject) if one.task == run.task), None)
    if under_way is not None:
        return Ignored(wording.under_way(under_way.run_id, under_way.task))
    key = f"retry-{hashlib.sha256(event.delivery.encode()).hexdigest()[:32]}"
    try:
        results = retried(_ask(event, run, key, project, desk), desk, run)
    except UserError as problem:
        return Ignored(problem.text)
    except (Gone, Forbidden) as problem:
        return Ignored(str(problem))
    if not any(isinstance(result, Start) for result in results):
        return Ignored(" ".join(result.text for result in results if isinstance(result, Say) and not result.well))
    answer = None if isinstance(event.subject, BranchRef) else Answer(key, event.subject, None)
    return Decision(results, answer, (once,))


def _ask(event: Event, run: RunView, key: str, project: Project, desk: Desk) -> Ask:
    return Ask(
        event=event,
        on=event.subject,
        line=f"leadsman retry {run.run_id}",
        ordinal=0,
        arguments=Arguments(),
        permission=Permission.ADMIN,
        project=project,
        made_at=event.at,
        now=desk.now(),
        answer=key,
        commands=COMMANDS,
    )

"""From an event to what is to be done about it. It reads the forge and the books, and changes nothing."""

from __future__ import annotations

import hashlib
from typing import assert_never

from bot import epoch, wording
from bot.errors import Gone
from bot.model import (
    AnyTicket,
    Claimable,
    Closed,
    Commented,
    Event,
    Ignored,
    Labeled,
    Opened,
    PullRef,
    Pushed,
    Retried,
    Updated,
)
from bot.projects import Project
from handlers import rules
from handlers.comments import decide_comment
from handlers.decision import Answer, CancelAll, Decision, MarkOutdated, Result, TakenBack
from handlers.patience import patience
from handlers.retrying import decide_retried
from handlers.starting import notes
from handlers.views import Desk


def decide(event: Event, desk: Desk) -> Decision | Ignored:
    """What to do now about `event`. The same event decided again comes to the same answer keys.

    Raises `Unavailable` where the forge did not answer, or does not know yet what the event tells: decide it again
    later. Raises `Forbidden` where the bot's token may not read what it must, and nobody is there to be told.
    """
    project = desk.project_of(event.subject.repo)
    if project is None:
        return Ignored(f"{event.subject.repo} is in no [[project]] of the configuration.")
    match event.what:
        case Commented():
            return decide_comment(event, event.what, project, desk)
        case Closed():
            return _closed(event, project, desk)
        case Retried():
            return decide_retried(event, event.what, project, desk)
        case Opened() | Pushed() | Labeled() | Updated() | Claimable():
            return _happened(event, project, desk)
        case _:
            assert_never(event.what)


def _closed(event: Event, project: Project, desk: Desk) -> Decision | Ignored:
    """Its runs end; and where the merge brought a wrong file of the repository's own, its people hear of it here."""
    if not isinstance(event.subject, PullRef):
        return Ignored("Only a pull request's end ends its runs.")
    try:
        pull = desk.forge(event.subject.repo).pull(event.subject)
    except Gone:
        return Decision((CancelAll(event.subject, wording.pull_ended(merged=False)),))
    if pull.open:
        return Ignored("The pull request is open again.")
    ended = CancelAll(event.subject, wording.pull_ended(merged=pull.merged))
    if not pull.merged:
        return Decision((ended,))
    key = f"merged-{hashlib.sha256(str(event.subject).encode()).hexdigest()[:32]}"
    said = notes(desk.tasks(project), event.subject.repo)
    return Decision((ended, *said), Answer(key, event.subject, None))


def _happened(event: Event, project: Project, desk: Desk) -> Decision | Ignored:
    """Opened, labeled, updated or pushed to: runs that it overtakes, and rules that it fires."""
    try:
        overtaken: tuple[Result, ...] = (*_outdated(event, desk), *_taken_back(event, desk))
        fired = rules.fire(event, project, desk)
    except Gone as problem:
        return Ignored(f"The forge has no such thing any more: {problem}")
    results: tuple[Result, ...] = (*overtaken, *fired.starts)
    return Decision(results, None, fired.obeyed) if results else Ignored(" ".join(fired.reasons))


def _outdated(event: Event, desk: Desk) -> tuple[MarkOutdated, ...]:
    if not isinstance(event.subject, PullRef) or not isinstance(event.what, Pushed):
        return ()
    with patience(event, desk.now()):
        head = desk.forge(event.subject.repo).pull(event.subject).head_sha
    return (MarkOutdated(event.subject, head),)


def _taken_back(event: Event, desk: Desk) -> tuple[TakenBack, ...]:
    """A person wins: whoever changes the status or the assignee of a ticket that a run of ours holds, takes it."""
    if not isinstance(event.subject, AnyTicket) or not isinstance(event.what, Updated):
        return ()
    if not (runs := desk.runs.open_on(event.subject)) or event.actor.id == desk.talk(event.subject).me().id:
        return ()
    journal = desk.ticket(event.subject).journal
    found = []
    for run in runs:
        claim = epoch.claim_of(journal, run.run_id)
        entry = epoch.taken_by_person(journal, claim) if claim is not None else None
        if entry is not None:
            found.append(
                TakenBack(run.run_id, wording.ticket_taken(entry.author.login, entry.old_status, entry.new_status))
            )
    return tuple(found)

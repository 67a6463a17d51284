"""Carries a decision out: all of it in one transaction, so that it is done once or not at all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import assert_never

import sqlalchemy as sa

from bot import answers, wording
from bot.answers import OfRun, Section, Text
from bot.dispatch import Hint
from bot.errors import Unavailable
from bot.journal import Journal
from bot.model import BranchRef, Command, Event, Held, Intent, RunId
from bot.store import books, runs
from bot.store.engine import Store
from handlers.decision import (
    Approve,
    CancelAll,
    Change,
    Decision,
    Hold,
    MarkOutdated,
    Once,
    Result,
    Resume,
    Say,
    Start,
    Stop,
    TakenBack,
    Unhold,
)


def carry_out(
    decision: Decision,
    event: Event,
    store: Store,
    journal: Journal,
    clock: Callable[[], float],
    *,
    url: Callable[[RunId], str],
) -> list[Hint]:
    """Writes down what was decided; returns what may now be ready. What was carried out before is not repeated.
    `url`: where a run can be followed.

    Raises `Unavailable` where that is so of a part alone: the event is to be decided again.
    """
    hints: list[Hint] = []
    now = clock()
    with store.write() as connection:
        news = [
            books.obey(connection, str(item.repo), item.comment_id, item.line, item.occurrence, at=now)
            for item in decision.obeyed
        ]
        if not all(news):
            if any(news):  # worked beside another delivery of the same comment: nothing of this is kept
                raise Unavailable("A part of it was obeyed meanwhile: what is left is decided anew.")
            return []
        sections: list[Section] = []
        for result in decision.results:
            section = _do(connection, result, hints, now, url)
            if section is not None:
                sections.append(section)
        if decision.answer is not None and sections:
            answer = decision.answer
            answers.begin(connection, answer.key, answer.on, sections, at=now, comment_id=answer.comment_id)
            hints.append(Hint("answer", answer.key))
    for result in decision.results:
        journal.say("decided", delivery=event.delivery, result=type(result).__name__, subject=str(event.subject))
    return hints


def _do(
    connection: sa.Connection, result: Result, hints: list[Hint], now: float, url: Callable[[RunId], str]
) -> Section | None:
    match result:
        case Say(text, well, handing):
            return Text(text, well, handing)
        case Once(repo, name, text):
            return Text(text, well=True) if books.obey(connection, str(repo), "once", name, 0, at=now) else None
        case Start(intent):
            return _start(connection, intent, hints, now, url)
        case _:
            _change(connection, result, hints, now)
            return None


def _change(connection: sa.Connection, change: Change, hints: list[Hint], now: float) -> None:
    match change:
        case Stop(run_id, by, _):
            _stop(connection, run_id, by.login, hints)
        case TakenBack(run_id, why):
            _ask_to_stop(connection, run_id, why, hints, now)
        case Resume(run_id, _, start):
            runs.ask_resume(connection, run_id, start)
            hints.append(Hint("run", run_id))
        case Hold() | Unhold() | Approve():
            _write_down(connection, change, now)
            hints.append(Hint("waiting"))
        case MarkOutdated(subject, new_head):
            _outdate(connection, str(subject), new_head, hints)
        case CancelAll(subject, why):
            for row in runs.open_runs(connection, subject=str(subject)):
                _stop(connection, row.run_id, why, hints)
            hints.append(Hint("merged"))
        case unreachable:
            assert_never(unreachable)


def _write_down(connection: sa.Connection, result: Hold | Unhold | Approve, now: float) -> None:
    match result:
        case Hold(subject, by, reason):
            books.hold(connection, str(subject), by.login, reason, now)
        case Unhold(subject, _):
            books.unhold(connection, str(subject))
        case Approve(repo, sha, by):
            books.approve(connection, str(repo), sha, by.login, now)
        case unreachable:
            assert_never(unreachable)


def _start(
    connection: sa.Connection, intent: Intent, hints: list[Hint], now: float, url: Callable[[RunId], str]
) -> Section | None:
    other = runs.add(connection, intent)
    if other is not None:
        since, link = _since(other.created_at), url(other.run_id)
        holder = Held(by=other.asked_by, since=since, run_id=other.run_id, where=other.subject, link=link)
        return Text(wording.held(holder), well=False)
    hints += [Hint("waiting"), Hint("run", intent.run_id)]  # the second one makes its directory
    part = OfRun(intent.run_id)
    if isinstance(intent.reason, Command):
        return part
    if not isinstance(intent.event.subject, BranchRef):  # a rule's run has an answer of its own
        answers.begin(connection, intent.answer, intent.event.subject, [part], at=now, comment_id=None)
        hints.append(Hint("answer", intent.answer))
    return None


def _stop(connection: sa.Connection, run_id: str, by: str, hints: list[Hint]) -> None:
    runs.ask_cancel(connection, run_id, by)
    hints.append(Hint("run", run_id))


def _ask_to_stop(connection: sa.Connection, run_id: str, why: str, hints: list[Hint], now: float) -> None:
    runs.ask_to_stop(connection, run_id, why, now)
    hints.append(Hint("run", run_id))
    if (row := runs.get(connection, run_id)) is not None:
        hints.append(Hint("answer", row.answer))


def _outdate(connection: sa.Connection, subject: str, new_head: str, hints: list[Hint]) -> None:
    for row in runs.open_runs(connection, subject=subject):
        if row.head == new_head:
            continue
        intent = runs.intent(connection, row.run_id)
        if intent is not None and intent.task.on_push == "cancel":
            _stop(connection, row.run_id, f"a push: the head is {new_head} now", hints)
        else:
            runs.note(connection, row.run_id, outdated=new_head)
            hints.append(Hint("answer", row.answer))


def _since(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

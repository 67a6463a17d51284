"""Waits until the bot has answered a comment of the local forge to the end."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import sqlalchemy as sa

from bot import codec
from bot.cli.local_desk import Desk, Subject
from bot.cli.local_shown import without_markers
from bot.cli.watching import Watch
from bot.errors import Gone
from bot.forges.local import Act
from bot.model import IssueRef, PullRef
from bot.rundir import RunDir
from bot.store.schema import answers, deliveries

STEADY = 0.4
"""Seconds that an interim text must stand to be told: the last one is settled a moment after it is said."""

SILENCE = ("", 0.0)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the bot said in the end, and whether nothing was refused and nothing failed."""

    text: str
    well: bool


@dataclass(frozen=True, slots=True)
class Interim:
    """What it says so far, since when; empty before it has said anything."""

    text: str
    since: float


def await_answer(desk: Desk, on: Subject, act: Act, deadline: float) -> Answer | None:
    """The answer, or None when it is not complete at `deadline` (`time.monotonic`). What is said meanwhile: stderr."""
    told = ""
    # SQLite's files are in the home: each change of the store is heard of. With PostgreSQL the watch's net is the beat.
    with Watch(RunDir(desk.around.home)) as watch:
        while True:
            found = look(desk, on, act)
            if isinstance(found, Answer):
                return found
            if found.text not in {"", told} and desk.around.clock() - found.since > STEADY:
                told = found.text
                print(told, file=sys.stderr, flush=True)
            if time.monotonic() >= deadline:
                return None
            watch.pause()


def look(desk: Desk, on: Subject, act: Act) -> Answer | Interim:
    """How the answer to the comment that `act` was stands."""
    mine = sa.and_(
        answers.c.subject == codec.dump(PullRef | IssueRef, act.on),
        answers.c.comment_id == act.comment_id,
    )
    came = sa.and_(deliveries.c.source == act.event.source, deliveries.c.delivery == act.event.delivery)
    with desk.around.store.read() as connection:
        # In this order: an answer is begun before its delivery is done.
        delivery = connection.execute(sa.select(deliveries.c.state, deliveries.c.note).where(came)).one_or_none()
        answer = connection.execute(sa.select(answers).where(mine)).first()
    if answer is not None:
        said = _said(on, act.on, answer.posted_id)
        if answer.due_at is None:
            return Answer(said[0] or "The bot could not write its answer.", well=answer.reaction == "rocket")
        return Interim(*said)
    if delivery is None or delivery.state == "queued":
        return Interim(*SILENCE)
    if delivery.state == "done":
        return Answer("The bot has nothing to say to this.", well=True)
    return Answer(f"The bot did not work this: {delivery.note}.", well=False)


def _said(on: Subject, ref: PullRef | IssueRef, posted_id: str | None) -> tuple[str, float]:
    """The bot's comment as people see it, and when it was written."""
    if posted_id is None:
        return SILENCE
    try:
        comment = on.forge.comment(ref, posted_id)
    except Gone:
        return SILENCE
    return without_markers(comment.body), comment.updated_at.timestamp()

"""The one comment that answers: written when something is asked, brought up to date until all of it has ended.

What it is to say is worked out anew each time from what is now, so it may be asked for at any time; what was posted
last is remembered by its digest, and our comment is found again by a hidden marker. It is edited, never doubled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from bot import codec, liveness, wording
from bot.ages import Ages
from bot.errors import Forbidden, Gone, OutOfTurn, Unavailable
from bot.forges import Reaction
from bot.journal import Journal
from bot.masking import Masking
from bot.model import Held, Intent, Published, Thread, TicketRef, Unchanged
from bot.rendering import BUDGET, render
from bot.rundir import RunDir
from bot.statement import carried, read
from bot.stopping import asked_of
from bot.store import runs, schema
from bot.store.engine import Store
from bot.talk import Handing, Talk, Talks

TRIES = 60
"""How often a comment is tried before it is given up; with the back-off that is about five hours."""

NET_SECONDS = 300.0
"""How often an answer is looked at of which nobody told any news: the net under a hint that was lost."""

AT_WORK = frozenset({"prepare", "start", "blocked", "interrupted", "follow"})
"""Phases in which a command of the run may be at work: it can write into the run's directory, and what that says of
the run's end then is not ours (`bot.ownhand`)."""

table = schema.answers.c


@dataclass(frozen=True, slots=True)
class Text:
    """A part of an answer that is said once. `well`: it is no refusal."""

    markdown: str
    well: bool
    handing: Handing | None = None
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class OfRun:
    """A part that follows a run to its end."""

    run_id: str
    kind: Literal["run"] = "run"


Section = Text | OfRun


@dataclass(frozen=True, slots=True)
class Part:
    """A section as it reads now. `well` is None while it is not settled. A part that ends with a report has it."""

    markdown: str
    well: bool | None
    marker: str = ""
    report: str = ""
    """`report.json`: what stands under `markdown` is rendered from it, into the room that there is."""


def begin(
    connection: sa.Connection,
    key: str,
    on: Thread,
    sections: Sequence[Section],
    *,
    at: float,
    comment_id: str | None,
) -> None:
    """Remembers what is to be answered, once: a key that is known keeps what it has."""
    known = connection.execute(sa.select(table.key).where(table.key == key)).first()
    if known is None:
        connection.execute(
            schema.answers.insert().values(
                key=key,
                subject=codec.dump(Thread, on),
                comment_id=comment_id,
                sections=codec.dump(tuple[Section, ...], tuple(sections)),
                due_at=at,
                created_at=at,
            )
        )


def begin_again(
    connection: sa.Connection, key: str, on: Thread, part: OfRun, *, at: float, comment_id: str | None
) -> None:
    """Remembers that `part` is to be answered, where that was forgotten. Our comment, if it is out, is looked for."""
    begin(connection, key, on, [], at=at, comment_id=comment_id)
    known = connection.execute(sa.select(table.sections).where(table.key == key)).scalar_one()
    sections: tuple[Section, ...] = codec.load_any(tuple[Section, ...], known)
    if part not in sections:
        text = codec.dump(tuple[Section, ...], (*sections, part))
        update = schema.answers.update().where(table.key == key)
        connection.execute(update.values(sections=text, due_at=at, tries=table.tries + 1))


def due(connection: sa.Connection, before: float | None = None) -> list[str]:
    """Keys of the answers that are not settled: not said, or not said to the end; `before`: of these, the ones to be
    looked at by then, though nobody told that there is news."""
    query = sa.select(table.key).where(table.due_at.is_not(None))
    if before is not None:
        query = query.where(table.due_at <= before)
    return list(connection.execute(query).scalars())


def refusals(connection: sa.Connection, since: float) -> list[Thread]:
    """Where commands were answered since then that were refused, or whose runs did not end well."""
    where = (table.created_at >= since) & (table.reaction == "confused")
    rows = connection.execute(sa.select(table.subject).where(where)).scalars()
    return [codec.load_any(Thread, subject) for subject in rows]


def ended_well(connection: sa.Connection, on: Thread, comment_id: str) -> bool:
    """Whether nothing was refused, and no run failed, of what that comment asked for last."""
    same = (table.subject == codec.dump(Thread, on)) & (table.comment_id == comment_id)
    query = sa.select(table.reaction).where(same).order_by(table.created_at.desc()).limit(1)
    return connection.execute(query).scalar() != "confused"


class Answers:
    """Brings comments up to date."""

    def __init__(
        self,
        store: Store,
        runs_dir: Path,
        talks: Talks,
        journal: Journal,
        *,
        host: str,
        masking: Masking,
        patient: bool,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._host = host
        self._patient = patient
        self._runs_dir = runs_dir
        self._talks = talks
        self._journal = journal
        self._masking = masking
        self._clock = clock

    def settle(self, key: str) -> float | None:
        """Says what there is to say now. Returns in how many seconds to try again, or None."""
        with self._store.read() as connection:
            row = connection.execute(sa.select(schema.answers).where(table.key == key)).first()
        if row is None or row.due_at is None:
            return None
        on: Thread = codec.load_any(Thread, row.subject)
        sections: tuple[Section, ...] = codec.load_any(tuple[Section, ...], row.sections)
        parts = [self._part(section) for section in sections]
        self._leave_for_others(sections, parts)
        body = self._note(sections) if isinstance(on, TicketRef) else self._body(key, parts)
        try:
            talk = self._talks.about(on)
            if not row.reaction:
                self._react(talk, on, row, "eyes")
                self._journal.say("acknowledged", answer=key, on=str(on))
            if body and _digest(body) != row.posted_digest:
                self._say(talk, on, row, body, _handing(sections))
            settled = all(part.well is not None for part in parts)
            if settled:
                well = all(part.well for part in parts)
                self._react(talk, on, row, "rocket" if well else "confused")
                self._set(key, due_at=None)
            elif row.due_at <= self._clock():
                self._set(key, due_at=self._clock() + NET_SECONDS)
        except Forbidden as problem:
            if self._patient:  # a token that is refused may be renewed
                return self._put_off(key, row.tries, Unavailable(str(problem)))
            self._give_up(key, problem)
        except Gone as problem:  # the thread is gone: nobody to tell
            self._give_up(key, problem)
        except Unavailable as problem:
            return self._put_off(key, row.tries, problem)
        return None

    def address(self, intent: Intent) -> str | None:
        """Where the comment stands that tells of a run; None where none is out yet."""
        chosen = sa.select(table.subject, table.posted_id).where(table.key == intent.answer)
        with self._store.read() as connection:
            row = connection.execute(chosen).first()
        if row is None or row.posted_id is None:
            return None
        on: Thread = codec.load_any(Thread, row.subject)
        return self._talks.about(on).comment_url(on, row.posted_id)

    def _give_up(self, key: str, problem: Exception) -> None:
        self._journal.say("unanswered", answer=key, why=str(problem))
        self._set(key, due_at=None)

    def _part(self, section: Section) -> Part:
        match section:
            case Text(markdown, well, _):
                return Part(markdown, well)
            case OfRun(run_id):
                return self._of_run(run_id)

    def _of_run(self, run_id: str) -> Part:
        ages = Ages(self._runs_dir / run_id)
        with self._store.read() as connection:
            row = runs.get(connection, run_id)
            intent = runs.intent(connection, run_id)
            position = runs.position(connection, row) if row is not None else 0
            is_far = row is not None and row.host not in ("", self._host)
            far = runs.said(connection, run_id) if is_far else None
        if row is None or intent is None:
            return Part(wording.unknown_run(run_id), well=False)
        if far is not None:
            return codec.load(Part, far)
        marker = f"<!-- leadsman run={run_id} head={intent.head} -->"
        if row.phase in AT_WORK:
            return Part(self._under_way(ages, row, intent, position), well=None, marker=marker)
        held: Held | None = ages.read("held")
        if held is not None:
            return Part(wording.held(held), well=False, marker=marker)
        if ages.silenced:
            return Part(wording.running(run_id, intent.task.name, _started(ages)), well=False, marker=marker)
        if ages.has("report") and (ended := ages.ended) is not None:
            well = isinstance(ended.outcome, Published | Unchanged)
            above = f"{wording.outdated(intent.head, row.outdated)}\n\n" if row.outdated else ""
            return Part(above, well=well, marker=marker, report=ages.report)
        return Part(self._under_way(ages, row, intent, position), well=None, marker=marker)

    def _leave_for_others(self, sections: Sequence[Section], parts: Sequence[Part]) -> None:
        """Of several runs in one comment, each host knows its own alone, and writes down what it says of them."""
        ours = {
            section.run_id: part for section, part in zip(sections, parts, strict=True) if isinstance(section, OfRun)
        }
        if len(ours) < 2:
            return
        with self._store.write() as connection:
            for run_id, part in ours.items():
                runs.say(connection, run_id, codec.dump(Part, part), host=self._host)

    def _under_way(self, ages: Ages, row: runs.Row, intent: Intent, position: int) -> str:
        if row.cancel is None and (asked := asked_of(row, intent.limit)) is not None:
            until = f"{asked.until:%Y-%m-%dT%H:%M:%SZ}"
            said = wording.asked_to_stop(row.run_id, intent.task.name, asked.by, until)
        elif row.phase in ("blocked", "interrupted") and row.cancel is None:
            tell = wording.blocked if row.phase == "blocked" else wording.interrupted
            said = tell(row.run_id, intent.task.name, row.reason)
        elif RunDir(ages.path).status.exists():
            said = wording.running(row.run_id, intent.task.name, _started(ages))
        else:
            said = wording.waiting(row.run_id, intent.task.name, row.reason, position)
        return f"{wording.outdated(intent.head, row.outdated)}\n\n{said}" if row.outdated else said

    def _body(self, key: str, parts: Sequence[Part]) -> str:
        markers = "\n".join([_marker(key), *(part.marker for part in parts if part.marker)])
        share = (BUDGET - len(markers.encode())) // max(1, len(parts)) - 200
        said = "\n\n---\n\n".join(self._said(part, share) for part in parts)
        return f"{markers}\n{said}"

    def _note(self, sections: Sequence[Section]) -> str:
        """For a tracker, whose notes are not edited, and each mailed: what is said once. What becomes of a run, its
        claim and its report tell (`bot.tickets`)."""
        said = [self._masking(section.markdown) for section in sections if isinstance(section, Text)]
        return "\n\n---\n\n".join(shortened(text, BUDGET // len(said)) for text in said)

    def _said(self, part: Part, share: int) -> str:
        """The part in `share` bytes, with the signed report that it is rendered from where there is room for both."""
        if not part.report:
            return shortened(self._masking(part.markdown), share)
        report = read(part.report).report
        shown = render(report, budget=share - len(part.markdown.encode()))
        rendered = part.markdown + shown
        whole = f"{rendered}\n{carried(part.report)}"
        # Only what can be made again from the report alone is put beside it: `verify` compares the two.
        return whole if len(whole.encode()) <= share and shown == render(report) else rendered

    def _say(self, talk: Talk, on: Thread, row: sa.Row[tuple[object, ...]], body: str, handing: Handing | None) -> None:
        ours = row.posted_id
        if ours is None and row.tries > 0:  # an earlier try may have been heard before it was remembered
            ours = self._found(talk, on, body, row.created_at)
        if ours is not None:
            try:
                talk.edit(on, ours, body)
            except Gone:
                ours = None  # somebody removed it: it is said again
        if ours is None:
            self._set(row.key, tries=row.tries + 1)
            ours = talk.hand_over(on, handing, body) if handing is not None else talk.post(on, body)
        self._set(row.key, posted_id=ours, posted_digest=_digest(body), tries=0)
        self._journal.say("answered", answer=row.key, comment=ours, on=str(on))

    def _found(self, talk: Talk, on: Thread, body: str, created_at: float) -> str | None:
        me = talk.me()
        since = datetime.fromtimestamp(created_at, UTC) - timedelta(minutes=10)
        for comment in talk.comments(on, since=since):
            if comment.author.id == me.id and talk.is_ours(comment.body, body):
                return comment.id
        return None

    def _react(self, talk: Talk, on: Thread, row: sa.Row[tuple[object, ...]], reaction: Reaction) -> None:
        """A reaction never fails a command: what can't be set is left out. It waits for its turn, though."""
        if row.comment_id is None or row.reaction == reaction:
            return
        try:
            talk.react(on, row.comment_id, reaction)
        except OutOfTurn:
            raise
        except (Gone, Forbidden, Unavailable) as problem:
            self._journal.say("no_reaction", answer=row.key, reaction=reaction, why=str(problem))
        self._set(row.key, reaction=reaction)

    def _set(self, key: str, **values: object) -> None:
        with self._store.write() as connection:
            connection.execute(schema.answers.update().where(table.key == key).values(**values))

    def _put_off(self, key: str, tries: int, problem: Unavailable) -> float | None:
        """`tries`: before this one, which counts where anything was asked."""
        counts = not isinstance(problem, OutOfTurn)
        if counts and tries >= TRIES:
            self._give_up(key, problem)
            return None
        now = self._clock()
        delay = min(300.0, 2.0 ** min(tries + 1, 9))
        if problem.retry_at is not None:
            delay = max(1.0, problem.retry_at.timestamp() - now)
        self._set(key, tries=tries + counts, due_at=now + delay)
        if counts:
            self._journal.say("answer_put_off", answer=key, tries=tries + 1, why=str(problem))
        return delay


def _handing(sections: Sequence[Section]) -> Handing | None:
    """Into whose hands the ticket goes with this answer: the last of its commands counts."""
    found = [section.handing for section in sections if isinstance(section, Text) and section.handing is not None]
    return found[-1] if found else None


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _marker(key: str) -> str:
    return f"<!-- leadsman answer={key} -->"


def _started(ages: Ages) -> str:
    return str(liveness.reading(ages.path).get("started") or "")


def shortened(text: str, most: int) -> str:
    """`text` in at most `most` bytes of UTF-8, whole lines, with a closing word where something was left out."""
    raw = text.encode()
    if len(raw) <= most:
        return text
    kept = raw[: max(0, most - 100)].decode(errors="ignore").rsplit("\n", 1)[0]
    return f"{kept}\n\n{wording.left_out(len(raw) - len(kept.encode()))}"

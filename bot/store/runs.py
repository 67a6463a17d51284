"""The index of the runs: which there are, in what order they wait, who holds which slot. Rebuilt from their folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot import codec
from bot.model import Intent, Lease, RunId
from bot.store import schema

runs = schema.runs.c
leases = schema.leases.c


NOW = 0.0
"""`due_at` of what the next sweep is to take up, on whichever host that is."""

HELD = "held by another run"
"""`reason` of a closed run that never came to hold what it asked for."""


@dataclass(frozen=True, slots=True)
class Row:
    """A run as the index shows it. `position` is its place among the waiting ones, from 1; 0 when it does not wait."""

    run_id: RunId
    project: str
    repo: str
    subject: str
    task: str
    asked_by: str
    answer: str
    head: str
    phase: str
    reason: str
    created_at: float
    cancel: str | None
    outdated: str | None
    closed_at: float | None
    resume: int | None
    """Which start of its command was asked for: 2 = the first resume."""
    due_at: float
    """Not before then is it tried again, unless something happens."""
    host: str
    """Whose it is: where its directory is. Empty until it is given a slot."""
    stop_by: str | None
    """Who asked it to stop after its turn."""
    stop_at: float | None

    @property
    def is_called_off(self) -> bool:
        """Did anybody ask for its end, now or after its turn?"""
        return self.cancel is not None or self.stop_by is not None


_ROW: tuple[Any, ...] = (  # the fields of Row, in order
    runs.run_id,
    runs.project,
    runs.repo,
    runs.subject,
    runs.task,
    runs.asked_by,
    runs.answer,
    runs.head,
    runs.phase,
    runs.reason,
    runs.created_at,
    runs.cancel,
    runs.outdated,
    runs.closed_at,
    runs.resume,
    runs.due_at,
    runs.host,
    runs.stop_by,
    runs.stop_at,
)


def _row(found: sa.Row[Any]) -> Row:
    return Row(*found)  # type: ignore[call-arg]  # the columns of _ROW are the fields of Row


def add(connection: sa.Connection, intent: Intent) -> Row | None:
    """Remembers an accepted intent as waiting; or returns the open run of the same task on the same subject."""
    subject = str(intent.event.subject)
    same = sa.select(*_ROW).where(runs.subject == subject, runs.task == intent.task.name, runs.closed_at.is_(None))
    if (found := connection.execute(same).first()) is not None:
        return _row(found)
    connection.execute(schema.runs.insert().values(_values(intent)))
    return None


def restore(connection: sa.Connection, intent: Intent, **known: object) -> bool:
    """Puts a run back into the index that it is missing from; False where it is there. `known`: further columns."""
    if get(connection, intent.run_id) is not None:
        return False
    connection.execute(schema.runs.insert().values({**_values(intent), **known}))
    return True


def _values(intent: Intent) -> dict[str, object]:
    at = intent.at.timestamp()
    return {
        "run_id": intent.run_id,
        "project": intent.project,
        "repo": str(intent.event.subject.repo),
        "subject": str(intent.event.subject),
        "task": intent.task.name,
        "asked_by": intent.event.actor.login,
        "answer": intent.answer,
        "head": intent.head,
        "intent": codec.dump(Intent, intent),
        "phase": "waiting",
        "created_at": at,
        "due_at": at,
    }


def get(connection: sa.Connection, run_id: str) -> Row | None:
    found = connection.execute(sa.select(*_ROW).where(runs.run_id == run_id)).first()
    return _row(found) if found else None


def intent(connection: sa.Connection, run_id: str) -> Intent | None:
    text = connection.execute(sa.select(runs.intent).where(runs.run_id == run_id)).scalar()
    return codec.load(Intent, text) if text else None


def last_intent(connection: sa.Connection, repo: str, *, since: float) -> Intent | None:
    """What was asked for last in a repository, and since then."""
    query = sa.select(runs.intent).where(runs.repo == repo, runs.created_at >= since)
    text = connection.execute(query.order_by(runs.created_at.desc()).limit(1)).scalar()
    return codec.load(Intent, text) if text else None


def repositories_since(connection: sa.Connection, since: float) -> set[str]:
    """The repositories in which anything was asked for since then."""
    return set(connection.execute(sa.select(runs.repo).where(runs.created_at >= since).distinct()).scalars())


def waiting(connection: sa.Connection, *, limit: int | None = None) -> Sequence[Row]:
    """The runs that wait for a slot, in the order they came: the first `limit` of them."""
    query = sa.select(*_ROW).where(runs.closed_at.is_(None), runs.phase == "waiting")
    return [_row(row) for row in connection.execute(query.order_by(runs.created_at, runs.run_id).limit(limit))]


@dataclass(frozen=True, slots=True)
class Waiting:
    """As much of a waiting run as it takes to decide whether it may start."""

    run_id: RunId
    repo: str
    subject: str
    reason: str
    answer: str


def waiting_for_a_slot(connection: sa.Connection, now: float) -> list[Waiting]:
    """The runs that wait for a slot, in the order they came, in one query; but for those that gave theirs back, until
    they are due."""
    query = sa.select(runs.run_id, runs.repo, runs.subject, runs.reason, runs.answer).where(
        runs.closed_at.is_(None), runs.phase == "waiting", (runs.tries == 0) | (runs.due_at <= now)
    )
    return [Waiting(*row) for row in connection.execute(query.order_by(runs.created_at, runs.run_id))]


def note_reasons(connection: sa.Connection, reasons: Mapping[str, str]) -> None:
    """run id -> why it waits."""
    if reasons:
        update = schema.runs.update().where(runs.run_id == sa.bindparam("of")).values(reason=sa.bindparam("why"))
        connection.execute(update, [{"of": run_id, "why": why} for run_id, why in reasons.items()])


def position(connection: sa.Connection, row: Row) -> int:
    """Its place among the waiting, from 1; 0 where it does not wait."""
    if row.closed_at is not None or row.phase != "waiting":
        return 0
    before = sa.tuple_(runs.created_at, runs.run_id) <= (row.created_at, row.run_id)
    query = sa.select(sa.func.count()).where(runs.closed_at.is_(None), runs.phase == "waiting", before)
    return connection.execute(query).scalar_one()


def pending(connection: sa.Connection) -> int:
    """How many wait for a slot."""
    query = sa.select(sa.func.count()).where(runs.closed_at.is_(None), runs.phase == "waiting")
    return connection.execute(query).scalar_one()


def begun(connection: sa.Connection) -> int:
    """How many were ever given a slot, as far as the index knows."""
    return connection.execute(sa.select(sa.func.count()).where(runs.host != "")).scalar_one()


def reported(connection: sa.Connection) -> int:
    """How many are closed with a report."""
    query = sa.select(sa.func.count()).where(runs.closed_at.is_not(None), runs.reason != HELD)
    return connection.execute(query).scalar_one()


def open_runs(connection: sa.Connection, *, subject: str | None = None, leased: bool = False) -> Sequence[Row]:
    """The runs that are not closed, the oldest first; `leased`: of these, the ones that hold a slot."""
    query = sa.select(*_ROW).where(runs.closed_at.is_(None))
    if subject is not None:
        query = query.where(runs.subject == subject)
    if leased:
        query = query.where(runs.run_id.in_(sa.select(leases.run_id)))
    return [_row(row) for row in connection.execute(query.order_by(runs.created_at, runs.run_id))]


def recent(connection: sa.Connection, *, subject: str | None = None, limit: int = 50) -> Sequence[Row]:
    """The newest runs, open or closed, newest first."""
    query = sa.select(*_ROW)
    if subject is not None:
        query = query.where(runs.subject == subject)
    return [_row(row) for row in connection.execute(query.order_by(runs.created_at.desc()).limit(limit))]


def note(connection: sa.Connection, run_id: str, **values: object) -> None:
    """Sets columns of one run."""
    connection.execute(schema.runs.update().where(runs.run_id == run_id).values(**values))


def say(connection: sa.Connection, run_id: str, part: str, *, host: str) -> None:
    """Writes down what a comment says of a run, where it is that host's."""
    connection.execute(schema.runs.update().where(runs.run_id == run_id, runs.host == host).values(part=part))


def said(connection: sa.Connection, run_id: str) -> str | None:
    """What its host wrote down; None where it never did."""
    return connection.execute(sa.select(runs.part).where(runs.run_id == run_id)).scalar()


def ask_cancel(connection: sa.Connection, run_id: str, by: str) -> None:
    """Marks the run for its end, once: the first to ask is the one that the report names."""
    update = schema.runs.update().where(runs.run_id == run_id, runs.cancel.is_(None), runs.closed_at.is_(None))
    connection.execute(update.values(cancel=by, due_at=NOW))


def ask_to_stop(connection: sa.Connection, run_id: str, by: str, at: float) -> None:
    """Marks the run for its end after its turn, once; one whose end was asked for already is left to that."""
    free = (runs.cancel.is_(None), runs.stop_by.is_(None), runs.closed_at.is_(None))
    update = schema.runs.update().where(runs.run_id == run_id, *free)
    connection.execute(update.values(stop_by=by, stop_at=at, due_at=NOW))


def ask_resume(connection: sa.Connection, run_id: str, start: int) -> None:
    """Asks for the `start`th start of its command. Asked for twice, it comes once."""
    update = schema.runs.update().where(runs.run_id == run_id, runs.closed_at.is_(None))
    connection.execute(update.values(resume=start, due_at=NOW))


@dataclass(frozen=True, slots=True)
class Taken:
    """A slot that is held."""

    lease: Lease
    run_id: RunId
    repo: str
    phase: str
    """Of the run, as the index has it; empty where the index does not know the run."""


def leased(connection: sa.Connection, *, host: str | None = None) -> Sequence[Taken]:
    """Every held slot; of that host alone, where one is named."""
    query = sa.select(leases.host, leases.slot, leases.id, leases.run_id, leases.repo, runs.phase)
    query = query.select_from(schema.leases.outerjoin(schema.runs, leases.run_id == runs.run_id))
    if host is not None:
        query = query.where(leases.host == host)
    return [
        Taken(Lease(slot, lease, of), RunId(run), repo, phase or "")
        for of, slot, lease, run, repo, phase in connection.execute(query)
    ]


def lease_of(connection: sa.Connection, run_id: str) -> Lease | None:
    query = sa.select(leases.slot, leases.id, leases.host).where(leases.run_id == run_id)
    found = connection.execute(query).first()
    return Lease(*found) if found else None


def take_slot(connection: sa.Connection, lease: Lease, run_id: str, repo: str, at: float) -> None:
    """Raises IntegrityError when the slot, or the run, already has a lease: a second holder is refused, not blocked."""
    row = {"host": lease.host, "slot": lease.slot, "id": lease.id, "run_id": run_id, "repo": repo, "at": at}
    connection.execute(schema.leases.insert().values(row))


def give_back(connection: sa.Connection, lease: Lease) -> bool:
    """Frees the slot if it still is this lease's; a late release of an old lease frees nothing."""
    same = (leases.host == lease.host) & (leases.slot == lease.slot) & (leases.id == lease.id)
    return bool(connection.execute(schema.leases.delete().where(same)).rowcount)


def adopt(connection: sa.Connection, run_id: str, host: str) -> bool:
    """Makes a run that has no slot this host's, to end it; False where it is another's by now."""
    free = schema.runs.update().where(runs.run_id == run_id, runs.host.in_(("", host)))
    return bool(connection.execute(free.values(host=host)).rowcount)


def tries(connection: sa.Connection, run_id: str) -> int:
    """How often the run's present step was put off."""
    return connection.execute(sa.select(runs.tries).where(runs.run_id == run_id)).scalar() or 0


def retrying(connection: sa.Connection) -> int:
    """How many open runs had their step put off and wait, with what they hold, to try it again."""
    query = sa.select(sa.func.count()).where(runs.closed_at.is_(None), runs.tries > 0, runs.phase != "waiting")
    return connection.execute(query).scalar_one()

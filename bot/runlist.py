"""The runs of a store as they are judged: from the index, and the directories that it is an index of."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, assert_never
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from bot.ages import Ages, Checked, Ended
from bot.codec import Unreadable
from bot.convergence import JudgedRun, UnreadableRuns
from bot.model import Blocked, Cancelled, Failed, Lost, Outcome, Published, Unchanged
from bot.rundir import RunDir, read_json
from bot.store import schema


@contextmanager
def looking_at(url: str | Path) -> Iterator[sa.Connection]:
    """A connection to a store that nothing is written to: SQLite's file, or a database's URL. Raises UnreadableRuns.

    The file must be there: it is never made, migrated or otherwise changed.
    """
    try:
        engine = sa.create_engine(url) if isinstance(url, str) else _sqlite(url)
        with engine.connect() as connection:
            yield connection
        engine.dispose()
    except (SQLAlchemyError, ImportError) as problem:
        cause = getattr(problem, "orig", None) or problem
        raise UnreadableRuns(f"The runs can't be read from the store: {str(cause).splitlines()[0]}") from problem


def _sqlite(file: Path) -> sa.Engine:
    # Without a write-ahead log nobody writes now, and SQLite may be told so: it then leaves no file beside it, either.
    log = file.with_name(f"{file.name}-wal")
    busy = log.exists() and log.stat().st_size > 0
    name = f"file:{quote(str(file.absolute()))}?mode=ro{'' if busy else '&immutable=1'}"
    connect: Callable[[], sqlite3.Connection] = lambda: sqlite3.connect(name, uri=True)  # noqa: E731
    return sa.create_engine("sqlite://", creator=connect, poolclass=NullPool)


def runs_of_store(connection: sa.Connection, runs_dir: Path) -> list[JudgedRun]:
    """Every run of the index, with what its directory says."""
    run = schema.runs.c
    rows = connection.execute(sa.select(run.run_id, run.created_at, run.closed_at))
    return [_judged(runs_dir / run_id, run_id, float(created), closed) for run_id, created, closed in rows]


def _judged(folder: Path, run_id: str, created_at: float, closed_at: float | None) -> JudgedRun:
    ages = Ages(folder)
    status: dict[str, Any] = read_json(RunDir(folder).status) or {}
    try:
        ended: Ended | None = ages.ended
        late = ended is not None and _a_check_ran_out_of_time(ages)
    except Unreadable:
        return JudgedRun(run_id, created_at, "unreadable", reached_review=ages.has("sealed"))
    outcome = ended.outcome if ended is not None else None
    return JudgedRun(
        run=run_id,
        created_at=created_at,
        status=_state(outcome, closed=closed_at is not None),
        reached_review=ages.has("sealed"),
        fix_rounds=max(0, int(status.get("round") or 1) - 1),
        error="timed out: a check did not end within its time limit" if late else _error(outcome, status),
        ended_at=closed_at or (ended.at.timestamp() if ended is not None else None),
    )


def _state(outcome: Outcome | None, *, closed: bool) -> str:
    match outcome:
        case Published() | Unchanged():
            return "done"
        case Failed() | Blocked():
            return "failed"
        case Cancelled():
            return "cancelled"
        case Lost():
            return "lost"
        case None:
            # Closed without an outcome: it never came to hold what it asked for.
            return "cancelled" if closed else "running"
        case _:
            assert_never(outcome)


def _error(outcome: Outcome | None, status: dict[str, Any]) -> str | None:
    match outcome:
        case Failed(_, why) | Lost(why):
            what = {"time_limit": "timed out: ", "silent": "did not reply: "}.get(str(status.get("stop_reason")), "")
            return f"{what}{why}"
        case Blocked(waits_for):
            return f"blocked: {waits_for}"
        case Cancelled(by):
            return f"cancelled by {by}"
        case Published() | Unchanged() | None:
            return None
        case _:
            assert_never(outcome)


def _a_check_ran_out_of_time(ages: Ages) -> bool:
    if not ages.has("checked"):
        return False
    checked = ages.need("checked", Checked)
    return any(ran.stop_reason == "time_limit" for verdict in checked.verdicts for ran in verdict.tries)

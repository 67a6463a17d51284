"""The runs of a store as they are judged: from the index, and the directories that it is an index of."""

from __future__ import annotations

import os
import sqlite3
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_never
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from bot.ages import Ages, Checked, Ended
from bot.codec import Unreadable
from bot.config import find
from bot.convergence import JudgedRun, UnreadableRuns
from bot.errors import UserError
from bot.liveness import reading
from bot.model import Blocked, Cancelled, Failed, Lost, Outcome, Published, Unchanged
from bot.rundir import RunDir, all_runs, read_json
from bot.status import sound
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
        where = "the store" if isinstance(url, str) else url  # a database's URL may hold its password
        raise UnreadableRuns(f"The runs can't be read from {where}: {str(cause).splitlines()[0]}.") from problem


def _sqlite(file: Path) -> sa.Engine:
    # Without a write-ahead log nobody writes now, and SQLite may be told so: it then leaves no file beside it, either.
    log = file.with_name(f"{file.name}-wal")
    busy = log.exists() and log.stat().st_size > 0
    name = f"file:{quote(str(file.absolute()))}?mode=ro{'' if busy else '&immutable=1'}"
    connect: Callable[[], sqlite3.Connection] = lambda: sqlite3.connect(name, uri=True)  # noqa: E731
    return sa.create_engine("sqlite://", creator=connect, poolclass=NullPool)


def own_store(house: Path, config: str | None) -> Path | str:
    """The store of a home: SQLite's file, or the URL of a database. Raises UnreadableRuns; UsageError for a `config`
    that is not there (None = the usual places).

    Nothing else of the configuration is read: its secrets may not be here.
    """
    source = find(None if config is None else Path(config), os.environ)
    try:
        url = (
            tomllib.loads(source.read_text(encoding="utf-8")).get("store", {}).get("url", "sqlite")
            if source
            else "sqlite"
        )
    except (OSError, ValueError, AttributeError) as problem:
        raise UnreadableRuns(f"{source} can't be read: {problem}") from problem
    return house / "leadsman.db" if url == "sqlite" else str(url)


def runs_of_home(store: Path | str, runs_dir: Path) -> list[JudgedRun]:
    """Every run of a home: those of its store, where there is one yet, and those that were handed off.

    Raises UnreadableRuns, with those that can be read.
    """
    indexed: list[JudgedRun] = []
    if isinstance(store, str) or store.exists():
        with looking_at(store) as connection:
            indexed = runs_of_store(connection, runs_dir)
    known = {run.run for run in indexed}
    try:
        return indexed + [_handed_off(run) for run in all_runs(runs_dir) if run.path.name not in known]
    except UserError as problem:
        raise UnreadableRuns(str(problem), indexed) from problem


def _handed_off(run: RunDir) -> JudgedRun:
    status = reading(run.path)
    why = status.get("error")
    return JudgedRun(
        run=run.path.name,
        created_at=_created_at(run.path.name),
        status=str(status.get("state")),
        fix_rounds=max(0, int(status.get("round") or 1) - 1),
        error=_error(Failed("command", str(why)), status) if why else None,
    )


def _created_at(run_id: str) -> float:
    try:
        return datetime.strptime(run_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:  # digits that are no date
        return 0.0


def runs_of_store(connection: sa.Connection, runs_dir: Path) -> list[JudgedRun]:
    """Every run of the index, with what its directory says."""
    run = schema.runs.c
    rows = connection.execute(sa.select(run.run_id, run.created_at, run.closed_at))
    return [_judged(runs_dir / run_id, run_id, float(created), closed) for run_id, created, closed in rows]


def _judged(folder: Path, run_id: str, created_at: float, closed_at: float | None) -> JudgedRun:
    ages = Ages(folder)
    status: dict[str, Any] = sound(read_json(RunDir(folder).status) or {})
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

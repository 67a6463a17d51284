"""The roll of a store's runs, for people and programs: from their directories, and the index where it can be read.

A directory is the truth of its run; the index knows what waits, in which order and why. Standard library only.
"""

from __future__ import annotations

import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from bot.liveness import reading
from bot.rundir import RunDir, all_runs, read_json
from bot.serverstate import said
from bot.statefiles import is_there

if TYPE_CHECKING:
    from typing import Any

STATES = {"published": "done", "unchanged": "done"}
"""How a run of the server ended -> the state that is; every other outcome has the state's own name."""

_QUERY = """
select run_id, subject, task, phase, reason, created_at, closed_at is null, cancel
from runs order by created_at, run_id
"""


class Line(NamedTuple):
    """A run as the roll shows it. Times are RFC 3339, UTC; empty = not yet, or not known."""

    run_id: str
    state: str
    """`waiting` before it has a slot, `held` where another has what it asked for, else a state of `status.json`."""
    round: int
    task: str
    subject: str
    """What it was asked for, `github:acme/shop#7`; empty for a command that was handed off."""
    phase: str
    position: int
    """Its place among the waiting, from 1; 0 where it does not wait."""
    reason: str
    """Why it waits, is blocked, or did not end well."""
    created: str
    started: str
    finished: str


class Entry(NamedTuple):
    """A run as the index has it."""

    subject: str
    task: str
    phase: str
    reason: str
    created_at: float
    is_open: bool
    cancel: str | None
    position: int


class Roll(NamedTuple):
    """The lines, the newest first; how many more there are; and what could not be read, empty where all could."""

    lines: list[Line]
    more: int
    trouble: str


def call(store: Path, most: int | None) -> Roll:
    """The newest `most` runs (None = all), and every one that has not ended."""
    known, trouble = index(store.parent)
    directories = {run.path.name: run for run in all_runs(store)}
    ids = [*directories, *(run_id for run_id, entry in known.items() if entry.is_open and run_id not in directories)]
    ids.sort(
        key=lambda run_id: (known[run_id].created_at if run_id in known else _seconds(run_id), run_id), reverse=True
    )
    open_ones = {run_id for run_id in ids[most:] if most is not None and run_id in known and known[run_id].is_open}
    shown = [run_id for n, run_id in enumerate(ids) if most is None or n < most or run_id in open_ones]
    lines = [_line(run_id, directories.get(run_id), known.get(run_id)) for run_id in shown]
    return Roll(lines, len(ids) - len(shown), trouble)


def index(home: Path) -> tuple[dict[str, Entry], str]:
    """What the index has, and why it could not be read; nothing, without trouble, where there is none."""
    file = home / "leadsman.db"
    if not file.exists():
        return _said(home), ""
    import sqlite3

    found: dict[str, Entry] = {}
    waiting = 0
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True)) as connection:
            for run_id, subject, task, phase, reason, created_at, is_open, cancel in connection.execute(_QUERY):
                waits = bool(is_open) and phase == "waiting"
                waiting += waits
                position = waiting if waits else 0
                found[run_id] = Entry(subject, task, phase, reason, created_at, bool(is_open), cancel, position)
    except sqlite3.Error as problem:
        return {}, f"The index {file} can't be read ({problem}), so this is from the run directories alone."
    return found, ""


def _said(home: Path) -> dict[str, Entry]:
    """What the server last said of the runs that have not ended: a store in PostgreSQL is too far for a quick look."""
    state = said(home) or {}
    found: dict[str, Entry] = {}
    for run in [*(state.get("runs") or []), *(state.get("waiting") or [])]:
        run_id, place = str(run.get("run_id")), int(run.get("position") or 0)
        found[run_id] = Entry(
            subject=str(run.get("subject") or ""),
            task=str(run.get("task") or ""),
            phase="waiting" if place else str(run.get("phase") or ""),
            reason=str(run.get("reason") or ""),
            created_at=_seconds(run_id),
            is_open=True,
            cancel=None,
            position=place,
        )
    return found


def _line(run_id: str, run: RunDir | None, entry: Entry | None) -> Line:
    status = reading(run.path) if run is not None else {}
    intent = read_json(run.path / "intent.json") if run is not None else None
    outcome = _outcome(run)
    state = _state(run, status, outcome, asked=intent is not None or run is None)
    return Line(
        run_id=run_id,
        state=state,
        round=int(status.get("round") or 1),
        task=_task(entry, intent, status),
        subject=entry.subject if entry else _subject(intent),
        phase=entry.phase if entry else "",
        position=entry.position if entry else 0,
        reason=_reason(entry, status, outcome),
        created=_moment(entry.created_at if entry else _seconds(run_id)),
        started=str(status.get("started") or ""),
        finished=str(status.get("finished") or ""),
    )


def _outcome(run: RunDir | None) -> dict[str, Any]:
    """How the server's work on it ended; empty while it has not."""
    if run is None:
        return {}
    if is_there(run.path / "held.json"):
        return {"kind": "held"}
    outcome = (read_json(run.path / "ended.json") or {}).get("outcome")
    return outcome if isinstance(outcome, dict) else {}


def _state(run: RunDir | None, status: dict[str, Any], outcome: dict[str, Any], *, asked: bool) -> str:
    if outcome:
        kind = str(outcome.get("kind"))
        return STATES.get(kind, kind)
    state = str(status.get("state") or "created")
    if not asked:
        return state
    if run is None or not is_there(run.path / "claim.json"):
        return "waiting"
    return "running" if state == "done" else state  # its checks and its publication are still to come


def _task(entry: Entry | None, intent: dict[str, Any] | None, status: dict[str, Any]) -> str:
    if entry is not None:
        return entry.task
    named = (intent or {}).get("task")
    return str(named.get("name")) if isinstance(named, dict) else str(status.get("task") or "")


def _subject(intent: dict[str, Any] | None) -> str:
    event = (intent or {}).get("event")
    subject = event.get("subject") if isinstance(event, dict) else None
    repo = subject.get("repo") if isinstance(subject, dict) else None
    if not isinstance(subject, dict) or not isinstance(repo, dict):
        return ""
    place = f"{repo.get('forge')}:{repo.get('name')}"
    return f"{place}#{subject['number']}" if "number" in subject else f"{place}@{subject.get('ref')}"


def _reason(entry: Entry | None, status: dict[str, Any], outcome: dict[str, Any]) -> str:
    for word in ("why", "waits_for"):
        if outcome.get(word):
            return str(outcome[word])
    if outcome.get("kind") == "cancelled":
        return f"by {outcome.get('by')}"
    if entry is not None and entry.is_open and (entry.reason or entry.cancel):
        return entry.reason or f"its end was asked for by {entry.cancel}"
    if entry is not None and entry.is_open and isinstance(asked := status.get("asked_to_stop"), dict):
        return f"it was asked to stop after its turn by {asked.get('by')}"
    return str(status.get("error") or status.get("stop_reason") or "")


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _seconds(run_id: str) -> float:
    """The moment in a run's id."""
    try:
        return datetime.strptime(run_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:  # digits that are no date
        return 0.0

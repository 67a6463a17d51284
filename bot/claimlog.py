"""What is claimed by runs of this host, and what became of claims: read for people, quickly. Standard library only.

What is held stands in the directories of the runs; what happened, in the store and in `events.jsonl` alike, and the
second is read where the first is in another place.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from bot.errors import UsageError, UserError
from bot.roll import index
from bot.rundir import RunDir, all_runs, read_json
from bot.statefiles import is_there

_QUERY = """
select strftime('%Y-%m-%dT%H:%M:%SZ', at, 'unixepoch'), event, key, run_id, facts
from claim_events order by id
"""

EVENTS = ("claim", "claim_lost", "release", "concede", "sweep")


class Held(NamedTuple):
    """A claim that an open run of this host holds."""

    key: str
    run_id: str
    task: str
    asked_by: str
    since: str
    phase: str
    ref: str


class Happened(NamedTuple):
    """One thing that happened to a claim. `at` is RFC 3339, UTC."""

    at: str
    event: str
    key: str
    run_id: str
    told: str
    """JSON: the rest."""

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(self.told)
        return facts


def held(store: Path) -> list[Held]:
    """The claims that are held now, the oldest first. Raises `UserError` where the runs can't be read."""
    known, _ = index(store.parent)
    found: list[Held] = []
    for run in all_runs(store):
        entry = known.get(run.path.name)
        if entry.is_open if entry is not None else not is_there(run.path / "closed.json"):
            found += _claim_of(run, entry.phase if entry is not None else "")
    return found


def _claim_of(run: RunDir, phase: str) -> Iterator[Held]:
    """Its claim; none where there is none, or none that can be read: `leadsman doctor` tells of that."""
    claim = read_json(run.path / "claim.json") or {}
    try:
        intent = claim["intent"]
        since = f"{datetime.fromisoformat(claim['at']):%Y-%m-%dT%H:%M:%SZ}"
        task, who = str(intent["task"]["name"]), str(intent["event"]["actor"]["login"])
        yield Held(str(claim["key"]), run.path.name, task, who, since, phase, str(claim["ref"]))
    except (KeyError, TypeError, ValueError):
        return


def history(home: Path, which: str) -> list[Happened]:
    """What happened to the claims of `which`, the oldest first: what is claimed (`work:7`), or a run by its id or the
    start of it. Raises `UsageError` for what nothing is known of, and for what two runs begin with."""
    events = list(_booked(home))
    exactly = [one for one in events if one.key == which]
    if exactly:
        return exactly
    runs = sorted({one.run_id for one in events if which and one.run_id.startswith(which)})
    if len(runs) > 1:
        raise UsageError(f"{which} is the start of {len(runs)} runs: {', '.join(runs)}. Give more of the id.")
    if not runs:
        raise UsageError(_unknown(which, home, {one.key for one in events}))
    return [one for one in events if one.run_id == runs[0]]


def _unknown(which: str, home: Path, keys: set[str]) -> str:
    from bot.nearest import did_you_mean

    return (
        f"Nothing is known in {home} of claims of {which}{did_you_mean(which, keys) or '.'} Name what is claimed, as "
        "`leadsman claims` shows it (work:7, github:acme/shop#7:fix), or a run."
    )


def _booked(home: Path) -> Iterable[Happened]:
    file = home / "leadsman.db"
    return _in_store(file) if file.exists() else _in_journal(home / "events.jsonl")


def _in_store(file: Path) -> list[Happened]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True)) as connection:
            return [Happened(*row) for row in connection.execute(_QUERY)]
    except sqlite3.Error as problem:
        raise UserError(f"{file} can't be read ({problem}). `leadsman doctor` says what to do.") from problem


def _in_journal(file: Path) -> Iterator[Happened]:
    try:
        lines = file.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    with lines:
        for line in lines:
            if '"key"' not in line:  # most are of other things, and are not worth a parser
                continue
            try:
                said = json.loads(line)
                at, event, key, run_id = (str(said.pop(name)) for name in ("at", "event", "key", "run"))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
            if event in EVENTS:
                yield Happened(f"{at[:19]}Z", event, key, run_id, json.dumps(said))

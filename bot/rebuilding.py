"""Builds the index of the runs anew from their directories, where the store was lost or can't be read.

What the directories don't know is salvaged from a broken SQLite file as far as it can be read: deliveries, answers,
what was obeyed. A server must not run meanwhile: the caller holds the home.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from bot import answers, statefiles
from bot.ages import Ages, Closed
from bot.answers import OfRun
from bot.codec import Unreadable
from bot.errors import Unavailable, UserError
from bot.home import own_name
from bot.invisible import made_visible
from bot.liveness import cancel_asked
from bot.model import Command, Commented, Intent, IssueRef, PullRef, TicketRef
from bot.rundir import RunDir, all_runs, read_json
from bot.slots import DISPATCHED, dispatched
from bot.store import StoreSettings, books, facts, runs, schema
from bot.store.engine import FILE, UNBUILT, Store, open_store

REPAIR = "`leadsman doctor --repair` sets a broken file aside and builds its index anew, from the run directories"

REPAIRING = f"{FILE}.repairing"
"""Beside the store while it is repaired: what the broken file is called then. A repair that was killed is finished by
the next: a server that began on the new file would leave in the old one what was queued there."""

FROM_DIRECTORIES = ("schema_version", "runs", "leases")
"""Tables that a broken file is not asked for: their truth is elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What was done."""

    runs: int
    """Runs that the index did not have."""
    leases: int
    """Slots that runs hold, and the index did not know of."""
    unreadable: tuple[Path, ...]
    """Directories of runs that nobody can read: they are left as they are."""
    set_aside: Path | None = None
    """The broken file."""
    salvaged: int = 0
    """Rows that could still be read from it."""

    def __str__(self) -> str:
        said = [f"{self.runs} runs and {self.leases} held slots were put back into the index."]
        if self.set_aside is not None:
            said.append(f"The broken file is {self.set_aside} now; {self.salvaged} rows of it could still be read.")
        if self.unreadable:
            said.append(f"Nobody can read {', '.join(map(str, self.unreadable))}: they are left as they are.")
        return " ".join(said)


def repair(settings: StoreSettings, home: Path) -> Rebuilt:
    """Sets a broken file aside, and puts back into the index what it lacks. Raises `Unavailable` where a database that
    is not ours to replace can't be used."""
    broken = _set_aside(home) if settings.url == "sqlite" else None
    store = open_store(settings, home)
    try:
        with store.write() as connection:
            salvaged = _salvage(broken, connection) if broken is not None else 0
            rebuilt = _build(connection, home)
        (home / REPAIRING).unlink(missing_ok=True)
    finally:
        store.close()
    return Rebuilt(
        runs=rebuilt.runs,
        leases=rebuilt.leases,
        unreadable=rebuilt.unreadable,
        set_aside=broken,
        salvaged=salvaged,
    )


def open_or_rebuild(settings: StoreSettings, home: Path) -> tuple[Store, Rebuilt | None]:
    """The store of a server. A missing one is empty, but for what the run directories know; one that can't be read
    raises `UserError`, each time, until it is repaired."""
    if settings.url == "sqlite" and (home / REPAIRING).exists():
        raise denied(Unavailable(f"The store {home / FILE} is half repaired"), settings)
    try:
        store = open_store(settings, home)
        with store.read() as connection:
            is_built = facts.get(connection, UNBUILT) is None
    except Unavailable as problem:
        raise denied(problem, settings) from problem
    if is_built:
        return store, None
    with store.write() as connection:
        return store, _build(connection, home)


def _build(connection: sa.Connection, home: Path) -> Rebuilt:
    rebuilt = rebuild(connection, home / "runs", own_name(home))
    facts.put(connection, DISPATCHED, str(max(dispatched(connection), runs.begun(connection))))
    facts.drop(connection, UNBUILT)
    return rebuilt


def denied(problem: Unavailable, settings: StoreSettings) -> UserError:
    """What a server says that can't start on this store, with the next step."""
    next_step = "Is the database up, and may this user connect? Look with psql at the address in [store] url."
    if settings.url == "sqlite":
        next_step = f"{REPAIR}."
    return UserError(f"{problem}. No run is started until it can be. {next_step}")


def rebuild(connection: sa.Connection, runs_dir: Path, host: str) -> Rebuilt:
    """Puts back what the index lacks of the runs that the server was asked for: rows, slots, answers, what was obeyed.

    `host`: whose directories these are."""
    added = leased = 0
    unreadable = []
    ended: list[tuple[Ages, Intent]] = []
    obeyed: Counter[tuple[str, str, str]] = Counter()
    for run in all_runs(runs_dir):
        ages = Ages(run.path)
        try:
            intent = _intent(ages)
            if intent is None:
                continue  # it was handed off
            _remember_as_obeyed(connection, intent, obeyed)
            added += _put_back(connection, ages, intent, host)
            if _holds_a_slot(ages) and not ages.has("ended"):
                leased += _lease(connection, ages, intent, host)
            elif _holds_a_slot(ages):
                ended.append((ages, intent))
        except Unreadable:
            unreadable.append(run.path)
    # A run that has ended may have given its slot back already, and another may have it: that one comes first.
    leased += sum(_lease(connection, ages, intent, host) for ages, intent in ended)
    return Rebuilt(runs=added, leases=leased, unreadable=tuple(unreadable))


def _intent(ages: Ages) -> Intent | None:
    """What was asked for: each age holds the one before, so that one broken file is not the end."""
    problem = None
    for name in ("intent", "claim", "run"):
        try:
            age = ages.read(name)
        except Unreadable as unreadable:
            problem = unreadable
            continue
        if age is not None:
            found: Intent = age if isinstance(age, Intent) else age.intent
            return found
    if problem is not None:
        raise problem
    return None


def _put_back(connection: sa.Connection, ages: Ages, intent: Intent, host: str) -> bool:
    closed: Closed | None = ages.read("closed")
    phase = _phase(ages)
    known: dict[str, object] = {"phase": phase, "cancel": cancel_asked(ages.path), **_asked_to_stop(ages.path)}
    known["host"] = "" if phase == "waiting" else host
    if closed is not None:
        ended = ages.ended
        known |= {"closed_at": closed.at.timestamp(), "reason": ended.outcome.kind if ended else runs.HELD}
    if closed is None:
        _remember_to_answer(connection, intent)
    return runs.restore(connection, intent, **known)


def _asked_to_stop(folder: Path) -> dict[str, object]:
    asked = read_json(RunDir(folder).stop) or {}
    try:
        return {"stop_by": str(asked["by"]), "stop_at": datetime.fromisoformat(str(asked["at"])).timestamp()}
    except (KeyError, ValueError):
        return {}


def _phase(ages: Ages) -> str:
    """The last step that is done, from the files it wrote."""
    done = {
        "closed": ages.has("closed"),
        "report": ages.has("report"),
        "publish": ages.has("ended"),
        "check": ages.has("checked"),
        "follow": ages.has("sealed"),
        "start": RunDir(ages.path).status.exists(),
        "prepare": ages.has("run"),
        "claim": ages.has("claim") or ages.has("held"),
    }
    return next((step for step, so in done.items() if so), "waiting")


def _remember_as_obeyed(connection: sa.Connection, intent: Intent, before: Counter[tuple[str, str, str]]) -> None:
    """So that a second delivery of the comment does not start the run once more. `before` counts equal lines."""
    what, reason = intent.event.what, intent.reason
    if isinstance(what, Commented) and isinstance(reason, Command):
        on = intent.event.subject
        same = (str(on.repo), books.name_of(on, what.comment_id), made_visible(reason.line))
        books.obey(connection, *same, before[same], at=intent.at.timestamp())
        before[same] += 1


def _remember_to_answer(connection: sa.Connection, intent: Intent) -> None:
    what, subject = intent.event.what, intent.event.subject
    if isinstance(subject, PullRef | IssueRef | TicketRef):
        comment_id = what.comment_id if isinstance(what, Commented) else None
        at = intent.at.timestamp()
        answers.begin_again(connection, intent.answer, subject, OfRun(intent.run_id), at=at, comment_id=comment_id)


def _holds_a_slot(ages: Ages) -> bool:
    """Its slot is given back before its report is written."""
    return ages.has("claim") and not ages.has("report") and not ages.has("closed")


def _lease(connection: sa.Connection, ages: Ages, intent: Intent, host: str) -> bool:
    claim = ages.claim
    held = runs.leased(connection)
    if claim is None:
        return False
    lease = replace(claim.lease, host=claim.lease.host or host)
    if any((lease.host, lease.slot) == (one.lease.host, one.lease.slot) or intent.run_id == one.run_id for one in held):
        return False
    at = claim.at.timestamp()
    runs.take_slot(connection, lease, intent.run_id, str(intent.event.subject.repo), at)
    return True


# ── the broken file ──────────────────────────────────────────────────────────────────────────────────────────────────


def is_sound(file: Path) -> bool:
    """Whether SQLite finds nothing wrong in the file; one that is missing has nothing wrong in it."""
    if not file.exists():
        return True
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            return bool(connection.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",))
    except sqlite3.Error:
        return False


def _set_aside(home: Path) -> Path | None:
    """Renames a broken file and what belongs to it, the file itself last; or finds one that a repair renamed which was
    killed. None where there is nothing wrong."""
    file, note = home / FILE, home / REPAIRING
    if note.exists():
        aside = home / note.read_text(encoding="utf-8").strip()
    elif is_sound(file):
        return None
    else:
        aside = home / f"{FILE}.broken-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
        statefiles.write_text(note, f"{aside.name}\n")
    if not aside.exists():
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                Path(f"{file}{suffix}").rename(f"{aside}{suffix}")
    return aside


def _salvage(broken: Path, connection: sa.Connection) -> int:
    """Copies what can be read of the other tables; what is there already, or does not fit, is left out."""
    count = 0
    try:
        with closing(sqlite3.connect(f"{broken.absolute().as_uri()}?mode=rw", uri=True)) as old:
            for table in schema.metadata.sorted_tables:
                if table.name not in FROM_DIRECTORIES:
                    count += sum(_copied(connection, table, row) for row in _rows(old, table))
    except sqlite3.Error:
        pass  # it can't be opened at all
    return count


def _rows(old: sqlite3.Connection, table: sa.Table) -> Iterator[dict[str, object]]:
    """The rows of a table up to the first that can't be read."""
    names = [column.name for column in table.columns]
    try:
        for row in old.execute(f"SELECT {', '.join(names)} FROM {table.name}"):  # noqa: S608  # names of our own schema
            yield dict(zip(names, row, strict=True))
    except sqlite3.Error:
        return


def _copied(connection: sa.Connection, table: sa.Table, row: dict[str, object]) -> bool:
    try:
        with connection.begin_nested():
            connection.execute(table.insert().values(row))
    except sa.exc.SQLAlchemyError:
        return False
    return True

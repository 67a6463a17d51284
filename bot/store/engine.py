"""Opens the store: one engine, short transactions, a schema that migrates itself forward."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from bot.errors import Unavailable, UserError
from bot.store import StoreSettings, facts, schema
from bot.store.migrations import STEPS

FILE = "leadsman.db"
MAGIC = b"SQLite format 3\0"
"""How the file begins: https://www.sqlite.org/fileformat.html"""

UNBUILT = "unbuilt"
"""Key in `settings`: the store was made anew, by whichever command came first, and no server has put back yet what the
directories of runs know."""

WRITER = 0x4C454144
"""The key of PostgreSQL's lock that its writers take, one after the other: "LEAD"."""

BUSY_SECONDS = 4
"""How long one writer waits for another. Writers are few (group commit) and brief; a delivery may have to wait for two
of them, and GitHub gives up on its answer after 10 s."""


class Store:
    """The one door to the database. `write()` is one transaction on disk when it returns; `read()` sees a snapshot."""

    def __init__(self, engine: sa.Engine, file: Path | None = None) -> None:
        self.engine = engine
        self._file = file
        self._line = threading.Lock() if file is not None else None
        """In which SQLite's writers of this process wait. SQLite has each look again, ever more rarely: while others
        come and go, the time of one is over, and a delivery is not taken."""
        self._snapshot = {"isolation_level": "REPEATABLE READ"} if engine.name == "postgresql" else {}
        """What makes a read see one state. SQLite's always does."""
        # Opened once, and closed after SQLite's own: whoever closes a file gives up every lock that the process has on
        # it, SQLite's, too, and the next stranger to leave takes the log away from under us.
        # https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
        self._handle: int | None = None

    @property
    def is_shared(self) -> bool:
        """Whether other hosts may serve it, too."""
        return self.engine.name == "postgresql"

    def check(self) -> None:
        """Raises `Unavailable` where SQLite's file is gone, another one, or no database any more: SQLite itself goes on
        with what it has in memory, and what it decided from that would not last."""
        if self._file is None:
            return
        try:
            if self._handle is None:
                self._handle = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
            ours, found = os.fstat(self._handle), self._file.stat()
            magic = os.pread(self._handle, len(MAGIC), 0)
        except OSError as problem:
            raise Unavailable(f"The store can't be read: {problem.strerror} ({self._file})") from problem
        if (ours.st_dev, ours.st_ino) != (found.st_dev, found.st_ino):
            raise Unavailable(f"The store can't be read: {self._file} was replaced by another file")
        if magic != MAGIC:
            raise Unavailable(f"The store can't be read: {self._file} is not a database any more")

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """One transaction: committed and flushed to disk at the end, or undone whole.

        Raises `Unavailable` when the database can't take it (locked, disk full, gone).
        """
        try:
            with self._turn(), self.engine.connect() as connection, connection.begin():
                yield connection
        except (DBAPIError, sa.exc.TimeoutError) as problem:
            raise Unavailable(f"The store can't be written: {brief(problem)}") from problem

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._line is None:
            yield
        elif self._line.acquire(timeout=BUSY_SECONDS):
            try:
                yield
            finally:
                self._line.release()
        else:
            raise Unavailable(f"The store can't be written: others have written to it for {BUSY_SECONDS} s")

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Reads. Raises `Unavailable` when the database can't be read."""
        try:
            with self.engine.connect() as connection:
                yield connection.execution_options(leadsman_read=True, **self._snapshot)
        except (DBAPIError, sa.exc.TimeoutError) as problem:
            raise Unavailable(f"The store can't be read: {brief(problem)}") from problem

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Holds `name` among all hosts of this store; yields False where another has it. Never waits.

        PostgreSQL holds it for as long as the connection lives, so a host that dies gives it back. SQLite's file has
        one server, and that one keeps its own threads apart. Raises `Unavailable`.
        """
        if not self.is_shared:
            yield True
            return
        key = int.from_bytes(sha256(name.encode()).digest()[:8], signed=True)
        try:
            with self.engine.connect() as connection:
                connection.execution_options(leadsman_read=True, isolation_level="AUTOCOMMIT")
                mine = bool(connection.execute(sa.select(sa.func.pg_try_advisory_lock(key))).scalar())
                try:
                    yield mine
                finally:
                    if mine:
                        connection.execute(sa.select(sa.func.pg_advisory_unlock(key)))
        except (DBAPIError, sa.exc.TimeoutError) as problem:
            raise Unavailable(f"The store can't be reached: {brief(problem)}") from problem

    def close(self) -> None:
        self.engine.dispose()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def open_store(settings: StoreSettings, home: Path) -> Store:
    """Opens (and makes or migrates) the store that `settings` names."""
    store = Store(_engine(settings, home), home / FILE if settings.url == "sqlite" else None)
    _migrate(store)
    store.check()
    return store


def _engine(settings: StoreSettings, home: Path) -> sa.Engine:
    return _sqlite(home / FILE) if settings.url == "sqlite" else _postgresql(settings.url)


def _postgresql(address: str) -> sa.Engine:
    try:
        url = sa.make_url(address).set(drivername="postgresql+psycopg")
        engine = sa.create_engine(
            url,
            pool_pre_ping=True,
            pool_size=8,
            max_overflow=64,
            connect_args={"connect_timeout": BUSY_SECONDS, "options": f"-c lock_timeout={BUSY_SECONDS}s"},
        )
    except sa.exc.ArgumentError as problem:
        raise UserError(f"[store] url is no address of a database: {brief(problem)}", code=2) from problem
    except ModuleNotFoundError as problem:
        raise UserError(
            "A store in PostgreSQL needs its driver, which is not installed here. "
            "Install it beside Leadsman: pip install 'leadsman[postgresql]'",
            code=2,
        ) from problem
    sa.event.listen(engine, "begin", _one_writer)
    return engine


def _one_writer(connection: sa.Connection) -> None:
    """One writer at a time, as with SQLite, whichever host it is on: what a transaction looked at is still so when it
    writes. Each statement behind the lock sees what the writer before has committed."""
    if not connection.get_execution_options().get("leadsman_read"):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITER})")


def _sqlite(file: Path) -> sa.Engine:
    engine = sa.create_engine(
        f"sqlite:///{file}",
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
        pool_size=8,
        max_overflow=64,
    )
    sa.event.listen(engine, "connect", _pragmas)
    sa.event.listen(engine, "begin", _begin_immediate)
    return engine


def _pragmas(raw: Any, _record: object) -> None:
    # The driver must not open transactions by itself: a transaction that starts with a read and then writes fails at
    # once when another writer came in between, whatever the busy time-out says. So every one starts as a writer.
    raw.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-8192"):
        raw.execute(f"PRAGMA {pragma}")


def _begin_immediate(connection: sa.Connection) -> None:
    reading = connection.get_execution_options().get("leadsman_read")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _migrate(store: Store) -> None:
    with store.write() as connection:
        if not sa.inspect(connection).has_table("schema_version"):
            schema.metadata.create_all(connection)
            connection.execute(schema.schema_version.insert().values(version=schema.VERSION))
            facts.put(connection, UNBUILT, "since it was made")
            return
        found = connection.execute(sa.select(schema.schema_version.c.version)).scalar_one()
        if found > schema.VERSION:
            raise UserError(
                f"The store was written by a newer Leadsman (schema {found}, this one knows {schema.VERSION}). "
                "Start the newer version, or restore the store's backup of the older one."
            )
        for version in range(found, schema.VERSION):
            STEPS[version](connection)
        if found < schema.VERSION:
            connection.execute(schema.schema_version.update().values(version=schema.VERSION))


def brief(problem: Exception) -> str:
    """What went wrong, as the driver says it, in a line."""
    cause = getattr(problem, "orig", None) or problem
    return str(cause).splitlines()[0][:200]

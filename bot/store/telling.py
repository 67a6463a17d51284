"""Tells the other hosts of a shared store that something may be ready, through the database. Hints only: what is not
heard is found by their sweeps."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from bot.errors import Unavailable
from bot.store.engine import Store, brief

log = logging.getLogger(__name__)

CHANNEL = "leadsman"
AGAIN_SECONDS = 5.0
"""How long a database that is away is left alone; and how often a listener looks whether it is to stop."""


class Telling:
    """One host's mouth and ear. A store that nobody shares has nobody to tell."""

    def __init__(self, store: Store, me: str, heard: Callable[[str, str], None]) -> None:
        """`heard(kind, key)` is called for what another host tells, in a thread of its own."""
        self._store = store
        self._me = me
        self._heard = heard
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="telling", daemon=True)

    def start(self) -> None:
        if self._store.is_shared:
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()  # and is not waited for: it has nothing to finish

    def tell(self, kind: str, key: str = "") -> None:
        if not self._store.is_shared:
            return
        try:
            with self._at_once() as connection:
                connection.execute(sa.select(sa.func.pg_notify(CHANNEL, f"{self._me}\n{kind}\n{key}")))
        except (DBAPIError, sa.exc.TimeoutError) as problem:
            log.warning("The other hosts could not be told of %s %s: %s", kind, key, brief(problem))

    def _at_once(self) -> sa.Connection:
        return self._store.engine.connect().execution_options(leadsman_read=True, isolation_level="AUTOCOMMIT")

    def _listen(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._at_once() as connection:
                    connection.exec_driver_sql(f"LISTEN {CHANNEL}")
                    self._heard("sweep", "")  # what was told while nobody listened
                    self._follow(connection.connection.driver_connection)
                    connection.invalidate()  # it goes on listening: nobody else is to be given it
            except (Unavailable, DBAPIError, sa.exc.TimeoutError, self._raw()) as problem:
                log.warning("The other hosts can't be heard: %s", brief(problem))
                self._stopping.wait(AGAIN_SECONDS)

    def _raw(self) -> type[Exception]:
        """What the driver itself raises, past SQLAlchemy."""
        raw: type[Exception] = self._store.engine.dialect.loaded_dbapi.Error
        return raw

    def _follow(self, driver: Any) -> None:
        while not self._stopping.is_set():
            for notice in driver.notifies(timeout=AGAIN_SECONDS):
                who, _, what = notice.payload.partition("\n")
                kind, _, key = what.partition("\n")
                if who != self._me and not self._stopping.is_set():
                    self._heard(kind, key)

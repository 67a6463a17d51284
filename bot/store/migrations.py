"""One function a step: `STEPS[n]` brings a store of schema n to n + 1, with its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlalchemy as sa


def _resume(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN resume INTEGER")


def _claim_events(connection: sa.Connection) -> None:
    connection.exec_driver_sql(
        "CREATE TABLE claim_events (id INTEGER PRIMARY KEY, at FLOAT NOT NULL, event TEXT NOT NULL, "
        "key TEXT NOT NULL, run_id TEXT NOT NULL, facts TEXT NOT NULL)"
    )
    connection.exec_driver_sql("CREATE INDEX claim_events_key ON claim_events (key, id)")


def _stop(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN stop_by TEXT")
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN stop_at FLOAT")


STEPS: Mapping[int, Callable[[sa.Connection], None]] = {1: _resume, 2: _claim_events, 3: _stop}

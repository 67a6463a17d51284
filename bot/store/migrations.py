"""One function a step: `STEPS[n]` brings a store of schema n to n + 1, with its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlalchemy as sa


def _resume(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN resume INTEGER")


def _claim_events(connection: sa.Connection) -> None:
    connection.exec_driver_sql(
        "CREATE TABLE claim_events (id INTEGER NOT NULL PRIMARY KEY, at FLOAT NOT NULL, event TEXT NOT NULL, "
        "key TEXT NOT NULL, run_id TEXT NOT NULL, facts TEXT NOT NULL)"
    )
    connection.exec_driver_sql("CREATE INDEX claim_events_key ON claim_events (key, id)")


def _stop(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN stop_by TEXT")
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN stop_at FLOAT")


def _hosts(connection: sa.Connection) -> None:
    """Slots become those of a host. Those that are held are nameless, until the host that serves names them its own
    (`bot.store.hosts.join`): which one that is, its home knows."""
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN host TEXT NOT NULL DEFAULT ''")
    connection.exec_driver_sql(
        "CREATE TABLE hosts (name TEXT NOT NULL PRIMARY KEY, slots INTEGER NOT NULL, load FLOAT, "
        "most_load FLOAT NOT NULL, seen_at FLOAT NOT NULL)"
    )
    connection.exec_driver_sql("ALTER TABLE leases RENAME TO leases_before")
    connection.exec_driver_sql(
        "CREATE TABLE leases (host TEXT NOT NULL, slot TEXT NOT NULL, id TEXT NOT NULL, run_id TEXT NOT NULL UNIQUE, "
        "repo TEXT NOT NULL, at FLOAT NOT NULL, PRIMARY KEY (host, slot))"
    )
    connection.exec_driver_sql(
        "INSERT INTO leases (host, slot, id, run_id, repo, at) SELECT '', slot, id, run_id, repo, at FROM leases_before"
    )
    connection.exec_driver_sql("DROP TABLE leases_before")


def _local_events(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE local_comments ADD COLUMN event TEXT NOT NULL DEFAULT ''")


def _shared(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN part TEXT")
    connection.exec_driver_sql("ALTER TABLE hosts ADD COLUMN home TEXT NOT NULL DEFAULT ''")


STEPS: Mapping[int, Callable[[sa.Connection], None]] = {
    1: _resume,
    2: _claim_events,
    3: _stop,
    4: _hosts,
    5: _local_events,
    6: _shared,
}

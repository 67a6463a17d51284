"""A store that an earlier version wrote is brought up to date when it is opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bot.store import StoreSettings, schema
from bot.store.engine import FILE, open_store

UNDO = {
    3: "ALTER TABLE runs DROP COLUMN stop_by; ALTER TABLE runs DROP COLUMN stop_at",
    2: "DROP TABLE claim_events",
    1: "ALTER TABLE runs DROP COLUMN resume",
}
"""Schema -> what makes one of the next schema into it."""


def shape(file: Path) -> dict[str, set[str]]:
    with sqlite3.connect(file) as connection:
        names = [
            name for (name,) in connection.execute("select name from sqlite_master where type in ('table', 'index')")
        ]
        return {name: {row[1] for row in connection.execute(f"pragma table_info({name})")} for name in names}


@pytest.mark.parametrize("version", range(1, schema.VERSION))
def test_a_store_of_an_earlier_schema_becomes_one_of_the_present(tmp_path: Path, version: int) -> None:
    open_store(StoreSettings(), tmp_path).close()
    present = shape(tmp_path / FILE)
    with sqlite3.connect(tmp_path / FILE) as connection:
        for earlier in range(schema.VERSION - 1, version - 1, -1):
            connection.executescript(UNDO[earlier])
        connection.execute("update schema_version set version = ?", (version,))
    assert present != shape(tmp_path / FILE)
    open_store(StoreSettings(), tmp_path).close()
    assert present == shape(tmp_path / FILE)

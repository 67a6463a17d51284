"""SQLite's locks stay in force: another process that looks at the store and leaves takes nothing away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bot.store import StoreSettings, schema
from bot.store.engine import open_store

STRANGER = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as connection:
    connection.execute("select * from settings").fetchall()
connection.close()
"""


def test_a_check_of_the_file_keeps_the_stores_locks(tmp_path: Path) -> None:
    store = open_store(StoreSettings(), tmp_path)
    try:
        for n in range(3):
            with store.write() as connection:
                connection.execute(schema.settings.insert().values(key=f"k{n}", value="v"))
            store.check()
            subprocess.run([sys.executable, "-c", STRANGER, tmp_path / "leadsman.db"], check=True)
            assert (tmp_path / "leadsman.db-shm").exists()
        with store.read() as connection:
            assert len(connection.execute(schema.settings.select()).all()) == 3
    finally:
        store.close()

"""SQLite's locks stay in force: another process that looks at the store and leaves takes nothing away."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import sqlalchemy as sa

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
            assert {"k0", "k1", "k2"} <= set(connection.execute(sa.select(schema.settings.c.key)).scalars())
    finally:
        store.close()


def test_writers_of_one_process_wait_in_line_and_do_not_try_until_their_time_is_over(tmp_path: Path) -> None:
    store = open_store(StoreSettings(), tmp_path)
    sa.event.listen(store.engine, "checkout", lambda raw, *_: raw.execute("PRAGMA busy_timeout=0"))
    written = threading.Event()

    def write() -> None:
        with store.write() as connection:
            connection.execute(schema.settings.insert().values(key="second", value="v"))
        written.set()

    try:
        with store.write() as connection:
            connection.execute(schema.settings.insert().values(key="first", value="v"))
            second = threading.Thread(target=write)
            second.start()
            second.join(0.3)
            assert not written.is_set()
        assert written.wait(60)
        second.join()
    finally:
        store.close()

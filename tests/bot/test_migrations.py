"""A store of an older Leadsman is brought forward with all that it holds, and is then like a new one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bot.home import called, own_name
from bot.model import Lease
from bot.store import StoreSettings, hosts, runs, schema
from bot.store.engine import FILE, open_store
from bot.store.hosts import HostRow

OLD = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (1);
CREATE TABLE runs (
    run_id TEXT NOT NULL, project TEXT NOT NULL, repo TEXT NOT NULL, subject TEXT NOT NULL, task TEXT NOT NULL,
    asked_by TEXT NOT NULL, answer TEXT NOT NULL, head TEXT NOT NULL, intent TEXT NOT NULL, phase TEXT NOT NULL,
    reason TEXT DEFAULT '' NOT NULL, created_at FLOAT NOT NULL, due_at FLOAT NOT NULL,
    tries INTEGER DEFAULT '0' NOT NULL, cancel TEXT, outdated TEXT, closed_at FLOAT, PRIMARY KEY (run_id)
);
CREATE INDEX runs_open ON runs (closed_at, due_at);
CREATE INDEX runs_subject ON runs (subject);
CREATE TABLE leases (
    slot TEXT NOT NULL, id TEXT NOT NULL, run_id TEXT NOT NULL, repo TEXT NOT NULL, at FLOAT NOT NULL,
    PRIMARY KEY (slot), UNIQUE (run_id)
);
CREATE TABLE local_comments (
    id INTEGER NOT NULL, forge TEXT NOT NULL, repo TEXT NOT NULL, number INTEGER NOT NULL, author TEXT NOT NULL,
    body TEXT NOT NULL, created_at FLOAT NOT NULL, updated_at FLOAT NOT NULL, reactions TEXT DEFAULT '[]' NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX local_comments_thread ON local_comments (forge, repo, number);
INSERT INTO runs (run_id, project, repo, subject, task, asked_by, answer, head, intent, phase, created_at, due_at,
    closed_at) VALUES
    ('20260105-090000-aaaaaa', 'p', 'r', 's', 't', 'alice', 'a', 'h', '{}', 'start', 1, 1, NULL),
    ('20260105-090000-bbbbbb', 'p', 'r', 's', 't', 'alice', 'a', 'h', '{}', 'waiting', 2, 2, NULL),
    ('20260105-090000-cccccc', 'p', 'r', 's', 't', 'alice', 'a', 'h', '{}', 'closed', 0, 0, 3);
INSERT INTO leases VALUES ('wt-2', 'id', '20260105-090000-aaaaaa', 'r', 5);
"""
"""The first schema, as far as a step since then has touched it, with a run that holds a slot."""

TOUCHED = ("schema_version", "runs", "leases", "local_comments")
"""Tables of the first schema; and what a step has made since then, it makes."""
MADE = ("claim_events", "hosts")


def shape(file: Path) -> dict[str, object]:
    """table -> its columns with type, whether they may be empty, default and place in the key; its indexes."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
        return {
            table: (
                sorted(row[1:] for row in connection.execute(f"pragma table_info({table})")),
                sorted(
                    (bool(unique), tuple(name for _, _, name in connection.execute(f"pragma index_info({index})")))
                    for _, index, unique, *_ in connection.execute(f"pragma index_list({table})")
                ),
            )
            for table in tables
        }


UNDO = {
    6: "ALTER TABLE hosts DROP COLUMN home; ALTER TABLE runs DROP COLUMN part",
    5: "ALTER TABLE local_comments DROP COLUMN event",
    4: "DROP TABLE hosts; ALTER TABLE runs DROP COLUMN host; DROP TABLE leases; CREATE TABLE leases ("
    "slot TEXT NOT NULL PRIMARY KEY, id TEXT NOT NULL, run_id TEXT NOT NULL UNIQUE, repo TEXT NOT NULL, "
    "at FLOAT NOT NULL)",
    3: "ALTER TABLE runs DROP COLUMN stop_by; ALTER TABLE runs DROP COLUMN stop_at",
    2: "DROP TABLE claim_events",
    1: "ALTER TABLE runs DROP COLUMN resume",
}
"""Schema -> what makes one of the next schema into it."""


@pytest.mark.parametrize("version", range(1, schema.VERSION))
def test_a_store_of_an_earlier_schema_becomes_one_of_the_present(tmp_path: Path, version: int) -> None:
    open_store(StoreSettings(), tmp_path).close()
    present = shape(tmp_path / FILE)
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        for earlier in range(schema.VERSION - 1, version - 1, -1):
            connection.executescript(UNDO[earlier])
        connection.execute("update schema_version set version = ?", (version,))
        connection.commit()
    assert present != shape(tmp_path / FILE)
    open_store(StoreSettings(), tmp_path).close()
    assert present == shape(tmp_path / FILE)


def test_a_store_of_the_first_schema_becomes_like_a_new_one_and_its_runs_keep_their_slots(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    with closing(sqlite3.connect(old / FILE)) as connection:
        connection.executescript(OLD)
    store = open_store(StoreSettings(), old)
    store.close()
    store = open_store(StoreSettings(), old)  # and again: what is brought forward is left alone
    open_store(StoreSettings(), new).close()
    fresh = shape(new / FILE)
    assert {name: fresh[name] for name in (*TOUCHED, *MADE)} == shape(old / FILE)
    held, waits, ended = (f"20260105-090000-{letter * 6}" for letter in "abc")
    with store.write() as connection:
        assert schema.VERSION == connection.execute(schema.schema_version.select()).scalar_one()
        assert Lease("wt-2", "id", "") == runs.lease_of(connection, held)
        hosts.join(connection, HostRow("here", 4, None, 2.0, 100.0))
    with store.write() as connection:
        assert Lease("wt-2", "id", "here") == runs.lease_of(connection, held)
        rows = {row.run_id: row.host for row in runs.recent(connection)}
        assert {held: "here", waits: "", ended: ""} == rows
        assert runs.give_back(connection, Lease("wt-2", "id", "here"))
    store.close()


def test_a_home_keeps_its_servers_name(tmp_path: Path) -> None:
    first = called(tmp_path)
    assert first == called(tmp_path)
    assert [*first] == (tmp_path / "host").read_text().splitlines()
    (tmp_path / "host").write_text("build-7\n")
    second = called(tmp_path)
    assert "build-7" == second.name == own_name(tmp_path)
    assert second == called(tmp_path) != first

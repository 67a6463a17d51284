"""The index of the runs, built anew from their directories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot import codec
from bot.ages import Ages, Closed, Ended
from bot.answers import OfRun, Section, due
from bot.cli.clicked import Setting
from bot.cli.doctor import findings
from bot.errors import UserError
from bot.home import make
from bot.liveness import ask_to_stop
from bot.model import (
    Actor,
    Claim,
    Command,
    Commented,
    Event,
    Held,
    Intent,
    Lease,
    Limit,
    Published,
    PullRef,
    Repo,
    RunId,
    Sha,
)
from bot.rebuilding import open_or_rebuild, rebuild, repair
from bot.rundir import write_json
from bot.stopping import Asked, asked_of
from bot.store import StoreSettings, books, runs, schema
from bot.store.engine import Store, open_store
from bot.tasks import Task

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
ALICE = Actor("alice", "1")
PULL = PullRef(Repo("github", "acme/shop"), 7)
SHA = Sha("a" * 40)


def intent(number: int, **other: object) -> Intent:
    event = Event(
        source="github",
        delivery=f"d{number}",
        subject=PULL,
        actor=ALICE,
        what=Commented("c1", ALICE, "/run fix\n/run fix", None),
        head_sha=None,
        at=AT,
    )
    made = Intent(
        run_id=RunId(f"20260105-09000{number}-abcdef"),
        event=event,
        ordinal=0,
        reason=Command("/run fix"),
        project="shop",
        task=Task(name=f"fix{number}", run=("true",)),
        args=(),
        head=SHA,
        head_why="the head",
        base_ref="main",
        trusted_from="leadsman.toml",
        limit=Limit(60, 3, "test"),
        answer="comment-1",
        at=AT + timedelta(seconds=number),
    )
    return replace(made, **other)  # type: ignore[arg-type]


def claim(of: Intent, slot: str) -> Claim:
    return Claim(intent=of, lease=Lease(slot, f"id-{of.run_id}"), key="k", ref="refs/x", oid=SHA, at=AT)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = make(tmp_path / "home")
    (home / "runs").mkdir()
    return home


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    store = open_store(StoreSettings(), home)
    yield store
    store.close()


def folder(home: Path, of: Intent, **ages: object) -> Ages:
    path = home / "runs" / of.run_id
    path.mkdir()
    written = Ages(path)
    written.write("intent", of)
    for name, value in ages.items():
        written.write(name, value)
    return written


def rows(store: Store) -> dict[str, runs.Row]:
    with store.read() as connection:
        return {row.run_id: row for row in runs.recent(connection)}


def test_who_asked_a_run_to_stop_after_its_turn_and_when_is_put_back(home: Path, store: Store) -> None:
    one = intent(0)
    ages = folder(home, one, claim=claim(one, "wt-1"))
    ask_to_stop(ages.path, "dana", at=AT, until=AT + timedelta(seconds=20))
    with store.write() as connection:
        rebuild(connection, home / "runs", "here")
    row = rows(store)[one.run_id]
    assert ("dana", AT.timestamp()) == (row.stop_by, row.stop_at)
    assert Asked("dana", AT, AT + timedelta(seconds=20)) == asked_of(row, one.limit)


def test_each_run_comes_back_as_far_as_it_had_come(home: Path, store: Store) -> None:
    waiting, claimed, held, ended, closed = (intent(n) for n in range(5))
    folder(home, waiting)
    folder(home, claimed, claim=claim(claimed, "wt-2"))
    folder(home, held, held=Held("somebody", "then", "r", "there"))
    folder(home, ended, claim=claim(ended, "wt-3"), ended=Ended(Published(SHA, "refs/heads/x"), AT))
    done = folder(home, closed, claim=claim(closed, "wt-1"), ended=Ended(Published(SHA, "x"), AT), closed=Closed(AT))
    write_json(done.path / "report.json", {})
    write_json(home / "runs" / claimed.run_id / "cancel.json", {"by": "alice"})
    (home / "runs" / "20260105-100000-aaaaaa").mkdir()  # handed off: none of the server's
    with store.write() as connection:
        rebuilt = rebuild(connection, home / "runs", "here")
        leased = {held.run_id: held.lease.slot for held in runs.leased(connection, host="here")}
        again = rebuild(connection, home / "runs", "here")
    assert (5, 2, ()) == (rebuilt.runs, rebuilt.leases, rebuilt.unreadable)
    assert (0, 0, ()) == (again.runs, again.leases, again.unreadable)
    assert {claimed.run_id: "wt-2", ended.run_id: "wt-3"} == leased
    found = rows(store)
    assert ["waiting", "claim", "claim", "publish", "closed"] == [
        found[one.run_id].phase for one in (waiting, claimed, held, ended, closed)
    ]
    assert "alice" == found[claimed.run_id].cancel
    assert (AT.timestamp(), "published") == (found[closed.run_id].closed_at, found[closed.run_id].reason)


def test_where_two_say_they_hold_a_slot_the_one_that_has_not_ended_has_it(home: Path, store: Store) -> None:
    first, second = intent(1), intent(2)
    folder(home, first, claim=claim(first, "wt-1"), ended=Ended(Published(SHA, "x"), AT))
    folder(home, second, claim=claim(second, "wt-1"))
    with store.write() as connection:
        rebuild(connection, home / "runs", "here")
        assert [("wt-1", second.run_id)] == [(held.lease.slot, held.run_id) for held in runs.leased(connection)]


def test_what_was_obeyed_is_obeyed_once_and_each_answer_is_owed_again(home: Path, store: Store) -> None:
    first, second = intent(1), intent(2)
    folder(home, first)
    folder(home, second)
    with store.write() as connection:
        rebuild(connection, home / "runs", "here")
        rebuild(connection, home / "runs", "here")
        assert [True, True, False] == [books.obeyed(connection, str(PULL.repo), "c1", "/run fix", n) for n in range(3)]
        assert ["comment-1"] == due(connection)
        owed = connection.execute(sa.select(schema.answers)).one()
    sections = codec.load_any(tuple[Section, ...], owed.sections)
    assert (OfRun(first.run_id), OfRun(second.run_id)) == sections
    assert owed.tries > 0  # our comment may be out already: it is looked for before another one is written
    assert "c1" == owed.comment_id


def test_a_broken_age_is_read_from_the_next_one_and_what_nobody_can_read_is_named(home: Path, store: Store) -> None:
    whole, broken = intent(1), intent(2)
    ages = folder(home, whole, claim=claim(whole, "wt-1"))
    (ages.path / "intent.json").write_text("{half")
    lost = folder(home, broken)
    (lost.path / "intent.json").write_text("{half")
    with store.write() as connection:
        rebuilt = rebuild(connection, home / "runs", "here")
    assert (1, 1, (lost.path,)) == (rebuilt.runs, rebuilt.leases, rebuilt.unreadable)
    assert [whole.run_id] == list(rows(store))
    assert "{half" == (lost.path / "intent.json").read_text()


def test_what_can_still_be_read_of_a_broken_file_is_kept(home: Path) -> None:
    store = open_store(StoreSettings(), home)
    with store.write() as connection:
        books.hold(connection, str(PULL), "alice", "no", 1.0)
        for number in range(2000):
            books.obey(connection, "r", f"c{number}", "x" * 500, 0, at=1.0)
    store.close()
    file = home / "leadsman.db"
    size = file.stat().st_size
    with file.open("r+b") as broken:
        broken.seek(size * 3 // 4)
        broken.write(b"garbage " * 2000)
    (home / "leadsman.toml").touch()
    told = {one.subject: one for one in findings(Setting(home, home / "leadsman.toml", verbose=False))}
    assert "wrong" == told["store"].verdict  # though it can be opened
    assert "`leadsman doctor --repair`" in told["store"].what
    file.rename(home / "leadsman.db.broken-then")  # a repair was killed here
    (home / "leadsman.db.repairing").write_text("leadsman.db.broken-then\n")
    open_store(StoreSettings(), home).close()
    with pytest.raises(UserError, match=r"is half repaired\. No run is started until it can be\. .*--repair"):
        open_or_rebuild(StoreSettings(), home)
    rebuilt = repair(StoreSettings(), home)
    assert (home / "leadsman.db.broken-then", True) == (rebuilt.set_aside, rebuilt.salvaged > 0)
    store, _ = open_or_rebuild(StoreSettings(), home)
    with store.read() as connection:
        assert ("alice", "no") == books.hold_on(connection, str(PULL))
    store.close()

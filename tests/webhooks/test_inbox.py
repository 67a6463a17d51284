"""Every delivery once, on disk before it is answered; and the queue that this makes."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bot.store import StoreSettings
from bot.store.engine import Store, open_store
from webhooks import inbox as inbox_module
from webhooks.inbox import Delivery, Inbox, Verdict, _Waiting


class Clock:
    """Seconds since 1970, moved by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(StoreSettings(), tmp_path)
    yield store
    store.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def inbox(store: Store, clock: Clock) -> Inbox:
    return Inbox(store, clock)


def delivery(name: str = "d-1", *, body: bytes = b"{}", lane: str = "hub:acme/shop", ignored: str = "") -> Delivery:
    headers = {
        "x-github-event": "push",
        "x-hub-signature": "sha1=1",
        "x-hub-signature-256": "sha256=1",
        "x-gitea-signature": "1",
        "authorization": "Basic 1",
    }
    return Delivery(source="hub", delivery=name, event="push", headers=headers, body=body, lane=lane, ignored=ignored)


def rows(store: Store) -> int:
    return len(Inbox(store, Clock()).listing(limit=100_000))


def take(inbox: Inbox, lane: str = "hub:acme/shop") -> int:
    kept = inbox.head(lane)
    assert kept is not None
    return kept.entry.id


def test_a_delivery_is_kept_byte_by_byte_and_without_what_proves_its_origin(inbox: Inbox) -> None:
    body = bytes(range(256)) * 40
    assert inbox.remember(delivery(body=body)) is Verdict.ACCEPTED
    kept = inbox.head("hub:acme/shop")
    assert kept is not None
    assert body == kept.body
    assert kept.headers == {"x-github-event": "push"}
    assert (kept.entry.delivery, kept.entry.state, kept.entry.size, kept.entry.received_at) == (
        "d-1",
        "queued",
        len(body),
        1000.0,
    )


def test_the_same_again_is_a_duplicate_and_another_body_under_its_id_a_mismatch(inbox: Inbox, store: Store) -> None:
    assert inbox.remember(delivery()) is Verdict.ACCEPTED
    assert inbox.remember(delivery()) is Verdict.DUPLICATE
    assert inbox.remember(delivery(body=b"{ }")) is Verdict.MISMATCH
    inbox.done(take(inbox))
    assert inbox.remember(delivery()) is Verdict.DUPLICATE
    assert rows(store) == 1


def test_the_same_id_of_another_source_is_another_delivery(inbox: Inbox, store: Store) -> None:
    assert inbox.remember(delivery()) is Verdict.ACCEPTED
    other = Delivery(source="here", delivery="d-1", event="push", headers={}, body=b"{ }", lane="here:acme/shop")
    assert inbox.remember(other) is Verdict.ACCEPTED
    assert len(inbox.find("d-1")) == rows(store) == 2


def test_one_that_failed_is_worked_again_when_it_is_sent_again(inbox: Inbox) -> None:
    inbox.remember(delivery())
    number = take(inbox)
    inbox.failed(number, "it broke", None)
    assert inbox.head("hub:acme/shop") is None
    assert inbox.remember(delivery(body=b"[]")) is Verdict.MISMATCH
    assert inbox.remember(delivery()) is Verdict.ACCEPTED
    assert inbox.remember(delivery()) is Verdict.DUPLICATE
    assert take(inbox) == number


def test_one_that_waits_for_its_next_try_is_tried_at_once_when_it_is_sent_again(inbox: Inbox, clock: Clock) -> None:
    inbox.remember(delivery())
    inbox.remember(delivery("d-2"))
    number = take(inbox)
    inbox.failed(number, "GitHub is away", 1300.0)
    clock.now = 1010.0
    assert [inbox.remember(delivery(name)) for name in ("d-1", "d-2")] == [Verdict.DUPLICATE] * 2
    waiting = {entry.delivery: (entry.due_at, entry.tries) for entry in inbox.listing()}
    assert waiting == {"d-1": (1010.0, 1), "d-2": (1000.0, 0)}


def test_a_lane_is_worked_in_order_and_a_retry_keeps_its_place(inbox: Inbox, clock: Clock) -> None:
    for name in ("d-1", "d-2"):
        inbox.remember(delivery(name))
    inbox.remember(delivery("d-3", lane="hub:acme/blog"))
    assert set(inbox.lanes()) == {"hub:acme/shop", "hub:acme/blog"}
    first = take(inbox)
    inbox.failed(first, "GitHub is away", 1060.0)
    kept = inbox.head("hub:acme/shop")
    assert kept is not None
    assert (kept.entry.id, kept.entry.due_at, kept.entry.tries, kept.entry.note) == (first, 1060.0, 1, "GitHub is away")
    clock.now = 1070.0
    inbox.done(first)
    second = take(inbox)
    inbox.ignored(second, "it asks nothing")
    assert inbox.head("hub:acme/shop") is None
    assert inbox.lanes() == ("hub:acme/blog",)
    ended = {entry.delivery: (entry.state, entry.ended_at, entry.note) for entry in inbox.listing()}
    assert ended == {
        "d-1": ("done", 1070.0, ""),
        "d-2": ("ignored", 1070.0, "it asks nothing"),
        "d-3": ("queued", None, ""),
    }


def test_what_has_ended_is_not_ended_twice(inbox: Inbox) -> None:
    inbox.remember(delivery())
    number = take(inbox)
    inbox.done(number)
    inbox.failed(number, "a late word", None)
    assert inbox.listing()[0].state == "done"


def test_an_ignored_one_is_kept_to_be_looked_up_and_not_queued(inbox: Inbox) -> None:
    assert inbox.remember(delivery(ignored="`push` asks nothing")) is Verdict.ACCEPTED
    assert inbox.lanes() == ()
    assert [(entry.state, entry.note) for entry in inbox.listing()] == [("ignored", "`push` asks nothing")]
    assert inbox.remember(delivery(ignored="`push` asks nothing")) is Verdict.DUPLICATE


def test_a_replay_queues_it_again_whatever_became_of_it(inbox: Inbox, clock: Clock) -> None:
    inbox.remember(delivery())
    number = take(inbox)
    inbox.done(number)
    clock.now = 1500.0
    entry = inbox.replay(number)
    assert entry is not None
    assert (entry.state, entry.due_at, entry.ended_at, entry.tries) == ("queued", 1500.0, None, 0)
    assert take(inbox) == number
    assert inbox.replay(12345) is None


def test_a_full_queue_takes_nothing_new_and_still_knows_what_it_has(store: Store, clock: Clock) -> None:
    inbox = Inbox(store, clock, limit=3)
    assert [inbox.remember(delivery(f"d-{n}")) for n in range(4)] == [Verdict.ACCEPTED] * 3 + [Verdict.FULL]
    assert inbox.remember(delivery("d-1")) is Verdict.DUPLICATE
    assert inbox.remember(delivery("d-1", body=b"[]")) is Verdict.MISMATCH
    assert inbox.remember(delivery("d-i", ignored="nothing to do")) is Verdict.ACCEPTED
    assert rows(store) == 4
    inbox.done(take(inbox))
    assert inbox.remember(delivery("d-3")) is Verdict.ACCEPTED
    assert inbox.remember(delivery("d-4")) is Verdict.FULL


def test_the_listing_is_latest_first_by_state_and_bounded(inbox: Inbox) -> None:
    for n in range(5):
        inbox.remember(delivery(f"d-{n}"))
    inbox.failed(take(inbox), "it broke", None)
    assert [entry.delivery for entry in inbox.listing(limit=2)] == ["d-4", "d-3"]
    assert [entry.delivery for entry in inbox.listing(state="failed")] == ["d-0"]
    assert inbox.listing(state="done") == ()


def test_the_old_is_forgotten_but_for_what_still_waits(inbox: Inbox, store: Store, clock: Clock) -> None:
    old = [_Waiting(delivery(f"old-{n}", ignored="" if n == 600 else "nothing to do"), "0") for n in range(1203)]
    with store.write() as connection:
        connection.execute(inbox_module._INSERT, [inbox._row(waiting) for waiting in old])
    clock.now = 2000.0
    inbox.remember(delivery("new", ignored="nothing to do"))
    assert inbox.purge(1500.0) == 1202
    assert {entry.delivery for entry in inbox.listing()} == {"old-600", "new"}
    assert inbox.purge(1500.0) == 0


def at_once(inbox: Inbox, deliveries: list[Delivery]) -> list[Verdict]:
    """Remembers them all from threads that start together."""
    start = threading.Barrier(len(deliveries))
    found: list[Verdict] = []

    def one(told: Delivery) -> None:
        start.wait()
        found.append(inbox.remember(told))

    threads = [threading.Thread(target=one, args=(told,)) for told in deliveries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def test_twenty_copies_at_once_are_one(inbox: Inbox, store: Store) -> None:
    for round_ in range(20):
        found = at_once(inbox, [delivery(f"d-{round_}") for _ in range(20)])
        assert Counter(found) == {Verdict.ACCEPTED: 1, Verdict.DUPLICATE: 19}
    assert rows(store) == 20


def test_callers_that_come_together_share_transactions(store: Store, clock: Clock) -> None:
    commits = []
    sa.event.listen(store.engine, "commit", commits.append)
    inbox = Inbox(store, clock)
    with sqlite3.connect(str(store.engine.url.database), isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")  # the first has to wait for this, and all the others for the first
        first = threading.Thread(target=lambda: inbox.remember(delivery("d-0")))
        first.start()
        while not inbox._leading.locked() or inbox._waiting:
            first.join(0.001)
        thread = threading.Thread(target=lambda: at_once(inbox, [delivery(f"d-{n}") for n in range(1, 32)]))
        thread.start()
        while len(inbox._waiting) < 31:
            thread.join(0.001)
        other.execute("COMMIT")
        for one in (first, thread):
            one.join(60)
    other.close()
    assert rows(store) == 32
    assert len(commits) == 2


def test_a_store_that_is_full_keeps_nothing_and_takes_it_when_it_is_sent_again(tmp_path: Path, clock: Clock) -> None:
    store = open_store(StoreSettings(), tmp_path)
    inbox = Inbox(store, clock)
    with store.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    limit = lambda raw, *_: raw.execute(f"PRAGMA max_page_count={pages + 2}")  # noqa: E731
    store.engine.dispose()
    sa.event.listen(store.engine, "connect", limit)
    large = delivery(body=b"x" * 100_000)
    assert inbox.remember(large) is Verdict.AWAY
    assert rows(store) == 0
    sa.event.remove(store.engine, "connect", limit)
    store.engine.dispose()
    assert inbox.remember(large) is Verdict.ACCEPTED
    store.close()


def test_a_store_that_is_read_only_or_locked_keeps_nothing(tmp_path: Path, clock: Clock) -> None:
    store = open_store(StoreSettings(), tmp_path)
    inbox = Inbox(store, clock)
    sa.event.listen(store.engine, "checkout", lambda raw, *_: raw.execute("PRAGMA busy_timeout=50"))
    with sqlite3.connect(tmp_path / "leadsman.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        assert at_once(inbox, [delivery(f"d-{n}") for n in range(8)]) == [Verdict.AWAY] * 8
        other.execute("ROLLBACK")
    other.close()
    sa.event.listen(store.engine, "checkout", lambda raw, *_: raw.execute("PRAGMA query_only=1"))
    assert inbox.remember(delivery()) is Verdict.AWAY
    assert rows(store) == 0
    store.close()


def test_a_store_whose_file_is_gone_or_another_keeps_nothing(inbox: Inbox, store: Store, tmp_path: Path) -> None:
    file = tmp_path / "leadsman.db"
    file.rename(tmp_path / "aside.db")
    assert inbox.remember(delivery()) is Verdict.AWAY
    file.write_bytes(b"SQLite format 3\0")
    assert inbox.remember(delivery()) is Verdict.AWAY
    assert rows(store) == 0
    (tmp_path / "aside.db").rename(file)
    assert inbox.remember(delivery()) is Verdict.ACCEPTED


def test_an_accident_of_the_leader_leaves_no_follower_waiting(inbox: Inbox) -> None:
    impossible = delivery("\ud800")  # half a character: no database takes it; the door lets none in
    with pytest.raises(UnicodeEncodeError):
        inbox.remember(impossible)
    assert inbox.remember(delivery()) is Verdict.ACCEPTED


@pytest.mark.parametrize("dialect", [sqlite.dialect(), postgresql.dialect()], ids=["sqlite", "postgresql"])
def test_both_databases_take_the_statements(dialect: sa.Dialect) -> None:
    for statement in (inbox_module._INSERT, inbox_module._KNOWN, inbox_module._QUEUED):
        assert str(statement.compile(dialect=dialect))


def test_headers_are_json_in_the_store(inbox: Inbox, store: Store) -> None:
    inbox.remember(delivery())
    with store.read() as connection:
        assert json.loads(connection.exec_driver_sql("SELECT headers FROM deliveries").scalar_one()) == {
            "x-github-event": "push"
        }

"""What is known of a pull request's heads, and what may be said by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.store import StoreSettings, books
from bot.store.engine import Store, open_store

PULL = "github:acme/shop#7"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(StoreSettings(), tmp_path)
    yield store
    store.close()


def test_a_push_tells_what_it_took_away_to_who_had_not_seen_that(store: Store) -> None:
    with store.write() as connection:
        books.saw_head(connection, PULL, "b", at=20.0, now=100.0, before="a")
        told = [books.head_before(connection, PULL, at, live) for at, live in ((19.0, "b"), (21.0, "b"), (19.0, "a"))]
    assert ["a", None, None] == told


def test_what_a_push_took_away_comes_before_what_was_seen_longer_ago(store: Store) -> None:
    with store.write() as connection:
        books.saw_head(connection, PULL, "a", at=10.0, now=100.0)
        books.saw_head(connection, PULL, "c", at=30.0, now=101.0, before="b")  # the push from a to b was never told
        books.saw_head(connection, PULL, "c", at=30.0, now=102.0, before="b")
        assert "b" == books.head_before(connection, PULL, 25.0, "c")
        assert "c" == books.last_head(connection, PULL)

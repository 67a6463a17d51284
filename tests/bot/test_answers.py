"""An answer that can't be said yet: what waits for its turn is no try that failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from bot import answers
from bot.answers import TRIES, Answers, Text
from bot.errors import OutOfTurn
from bot.journal import Journal
from bot.masking import Masking
from bot.model import PullRef, Repo
from bot.store import StoreSettings
from bot.store.engine import Store, open_store
from bot.talk import Talks

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PULL = PullRef(Repo("github", "acme/shop"), 7)


@dataclass
class Crowded:
    """A forge to which a call gets through after a while; it has no list of comments to look through."""

    left: dict[str, int] = field(default_factory=lambda: {"eyes": 2, "hello": TRIES + 2, "rocket": 2})
    heard: list[str] = field(default_factory=list)

    def about(self, _on: object) -> Crowded:
        return self

    def react(self, _on: object, _comment_id: str, reaction: str) -> None:
        self._hear(reaction)

    def post(self, _on: object, body: str) -> str:
        self._hear(body.splitlines()[-1])
        return "1"

    def _hear(self, what: str) -> None:
        if self.left[what]:
            self.left[what] -= 1
            raise OutOfTurn("Too many writes wait.", retry_at=NOW + timedelta(seconds=3))
        self.heard.append(what)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(StoreSettings(), tmp_path)
    with store.write() as connection:
        answers.begin(connection, "a", PULL, [Text("hello", well=True)], at=NOW.timestamp(), comment_id="99")
    yield store
    store.close()


def test_what_waits_for_its_turn_is_said_in_the_end_with_its_reactions(store: Store, tmp_path: Path) -> None:
    crowded = Crowded()
    made = Answers(
        store,
        tmp_path,
        cast("Talks", cast("Any", crowded)),
        Journal(tmp_path / "events.jsonl", NOW.timestamp),
        host="here",
        masking=Masking([]),
        patient=True,
        clock=NOW.timestamp,
    )
    while (wait := made.settle("a")) is not None:
        assert wait == 3.0
    assert ["eyes", "hello", "rocket"] == crowded.heard

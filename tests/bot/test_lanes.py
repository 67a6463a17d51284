"""Lanes: what stands in one is worked in order, and what can't be worked for long holds up no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.config import load
from bot.errors import Unavailable
from bot.journal import Journal
from bot.store import StoreSettings
from bot.store.engine import open_store
from bot.wiring.lanes import DELIVERY_SECONDS, Lanes
from bot.wiring.outside import World, reach
from tests.handlers.desk import Room
from tests.webhooks.senders import comment, signed
from webhooks.inbox import Delivery, Inbox

CONFIG = '[forges.github]\nkind = "github"\ntoken_env = "TOKEN"\n'
LANE = "github:acme/shop"


class Yard:
    """A lane of one repository, over a forge that may fail; `now` is the time."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self.room = Room()
        self.told: list[str] = []
        file = folder / "leadsman.toml"
        file.write_text(CONFIG)
        environ = {"TOKEN": "0a" * 20}
        config = load(file, environ, home=folder)
        self.store = open_store(StoreSettings(), folder)
        self.inbox = Inbox(self.store, self.clock)
        journal = Journal(folder / "events.jsonl", self.clock)
        self.lanes = Lanes(
            config,
            reach(config, World(home=folder, environ=environ), self.store, journal),
            self.store,
            self.inbox,
            self.room,
            polls={},
            hints=self,
            journal=journal,
            patient=True,
            clock=self.clock,
        )

    def clock(self) -> float:
        return self.now

    def put(self, hint: object, *, after: float = 0.0) -> None:
        """Hints that come of it are nobody's here."""

    def comes(self, name: str, text: str) -> None:
        body = comment(text)
        headers = signed(body, delivery=name)
        self.inbox.remember(
            Delivery(source="github", delivery=name, event="issue_comment", headers=headers, body=body, lane=LANE)
        )

    def state(self, name: str) -> str:
        (entry,) = self.inbox.find(name)
        return entry.state

    def passes(self, seconds: float) -> None:
        """Time goes by, and each lane is worked whenever it says."""
        end = self.now + seconds
        while self.now < end:
            waits = [wait for lane in self.inbox.lanes() if (wait := self.lanes.work(lane)) is not None]
            self.now += max(1.0, min([*waits, end - self.now]))


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path)
    yield yard
    yard.store.close()


def test_what_the_forge_does_not_answer_for_is_waited_for_in_order_for_minutes_and_no_longer(yard: Yard) -> None:
    yard.room.failing["comment"] = Unavailable("GitHub answered 500 for comment 99.")
    yard.comes("first", "/run fix")
    yard.comes("second", "nothing that needs the forge")
    yard.passes(300)
    assert ("queued", "queued") == (yard.state("first"), yard.state("second"))
    yard.passes(600)
    assert ("queued", "done") == (yard.state("first"), yard.state("second"))


def test_what_was_set_aside_is_worked_once_the_forge_answers(yard: Yard) -> None:
    yard.room.failing["comment"] = Unavailable("GitHub answered 500 for comment 99.")
    yard.comes("first", "/run fix")
    yard.passes(1800)
    del yard.room.failing["comment"]
    yard.passes(300)
    assert "done" == yard.state("first")


def test_what_the_forge_never_answers_for_is_given_up_after_a_day(yard: Yard) -> None:
    yard.room.failing["comment"] = Unavailable("GitHub answered 500 for comment 99.")
    yard.comes("first", "/run fix")
    yard.passes(DELIVERY_SECONDS - 600)
    assert "queued" == yard.state("first")
    yard.passes(1200)
    assert "failed" == yard.state("first")
    yard.inbox.replay(1)
    yard.passes(60)
    assert "queued" == yard.state("first")
    del yard.room.failing["comment"]
    yard.passes(60)
    assert "done" == yard.state("first")

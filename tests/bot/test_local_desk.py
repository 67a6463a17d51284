"""How the bot hears of what a person did on the local forge."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot import home
from bot.cli.local_desk import Desk
from bot.config import load
from bot.forges.local import Act
from bot.secret import Secret
from tests.bot.surroundings import around
from tests.webhooks.senders import House, serving
from webhooks.inbox import Delivery, Inbox, Verdict
from webhooks.receiver import Door, Table
from webhooks.signature import Key


class Mortal(Inbox):
    """Dies when it has kept what came, before it can say so."""

    def remember(self, delivery: Delivery) -> Verdict:
        super().remember(delivery)
        raise InterruptedError


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    (tmp_path / "leadsman.toml").write_text('[forges.local]\nkind = "local"\n')
    desk = Desk(load(tmp_path / "leadsman.toml", {}, home=tmp_path), around(tmp_path))
    yield desk
    desk.around.store.close()


@pytest.fixture
def act(desk: Desk) -> Act:
    people = desk.people(desk.forges["local"])
    people.make_repository("acme/shop", source=None, author="alice")
    return people.open_issue("acme/shop", title="Slow tests", author="alice")


def test_what_a_server_took_before_it_died_is_told(desk: Desk, act: Act) -> None:
    house = House(desk.around.home)
    desk.tell(desk.forges["local"], [])  # makes the secret
    key = Key(Secret((desk.around.home / "local.secret").read_text()))
    inbox = Mortal(house.store, time.time)
    house.door = Door({"local": Table("local", (key,))}, inbox, house.woken.append)
    with serving(house) as server, home.serving(desk.around.home, f"http://127.0.0.1:{server.address[1]}"):
        told = desk.tell(desk.forges["local"], [act.event])
    assert "did not take it (Remote end closed connection without response): it is in its queue." in told.note
    assert [act.event.delivery] == [entry.delivery for entry in inbox.listing()]
    house.close()


def test_who_holds_the_home_without_a_door_finds_it_in_the_queue(desk: Desk, act: Act) -> None:
    with home.serving(desk.around.home):
        told = desk.tell(desk.forges["local"], [act.event])
    assert f"The server with pid {os.getpid()} did not take it (it does not listen): it is in its queue." == told.note
    assert ("local:acme/shop",) == Inbox(desk.around.store, time.time).lanes()

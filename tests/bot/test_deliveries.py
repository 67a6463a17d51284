"""`leadsman deliveries`: what came in, looked up and worked again."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.cli.deliveries import which
from bot.cli.options import printable
from bot.errors import UserError
from bot.store import StoreSettings
from bot.store.engine import open_store
from bot.wake import Doorbell
from tests.stories.nursery import leadsman
from webhooks.inbox import Delivery, Inbox

AT = 1767322845.0
"""2026-01-02T03:00:45Z"""


def delivery(
    name: str, *, source: str = "hub", body: bytes = b'{"action": "created"}', event: str = "push"
) -> Delivery:
    headers = {"x-github-event": event, "user-agent": "a\x1b[31mb"}
    return Delivery(source=source, delivery=name, event=event, headers=headers, body=body, lane=f"{source}:acme/shop")


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    store = open_store(StoreSettings(), home)
    inbox = Inbox(store, lambda: AT)
    inbox.remember(delivery("d-1"))
    inbox.failed(1, "it broke", None)
    inbox.remember(delivery("d-2", event="issue_comment"))
    inbox.remember(delivery("d-2", source="here", body=b"\xff\x1b[31m"))
    yield inbox
    store.close()


@pytest.mark.usefixtures("inbox")
def test_the_latest_are_listed_first_with_what_became_of_them(tmp_path: Path) -> None:
    ended = leadsman("deliveries", cwd=tmp_path)
    assert ended.code == 0
    rows = [line.split() for line in ended.out.splitlines()]
    assert rows == [
        ["number", "received", "source", "event", "about", "state", "tries", "delivery", "note"],
        ["3", "2026-01-02T03:00:45Z", "here", "push", "acme/shop", "queued", "0", "d-2"],
        ["2", "2026-01-02T03:00:45Z", "hub", "issue_comment", "acme/shop", "queued", "0", "d-2"],
        ["1", "2026-01-02T03:00:45Z", "hub", "push", "acme/shop", "failed", "1", "d-1", "it", "broke"],
    ]
    assert leadsman("deliveries", "--state", "done", cwd=tmp_path).out == "No deliveries that are done.\n"
    assert leadsman("deliveries", "--state", "lost", cwd=tmp_path).code == 2
    assert len(json.loads(leadsman("deliveries", "--json", "--limit", "2", cwd=tmp_path).out)) == 2


def test_a_program_gets_every_field(tmp_path: Path, inbox: Inbox) -> None:
    assert inbox.get(1) is not None
    assert json.loads(leadsman("--json", "deliveries", "--state", "failed", cwd=tmp_path).out) == [
        {
            "id": 1,
            "source": "hub",
            "delivery": "d-1",
            "event": "push",
            "lane": "hub:acme/shop",
            "size": 21,
            "received_at": "2026-01-02T03:00:45Z",
            "state": "failed",
            "tries": 1,
            "due_at": "2026-01-02T03:00:45Z",
            "ended_at": "2026-01-02T03:00:45Z",
            "note": "it broke",
        }
    ]


@pytest.mark.usefixtures("inbox")
def test_one_is_shown_whole_and_nothing_in_it_steers_the_terminal(tmp_path: Path) -> None:
    told = leadsman("deliveries", "show", "d-1", cwd=tmp_path)
    assert told.code == 0
    assert "state: failed" in told.out
    assert r"user-agent: a\x1b[31mb" in told.out
    assert told.out.endswith('{\n  "action": "created"\n}\n')
    assert leadsman("deliveries", "show", "3", cwd=tmp_path).out.endswith("\ufffd\\x1b[31m\n")
    for words in (("--json", "deliveries", "show", "1"), ("deliveries", "show", "1", "--json")):
        whole = json.loads(leadsman(*words, cwd=tmp_path).out)
        assert (whole["body"], whole["headers"]["x-github-event"]) == ('{"action": "created"}', "push")


@pytest.mark.parametrize("name", ["d-9", "99", "9" * 30, "\u0664", "-1", "", "\udcff", "d\0"])
def test_what_is_not_there_is_said_with_the_next_step(inbox: Inbox, name: str) -> None:
    with pytest.raises(UserError) as refused:
        which(inbox, name)
    assert refused.value.text == f"There is no delivery {printable(name)}. `leadsman deliveries` lists the latest."


def test_what_is_not_clear_is_said_with_the_numbers_to_choose_from(tmp_path: Path, inbox: Inbox) -> None:
    assert [which(inbox, name).id for name in ("1", "d-1", "3")] == [1, 1, 3]
    ended = leadsman("deliveries", "replay", "d-2", cwd=tmp_path)
    assert ended.code == 1
    assert ended.err == "2 sources have a delivery d-2. Name it by its number: 3 (here), 2 (hub).\n"


def test_a_replay_queues_it_again_for_the_next_server(tmp_path: Path, inbox: Inbox) -> None:
    ended = leadsman("deliveries", "replay", "d-1", cwd=tmp_path)
    assert ended.out == ("1 (push d-1) is queued again. No server runs here: the next `leadsman serve` takes it up.\n")
    kept = inbox.head("hub:acme/shop")
    assert kept is not None
    assert (kept.entry.id, kept.entry.state, kept.entry.tries, kept.entry.note) == (1, "queued", 0, "replayed")


@pytest.mark.usefixtures("inbox")
def test_a_replay_wakes_the_running_server(tmp_path: Path) -> None:
    heard: queue.Queue[tuple[str, str]] = queue.Queue()
    doorbell = Doorbell(tmp_path / "home", lambda kind, key: heard.put((kind, key)))
    doorbell.start()
    try:
        ended = leadsman("deliveries", "replay", "1", cwd=tmp_path)
        assert ended.out == "1 (push d-1) is queued again. The server takes it up now.\n"
        assert heard.get(timeout=60) == ("lane", "hub:acme/shop")
    finally:
        doorbell.stop()

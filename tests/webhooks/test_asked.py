"""What was found by asking is kept as what is delivered: once, in order, and in texts that can be written anywhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.errors import Unavailable
from bot.model import Actor, Closed, Commented, Event, Happening, IssueRef, Labeled, Opened, PullRef, Pushed, Repo, Sha
from bot.store import StoreSettings
from bot.store.engine import Store, open_store
from webhooks import asked
from webhooks.inbox import Delivery, Inbox

SHOP = Repo("github", "acme/shop")
ALICE = Actor("alice", "7")
SHA = Sha("a" * 40)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(StoreSettings(), tmp_path)
    yield store
    store.close()


@pytest.fixture
def inbox(store: Store) -> Inbox:
    return Inbox(store, time.time)


def event(name: str, what: Happening, *, head: Sha | None = None) -> Event:
    return Event(
        source="github",
        delivery=f"poll-{name}",
        subject=PullRef(SHOP, 7) if head else IssueRef(SHOP, 9),
        actor=ALICE,
        what=what,
        head_sha=head,
        at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )


def said(text: str, before: str | None = None) -> Commented:
    return Commented("3", ALICE, text, before)


def test_what_is_handed_in_reads_the_same_in_order_and_once(inbox: Inbox) -> None:
    events = [
        event("a", Opened("Add b"), head=SHA),
        event("b", said("/run fix\n\N{ROCKET}")),
        event("c", Labeled("a b")),
        event("d", Pushed(SHA, Sha("b" * 40)), head=SHA),
        event("e", Closed(merged=True), head=SHA),
    ]
    assert [5, 0] == [asked.hand_in(inbox, events), asked.hand_in(inbox, events)]
    assert ("github:acme/shop",) == inbox.lanes()
    for told in events:
        kept = inbox.head("github:acme/shop")
        assert kept is not None
        assert told == asked.read(kept)
        inbox.done(kept.entry.id)


def test_half_characters_and_nuls_are_let_in_as_at_the_door(inbox: Inbox) -> None:
    bad = "a\ud800b\0c"
    for name, what in (("a", said(bad)), ("b", Opened(bad)), ("c", Labeled(bad))):
        asked.hand_in(inbox, [event(name, what)])
        kept = inbox.head("github:acme/shop")
        assert kept is not None
        found = asked.read(kept)
        assert found is not None
        assert "a\ufffdb\ufffdc" in (getattr(found.what, name, None) for name in ("text", "title", "label"))
        inbox.done(kept.entry.id)


def test_a_comment_that_somebody_edited_is_kept_and_not_worked(inbox: Inbox) -> None:
    asked.hand_in(inbox, [event("a", said("/run fix", before="/run fix"))])
    assert () == inbox.lanes()
    (entry,) = inbox.listing()
    assert ("ignored", asked.EDITED) == (entry.state, entry.note)
    inbox.replay(entry.id)  # an operator may; it has nothing new then, either
    kept = inbox.head("github:acme/shop")
    assert kept is not None
    found = asked.read(kept)
    assert found is not None
    assert isinstance(found.what, Commented)
    assert found.what.before == found.what.text


def test_what_came_through_the_door_is_read_by_its_source_whatever_it_calls_itself(inbox: Inbox) -> None:
    headers = {"x-github-delivery": "poll-a", "x-github-event": "issue_comment"}
    inbox.remember(
        Delivery(source="github", delivery="poll-a", event="x", headers=headers, body=b"{}", lane="github:acme/shop")
    )
    kept = inbox.head("github:acme/shop")
    assert kept is not None
    assert asked.read(kept) is None


def test_an_inbox_that_is_full_says_so_and_keeps_what_it_took(store: Store) -> None:
    events = [event(name, said(name)) for name in "abc"]
    with pytest.raises(Unavailable):
        asked.hand_in(Inbox(store, time.time, limit=2), events)
    assert 1 == asked.hand_in(Inbox(store, time.time), events)

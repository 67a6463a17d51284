"""What a journal says of who has the ticket: by the order of its entries, whatever their ids look like."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot import epoch
from bot.model import Actor, Held
from bot.trackers import Entry

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
ONE, TWO, DANA = Actor("bot-one", "1"), Actor("bot-two", "2"), Actor("dana", "3")
FIRST, SECOND = "20260105-090000-aaaaaa", "20260105-090000-bbbbbb"
HELD = Held("leadsman@here", "2026-01-05T09:00:00Z", FIRST, "work:7")


def entry(number: str, text: str = "", *, by: Actor = DANA, **about: object) -> Entry:
    made = Entry(id=number, author=by, text=text, private=False, at=AT)
    return replace(made, **about)  # type: ignore[arg-type]


def claim(number: str, run: str, *, by: Actor = ONE) -> Entry:
    return entry(number, epoch.claim_note("leadsman@here", "2026-01-05T09:00:00Z", run, "http://here/"), by=by)


def test_the_first_claimant_in_the_journals_order_has_the_ticket_though_its_id_is_the_higher_one() -> None:
    found = epoch.holder([claim("900", FIRST), claim("17", SECOND, by=TWO)])
    assert found is not None
    assert FIRST == found.run_id


def test_a_person_is_seen_behind_the_claim_by_place_and_not_by_id() -> None:
    """On a forge comments and events are numbered each by itself."""
    before = entry("event-5", new_status="open")
    after = entry("event-6", assignee_changed=True)
    journal = [before, claim("900", FIRST), after]
    held = epoch.claim_of(journal, FIRST)
    assert held is not None
    assert after == epoch.taken_by_person(journal, held)
    assert epoch.taken_by_person(journal[:2], held) is None


@pytest.mark.parametrize(
    ("asked", "behind"),
    [("40", ["900", "7"]), ("900", ["7"]), ("7", []), ("gone", ["7"])],
    ids=["the first", "a later one", "the last", "one that was removed: by its time"],
)
def test_what_stands_behind_the_entry_that_asked(asked: str, behind: list[str]) -> None:
    journal = [entry("40"), entry("900"), entry("7", at=AT + timedelta(seconds=1))]
    assert behind == [one.id for one in epoch.since(journal, asked, AT + timedelta(seconds=1))]


def test_a_ticket_was_tried_where_a_claim_stands_behind_the_last_news_of_it() -> None:
    failed = entry("3", epoch.release_note(f"{epoch.FAILED} failed (command)"), by=ONE)
    assert epoch.was_tried([entry("900"), claim("2", FIRST), failed])
    assert not epoch.was_tried([entry("900"), claim("2", FIRST), failed, entry("1", "Try again.")])
    done = entry("3", f"{epoch.REPORT} run {FIRST} of fix: published", by=ONE)
    assert epoch.was_tried([entry("900"), claim("2", FIRST), done]), "its status may lead back to the claimable one"
    assert not epoch.was_tried([entry("900"), claim("2", FIRST), done, entry("4", new_status="New")])
    over = entry("3", epoch.release_note(epoch.ended(FIRST, "published")), by=ONE)
    assert epoch.was_tried([entry("900"), claim("2", FIRST), over]), "it would be done again for ever"
    swept = entry("3", epoch.release_note("swept: nobody works it"), by=ONE)
    assert not epoch.was_tried([entry("900"), claim("2", FIRST), swept])
    assert "900" == epoch.stamp([entry("900"), claim("2", FIRST), failed])
    assert "0" == epoch.stamp([])


def test_what_a_bot_changes_beside_its_notes_is_neither_a_persons_doing_nor_news() -> None:
    """On a forge labels and assignees are writes of their own; a bot is known by what it claimed or conceded."""
    conceded = entry("5", epoch.concede_note("leadsman@there", SECOND, HELD, "http://here/"), by=TWO)
    own = [entry("event-1", assignee_changed=True, by=ONE), entry("event-2", assignee_changed=True, by=TWO)]
    journal = [entry("900"), claim("2", FIRST), *own, conceded]
    held = epoch.holder(journal)
    assert held is not None
    assert epoch.taken_by_person(journal, held) is None
    assert "900" == epoch.stamp(journal)
    assert epoch.taken_by_person(journal[:-1], held) == own[1], "nothing says yet that it is a bot"


def test_notes_of_who_does_not_belong_there_are_none_of_the_protocol() -> None:
    stranger = replace(claim("2", FIRST, by=TWO), by_member=False)
    assert epoch.holder([stranger]) is None
    released = entry("3", epoch.release_note("no"), by=TWO, by_member=False)
    assert epoch.holder([claim("1", SECOND), released]) is not None

"""Nothing that changes on a tracker is missed, and nothing is told twice."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.errors import Unavailable
from bot.journal import Journal
from bot.model import Commented, Event, Opened, TicketRef, Updated
from bot.store import StoreSettings
from bot.store.engine import Store, open_store
from bot.trackers.polling import Poll, _Mark
from bot.trackers.redmine.client import Redmine
from tests.redmine.site import Site, client

pytestmark = pytest.mark.needs("redmine")


class Listener:
    """Keeps what it is told, each id once, as the inbox does."""

    def __init__(self, site: Site, store: Store, folder: Path, who: str = "bot") -> None:
        self.told: dict[str, Event] = {}
        self.later: list[TicketRef] = []
        self.fails = False
        self.bot = client(site, who)
        self.journal = folder / "events.jsonl"
        self.store = store
        self.poll = self.anew()

    def anew(self, bot: Redmine | None = None, *, ahead: float = 0, projects: Sequence[str] = ("demo",)) -> Poll:
        """As after a restart. `ahead`: so many seconds our clock is."""
        return Poll(
            bot or self.bot,
            dict.fromkeys(projects),
            self.store,
            keep=self._keep,
            later=lambda ref, _since: self.later.append(ref),
            journal=Journal(self.journal, time.time),
            clock=lambda: time.time() + ahead,
        )

    def _keep(self, event: Event) -> None:
        if self.fails:
            raise Unavailable("the disk is full")
        self.told.setdefault(event.delivery, event)

    @property
    def texts(self) -> list[str]:
        return [event.what.text for event in self.told.values() if isinstance(event.what, Commented)]

    @property
    def opened(self) -> list[int]:
        return [
            event.subject.number
            for event in self.told.values()
            if isinstance(event.what, Opened) and isinstance(event.subject, TicketRef)
        ]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(StoreSettings(), tmp_path)
    yield store
    store.close()


@pytest.fixture
def listener(site: Site, store: Store, tmp_path: Path) -> Listener:
    """Polled once: what was before is history."""
    site.age(site.ticket("history"), 3600)
    listener = Listener(site, store, tmp_path)
    listener.poll.look()
    assert listener.told == {}
    return listener


def test_notes_changes_and_new_tickets_are_told_once(site: Site, listener: Listener) -> None:
    number = site.ticket("Mend it", who="devi")
    site.change(number, who="devi", notes="one")
    site.change(number, status="In Progress", notes="two")
    site.change(number, assigned_to="devi")
    for _ in range(3):
        listener.poll.look()
    events = list(listener.told.values())
    assert [event.actor.login for event in events] == ["devi", "devi", "devi", "dana", "dana", "dana"]
    assert listener.texts == ["one", "two"]
    assert listener.opened == [number]
    updates = [event.what for event in events if isinstance(event.what, Updated)]
    assert [(what.old, what.new, what.assignee) for what in updates] == [
        ("In Progress", "In Progress", False),
        ("New", "In Progress", False),
        ("In Progress", "In Progress", True),
    ]


def test_a_restart_misses_nothing_however_long_it_took(site: Site, listener: Listener) -> None:
    listener.poll.look()
    number = site.ticket()
    site.change(number, notes="while nobody looked")
    site.age(number, 0)
    listener.anew().look()
    listener.anew().look()
    assert listener.texts == ["while nobody looked"]


def test_two_changes_in_one_second_are_both_told_also_when_a_poll_came_between(site: Site, listener: Listener) -> None:
    number = site.ticket()
    for word in ("a", "b", "c", "d"):
        site.change(number, notes=word)
        listener.poll.look()
    assert listener.texts == ["a", "b", "c", "d"]


def test_clocks_that_disagree_hide_nothing(site: Site, listener: Listener) -> None:
    """Ours is ahead, so that the tracker's present second seems over; the tracker's was ahead, and is set right."""
    poll, number, other = listener.anew(ahead=10), site.ticket(), site.ticket()
    second = site.seen(number)["updated_on"]
    for word in ("a", "b"):
        site.change(number, notes=word)
        site.sql(f"UPDATE issues SET updated_on = datetime('{second}') WHERE id = {number}")
        poll.look()
    assert listener.texts == ["a", "b"]
    site.sql(f"UPDATE issues SET updated_on = datetime('now', '+3600 seconds') WHERE id = {other}")
    poll.look()
    site.change(number, notes="c")
    poll.look()
    assert listener.texts == ["a", "b", "c"]


def test_more_than_a_page_of_tickets_of_the_same_second_are_all_told(site: Site, listener: Listener) -> None:
    numbers = _many(site, 120)
    listener.poll.look()
    assert sorted(listener.opened) == numbers


def test_tickets_that_change_while_their_pages_are_read_push_no_other_over_the_border(
    site: Site, listener: Listener
) -> None:
    """Those of the first page move behind the last one while the first is read: by offset, others would be lost."""
    numbers = _many(site, 120, apart=True)

    class Busy(Redmine):
        pages = 0

        def changed(self, project: str, since: datetime, skip: int = 0) -> tuple[object, ...]:  # type: ignore[override]
            page = super().changed(project, since, skip)
            self.pages += 1
            if self.pages == 1:
                ids = ",".join(str(ticket.ref.number) for ticket in page)
                site.sql(f"UPDATE issues SET updated_on = datetime('now', '+60 seconds') WHERE id IN ({ids})")
            if self.pages == 2:
                site.change(numbers[0], notes="once more, meanwhile")
                site.sql(f"UPDATE issues SET updated_on = datetime('now', '+600 seconds') WHERE id = {numbers[0]}")
            return page

    plain = listener.bot
    busy = Busy("work", plain._settings, plain._projects, plain._door, plain._repo_map)
    listener.anew(busy).look()
    assert busy.pages > 2
    assert sorted(listener.opened) == numbers
    assert listener.texts == ["once more, meanwhile"]


def _many(site: Site, count: int, *, apart: bool = False) -> list[int]:
    """So many new tickets, by copying one behind the server's back; all of one second, or a few milliseconds apart."""
    first = site.ticket("many")
    columns = (
        "tracker_id, project_id, subject, description, status_id, priority_id, author_id, lock_version, done_ratio, "
        "is_private"
    )
    step = "printf('%.3f', n / 10.0)" if apart else "'0'"
    site.sql(
        f"WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count - 1}) "
        f"INSERT INTO issues ({columns}, created_on, updated_on, lft, rgt) "
        f"SELECT {columns}, strftime('%Y-%m-%d %H:%M:%f', created_on, '+' || {step} || ' seconds'), "
        f"strftime('%Y-%m-%d %H:%M:%f', updated_on, '+' || {step} || ' seconds'), 1, 2 "
        f"FROM issues, n WHERE id = {first}; UPDATE issues SET root_id = id WHERE root_id IS NULL"
    )
    return list(range(first, first + count))


def test_the_bots_own_writes_wake_nobody(site: Site, listener: Listener) -> None:
    number = site.ticket(who="bot")
    listener.bot.put(site.ref(number), "mine", status="In Progress")
    claim = "claimed by leadsman@other at 2026-01-01T00:00:00Z run 20260101-000000-aaaaaa"
    site.change(number, who="bot2", notes=claim)
    site.change(number, who="bot2", notes="claim released: the run failed")
    listener.poll.look()
    assert listener.told == {}


def test_a_private_note_is_told_to_nobody(site: Site, listener: Listener) -> None:
    number = site.ticket(who="bot")
    site.change(number, notes="/run fix", private_notes=True)
    site.change(number, notes="in public")
    listener.poll.look()
    assert listener.texts == ["in public"]


@pytest.mark.parametrize("who", ["bot", "bot3"])
def test_the_time_zone_and_the_order_that_a_user_prefers_change_nothing(
    site: Site, store: Store, tmp_path: Path, who: str
) -> None:
    site.sql("UPDATE user_preferences SET time_zone = 'Tokyo'")
    listener = Listener(site, store, tmp_path, who)
    site.age(site.ticket(), 7200)
    listener.poll.look()
    number = site.ticket()
    site.change(number, notes="one")
    site.change(number, notes="two")
    listener.poll.look()
    assert listener.texts == ["one", "two"]
    (note, *_) = (event for event in listener.told.values() if isinstance(event.what, Commented))
    assert abs(note.at - datetime.now(UTC)) < timedelta(seconds=30)


def test_a_deleted_ticket_stops_nothing(site: Site, listener: Listener) -> None:
    gone, number = site.ticket(), site.ticket()
    site.change(number, notes="still here")

    class Late(Redmine):
        def changed(self, project: str, since: datetime, skip: int = 0) -> tuple[object, ...]:  # type: ignore[override]
            page = super().changed(project, since, skip)
            assert site.call("admin", "delete", f"issues/{gone}.json").status_code == 204
            return page

    plain = listener.bot
    listener.anew(Late("work", plain._settings, plain._projects, plain._door, plain._repo_map)).look()
    assert listener.texts == ["still here"]
    assert "unread" in listener.journal.read_text()


def test_a_project_that_vanished_is_said_and_polled_again(site: Site, listener: Listener) -> None:
    number = site.ticket()
    site.change(number, notes="before")
    site.sql("UPDATE projects SET status = 9 WHERE identifier = 'demo'")
    listener.poll.look()
    assert listener.told == {}
    assert '"unpolled"' in listener.journal.read_text()
    site.sql("UPDATE projects SET status = 1 WHERE identifier = 'demo'")
    listener.poll.look()
    assert listener.texts == ["before"]


def test_a_key_that_is_refused_moves_no_mark(site: Site, listener: Listener) -> None:
    """It would read as anybody, and what only members see would be passed over for good."""
    number = site.ticket(is_private=True)
    site.change(number, notes="for members")
    listener.anew(client(site, key="0" * 40)).look()
    assert listener.told == {}
    listener.poll.look()
    assert listener.texts == ["for members"]


def test_what_could_not_be_kept_is_told_again(site: Site, listener: Listener) -> None:
    number = site.ticket()
    site.change(number, notes="kept")
    listener.fails = True
    listener.poll.look()
    assert listener.told == {}
    assert listener.later or "unpolled" in listener.journal.read_text()
    listener.fails = False
    for ref in listener.later:
        listener.poll.look_at(ref.number, datetime.now(UTC) - timedelta(minutes=2))
    listener.poll.look()
    assert listener.texts == ["kept"]


def test_a_webhook_has_one_ticket_read_and_no_more_told_than_a_poll_would(site: Site, listener: Listener) -> None:
    old, number = site.ticket("old"), site.ticket("new")
    site.change(old, notes="long ago")
    site.age(old, 7200)
    site.change(number, notes="now")
    for one in (old, number, site.facts["hidden"], 999_999):
        listener.poll.look_at(one)
    assert listener.texts == ["now"]
    poll = listener.anew(projects=("secret", "demo"))
    poll._set_mark("secret", _Mark(datetime.fromtimestamp(0, UTC), datetime.fromtimestamp(0, UTC)))
    poll.look_at(old)
    assert listener.texts == ["now"], "another project's mark, where nothing changes, says nothing of this one's"


def test_a_ticket_of_another_project_is_none_of_ours(site: Site, listener: Listener) -> None:
    number = site.ticket()
    site.change(number, notes="moved away")
    site.sql(f"UPDATE issues SET project_id = {site.facts['projects']['secret']} WHERE id = {number}")
    listener.poll.look()
    listener.poll.look_at(number)
    assert listener.told == {}

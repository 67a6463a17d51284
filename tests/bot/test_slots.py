"""Free slots are offered in order; who may not start lets the next one try; an offer costs one look at each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bot.dispatch import Hint, Hints
from bot.fleet import FleetSettings
from bot.home import make
from bot.journal import Journal
from bot.ledger import Ledger
from bot.model import Actor, Command, Commented, Event, Intent, IssueRef, Lease, Limit, Repo, RunId, Sha
from bot.rundir import RunDir, write_json
from bot.slots import Slots, dispatched, pause, paused, unpause
from bot.statefiles import take_lock
from bot.store import StoreSettings, books, runs
from bot.store.engine import Store, open_store
from bot.tasks import Task

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
ALICE = Actor("alice", "1")


class Recorded(list[Hint]):
    """Hints that are only remembered."""

    def put(self, hint: Hint, *, after: float = 0.0) -> None:  # noqa: ARG002 - as the port has it
        self.append(hint)


class Harness:
    """The slots of a host, with a store in `home` that further hosts may share."""

    def __init__(
        self, home: Path, *, name: str = "here", hints: Hints | None = None, url: str = "sqlite", **fleet: Any
    ) -> None:
        self.home = home
        self.name = name
        self.now = 0.0
        self.runs = home / "runs"
        self.store: Store = open_store(StoreSettings(url=url), home)
        self.recorded = Recorded()
        self.hints = hints or self.recorded
        self.load: tuple[float | None, int] = (None, 1)
        self.slots = self.made()
        self.asked = 0
        if fleet:
            self.slots = self.made(fleet=FleetSettings(**fleet))

    def made(self, *, fleet: FleetSettings | None = None, parallel: Mapping[str, int] | None = None) -> Slots:
        return Slots(
            self.store,
            fleet or FleetSettings(),
            self.runs,
            host=self.name,
            parallel=parallel or {},
            load=lambda: self.load,
            hints=self.hints,
            journal=Journal(self.home / "events.jsonl", lambda: 0.0),
            clock=lambda: self.now,
            run_limit=900,
        )

    def ask(self, repo: str, count: int = 1) -> list[str]:
        """Runs that are asked for, one behind the other."""
        asked = []
        with self.store.write() as connection:
            for _ in range(count):
                self.asked += 1
                asked.append(intent(self.asked, repo))
                assert runs.add(connection, asked[-1]) is None
        return [one.run_id for one in asked]

    def offer(self) -> dict[str, str]:
        """slot -> run on this host, after one offer."""
        self.slots.offer()
        return self.held()

    def held(self) -> dict[str, str]:
        with self.store.read() as connection:
            return {held.lease.slot: held.run_id for held in runs.leased(connection, host=self.name)}

    def reasons(self) -> list[str]:
        with self.store.read() as connection:
            return [row.reason for row in runs.waiting_for_a_slot(connection, self.now)]

    def give_back(self, run_id: str) -> None:
        with self.store.write() as connection:
            lease = runs.lease_of(connection, run_id)
            assert lease is not None
            assert runs.give_back(connection, lease)

    def journal(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.home / "events.jsonl").read_text().splitlines()]


def intent(number: int, repo: str) -> Intent:
    subject = IssueRef(Repo("github", repo), number)
    what = Commented(f"c{number}", ALICE, "/run fix", None)
    event = Event(source="github", delivery="d", subject=subject, actor=ALICE, what=what, head_sha=None, at=AT)
    return Intent(
        run_id=RunId(f"20260105-090000-{number:06x}"),
        event=event,
        ordinal=0,
        reason=Command("/run fix"),
        project="p",
        task=Task(name="fix", run=("true",)),
        args=(),
        head=Sha("a" * 40),
        head_why="",
        base_ref="main",
        trusted_from="leadsman.toml",
        limit=Limit(60, 3, "test"),
        answer=f"comment-{number}",
        at=AT + timedelta(seconds=number),
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make(tmp_path / "home")


@pytest.fixture
def host(home: Path) -> Iterator[Harness]:
    host = Harness(home)
    yield host
    host.store.close()


def test_what_waits_when_its_thread_is_put_on_hold_waits_on_and_lets_the_next_one_try(host: Harness) -> None:
    held, other = host.ask("acme/shop"), host.ask("acme/blog")
    with host.store.write() as connection:
        books.hold(connection, "github:acme/shop#1", "bo", "", 0.0)
    assert {"wt-1": other[0]} == host.offer()
    assert ["on_hold: bo put it on hold; `/unhold` lets it start."] == host.reasons()
    with host.store.write() as connection:
        books.unhold(connection, "github:acme/shop#1")
    assert {"wt-1": other[0], "wt-2": held[0]} == host.offer()


def test_the_first_free_slot_in_order_is_given_to_who_came_first(host: Harness) -> None:
    first, second, third = (host.ask(f"acme/r{n}")[0] for n in range(3))
    assert {"wt-1": first, "wt-2": second, "wt-3": third} == host.offer()
    host.give_back(first)
    (fourth,) = host.ask("acme/r9")
    assert {"wt-1": fourth, "wt-2": second, "wt-3": third} == host.offer()
    assert 3 == host.slots.peak


def test_a_busy_repository_does_not_hold_up_the_others(host: Harness) -> None:
    busy = host.ask("acme/busy", 50)
    (free,) = host.ask("acme/free")
    assert {"wt-1": busy[0], "wt-2": free} == host.offer()
    assert {"repo_busy: 1 of at most 1 runs go on in this repository: one has to end."} == set(host.reasons())
    host.give_back(busy[0])
    assert {"wt-1": busy[1], "wt-2": free} == host.offer()


def test_a_project_may_have_several_at_a_time_whatever_way_its_name_is_spelled(host: Harness) -> None:
    host.slots = host.made(parallel={"github:acme/shop": 2})
    first, second, _third = host.ask("Acme/Shop", 3)
    assert {"wt-1": first, "wt-2": second} == host.offer()
    assert ["repo_busy: 2 of at most 2 runs go on in this repository: one has to end."] == host.reasons()


def test_a_late_release_of_an_old_lease_frees_nothing(host: Harness) -> None:
    first, second = host.ask("acme/a", 2)
    host.offer()
    with host.store.write() as connection:
        old = runs.lease_of(connection, first)
        assert old is not None
        assert runs.give_back(connection, old)
    assert {"wt-1": second} == host.offer()
    with host.store.write() as connection:
        assert not runs.give_back(connection, old)
    assert {"wt-1": second} == host.held()


def test_a_run_that_stepped_back_waits_until_it_is_due_and_lets_the_next_one_try(host: Harness) -> None:
    away, other = host.ask("acme/a", 2)
    host.offer()
    ledger = Ledger(host.store, host.name, Journal(host.home / "events.jsonl", lambda: 0.0), host.hints)
    ledger.note(away, tries=1, reason="the tracker is away", due_at=host.now + 10)
    assert ledger.step_back(away)
    assert {"wt-1": other} == host.offer()
    host.give_back(other)
    host.now += 9
    assert {} == host.offer()
    host.now += 1
    assert {"wt-1": away} == host.offer()


def test_a_second_holder_of_a_slot_and_a_second_slot_of_a_run_are_refused(host: Harness) -> None:
    first, second = (host.ask(f"acme/{name}")[0] for name in "ab")
    host.offer()
    for slot, run_id in (("wt-1", second), ("wt-9", first)):
        with pytest.raises(Exception, match="UNIQUE"), host.store.write() as connection:
            runs.take_slot(connection, Lease(slot, "x", "here"), run_id, "r", 0.0)
    assert {"wt-1": first, "wt-2": second} == host.held()


def test_only_live_runs_count_against_the_cap_and_a_run_that_has_ended_still_holds_its_slot(home: Path) -> None:
    host = Harness(home, slots=4, max_concurrent=1)
    first, second, third = (host.ask(f"acme/{name}")[0] for name in "abc")
    assert {"wt-1": first} == host.offer()  # not begun yet, and about to
    assert ["crew_cap_reached: 1 runs are live and the cap is 1: one has to end."] * 2 == host.reasons()
    run = RunDir(host.runs / first)
    run.path.mkdir(parents=True)
    write_json(run.status, {"state": "running"})
    lock = take_lock(run.alive_lock)
    assert lock is not None
    assert {"wt-1": first} == host.offer()
    os.close(lock)  # its supervisor has ended; its checks, or people, are still to come
    assert {"wt-1": first, "wt-2": second} == host.offer()  # read anew before the third: the second is about to begin
    assert third not in host.held().values()
    host.store.close()


def test_fourteen_finished_runs_against_a_cap_of_four_admit_four(home: Path) -> None:
    host = Harness(home, slots=18, max_concurrent=4)
    for run_id in (host.ask(f"acme/done{n}")[0] for n in range(14)):
        run = RunDir(host.runs / run_id)
        run.path.mkdir(parents=True)
        write_json(run.status, {"state": "done"})
        run.alive_lock.touch()
        with host.store.write() as connection:
            slot = f"wt-{len(host.held()) + 1}"
            runs.take_slot(connection, Lease(slot, run_id, "here"), run_id, run_id, 0.0)
            runs.note(connection, run_id, phase="check")
    fresh = [host.ask(f"acme/new{n}")[0] for n in range(5)]
    assert set(fresh[:4]) == set(host.offer().values()) & set(fresh)
    assert ["crew_cap_reached: 4 runs are live and the cap is 4: one has to end."] == host.reasons()
    host.store.close()


def test_a_pause_holds_until_it_is_ended_and_the_first_to_pause_is_named(host: Harness) -> None:
    with host.store.write() as connection:
        assert pause(connection, "olga", "now")
        assert not pause(connection, "otto", "later")
    (run_id,) = host.ask("acme/a")
    assert {} == host.offer()
    assert ["paused: New runs are paused; `leadsman unpause` lets them start."] == host.reasons()
    with host.store.write() as connection:
        found = paused(connection)
        assert found is not None
        assert "olga" == found.by
        assert unpause(connection)
        assert not unpause(connection)
    assert {"wt-1": run_id} == host.offer()


def test_an_overloaded_host_is_looked_at_again_by_itself(host: Harness) -> None:
    host.ask("acme/a")
    host.load = (4.1, 2)
    assert host.slots.offer() is not None
    assert host.reasons()[0].startswith("host_overloaded: The load is 4.1 on 2 CPUs")
    host.load = (4.0, 2)
    assert host.slots.offer() is None
    assert 1 == len(host.held())


def test_each_decision_is_one_line_and_the_same_reason_is_said_once(host: Harness) -> None:
    first, second = host.ask("acme/a", 2)
    for _ in range(3):
        host.offer()
    told = [(line["event"], line["run"]) for line in host.journal()]
    assert [("admitted", first), ("refused", second)] == told
    assert [Hint("answer", "comment-2")] == [hint for hint in host.recorded if hint.kind == "answer"]
    with host.store.read() as connection:
        assert 1 == dispatched(connection)


def test_an_offer_to_thousands_that_wait_is_a_handful_of_statements(host: Harness) -> None:
    for n in range(4):
        host.ask(f"acme/r{n}")
    host.offer()
    host.ask("acme/r0", 2_000)
    host.offer()  # their reasons are written down once
    statements: list[str] = []

    def count(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    sa.event.listen(host.store.engine, "before_cursor_execute", count)
    host.offer()
    assert len(statements) <= 10, statements
    statements.clear()
    with host.store.read() as connection:
        first = next(iter(runs.leased(connection)))
    host.give_back(first.run_id)
    statements.clear()
    host.offer()
    assert 4 == len(host.held())
    assert len(statements) <= 20, statements


@pytest.fixture
def two(home: Path) -> Iterator[tuple[Harness, Harness]]:
    """Two hosts that share a store, with two slots each."""
    anna, zoe = (Harness(home, name=name, slots=2) for name in ("anna", "zoe"))
    for host in (anna, zoe):
        host.slots.join()
    yield anna, zoe
    for host in (anna, zoe):
        host.store.close()


def test_two_hosts_share_what_waits_and_each_slot_is_one_hosts_own(two: tuple[Harness, Harness]) -> None:
    anna, zoe = two
    first, second, third, fourth, fifth = (anna.ask(f"acme/r{n}")[0] for n in range(5))
    assert {"wt-1": first} == anna.offer()  # then it is the fuller one, and leaves the rest
    assert {"wt-1": second} == zoe.offer()  # then both are half full: by name it is the other's turn again
    assert {"wt-1": first, "wt-2": third} == anna.offer()
    assert {"wt-1": second, "wt-2": fourth} == zoe.offer()
    assert {"wt-1": first, "wt-2": third} == anna.offer()
    assert ["crew_cap_reached: 4 runs are live and the cap is 4: one has to end."] == anna.reasons()
    zoe.give_back(second)
    assert {"wt-1": first, "wt-2": third} == anna.offer()
    assert {"wt-1": fifth, "wt-2": fourth} == zoe.offer()
    assert (2, 2) == (anna.slots.peak, zoe.slots.peak)


def test_a_host_that_is_gone_is_waited_for_no_longer_and_keeps_its_slots(two: tuple[Harness, Harness]) -> None:
    anna, zoe = two
    kept = anna.ask("acme/kept")[0]
    anna.offer()
    zoe.now = 90.0
    (first, busy) = (anna.ask(name)[0] for name in ("acme/a", "acme/kept"))
    assert {"wt-1": first} == zoe.offer()
    last = anna.ask("acme/b")[0]
    assert {"wt-1": first} == zoe.offer()  # as full as the other, which may still be there
    zoe.now = 91.0
    assert {"wt-1": first, "wt-2": last} == zoe.offer()
    assert {"wt-1": kept} == anna.held()
    assert ["repo_busy: 1 of at most 1 runs go on in this repository: one has to end."] == anna.reasons()
    zoe.give_back(last)
    zoe.now = 1801.0  # twice the time limit: nothing that it ran goes on
    assert {"wt-1": first, "wt-2": busy} == zoe.offer()
    assert {"wt-1": kept} == anna.held()


def test_a_host_that_ends_well_is_not_waited_for_and_one_that_comes_back_is(two: tuple[Harness, Harness]) -> None:
    anna, zoe = two
    anna.slots.leave()
    first = anna.ask("acme/a")[0]
    assert {"wt-1": first} == zoe.offer()
    anna.slots.join()
    second = anna.ask("acme/b")[0]
    assert {"wt-1": first} == zoe.offer()
    assert {"wt-1": second} == anna.offer()


def test_an_overloaded_host_leaves_it_to_the_others(two: tuple[Harness, Harness]) -> None:
    anna, zoe = two
    anna.load = (9.0, 1)
    anna.slots = anna.made(fleet=FleetSettings(slots=2))
    run_id = anna.ask("acme/a")[0]
    assert {} == anna.offer()
    assert [""] == anna.reasons()
    assert {"wt-1": run_id} == zoe.offer()


def test_a_run_on_another_host_counts_until_the_index_says_that_its_command_has_ended(home: Path) -> None:
    anna, zoe = (Harness(home, name=name, slots=2, max_concurrent=1) for name in ("anna", "zoe"))
    for host in (anna, zoe):
        host.slots.join()
    first, second = (anna.ask(f"acme/{name}")[0] for name in "ab")
    assert {"wt-1": first} == anna.offer()
    assert {} == zoe.offer()
    with anna.store.write() as connection:
        runs.note(connection, first, phase="follow")
    assert {"wt-1": second} == zoe.offer()
    for host in (anna, zoe):
        host.store.close()

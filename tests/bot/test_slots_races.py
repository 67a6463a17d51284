"""Two hundred processes ask for four slots: never two on one slot, never more than four, and all get their turn."""

from __future__ import annotations

import fcntl
import os
import select
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from bot.dispatch import Hint
from bot.errors import Unavailable
from bot.home import make
from bot.model import Lease
from bot.store import runs
from bot.store.engine import Store
from tests.bot.test_slots import Harness, intent
from tests.postgres import running

PROCESSES = 200
SLOTS = 4
NET = 5.0
"""Seconds after which a process looks for itself: a busy store may have let down whoever was to tell it."""


class Bells:
    """Hints between processes: a run that is given a slot hears of it through a FIFO of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def listen(self, run_id: str) -> int:
        os.mkfifo(self._folder / run_id)
        return os.open(self._folder / run_id, os.O_RDWR | os.O_NONBLOCK)

    def put(self, hint: Hint, *, after: float = 0.0) -> None:  # noqa: ARG002 - as the port has it
        if hint.kind == "run":
            bell = os.open(self._folder / hint.key, os.O_WRONLY | os.O_NONBLOCK)
            os.write(bell, b"!")
            os.close(bell)


Made = TypeVar("Made")


def persist(what: Callable[[], Made]) -> Made:
    """A store that two hundred write to may be busy for longer than one of them waits."""
    for _ in range(100):
        try:
            return what()
        except Unavailable:
            continue
    raise AssertionError("the store was busy a hundred times")


def lease_of(store: Store, run_id: str) -> Lease | None:
    with store.read() as connection:
        return runs.lease_of(connection, run_id)


def held_alone(home: Path, lease: Lease) -> None:
    """Holds the slot for a moment; another holder would be met here."""
    with (home / f"{lease.host}-{lease.slot}.held").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.sched_yield()


def take_a_turn(home: Path, number: int, gate: int) -> None:
    """One process: asks for a run of its own, waits for its slot, holds it, and gives it back."""
    bells = Bells(home)
    host = persist(lambda: Harness(home, hints=bells, slots=SLOTS))
    mine = intent(number, f"acme/r{number % 100}")  # two of each repository
    bell = bells.listen(mine.run_id)
    select.select([gate], [], [])

    def ask() -> None:
        with host.store.write() as connection:
            runs.add(connection, mine)

    persist(ask)
    host.slots.offer()
    while (lease := lease_of(host.store, mine.run_id)) is None:
        if not select.select([bell], [], [], NET)[0]:
            host.slots.offer()
    held_alone(home, lease)

    def give_back() -> None:
        with host.store.write() as connection:
            assert runs.give_back(connection, lease)
            runs.note(connection, mine.run_id, phase="closed", closed_at=1.0)

    persist(give_back)
    host.slots.offer()
    host.store.close()


def in_a_process(work: Callable[[], None]) -> int:
    """The pid of a child that does it, and ends with 0 if that went well."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001  # a child of a fork: nothing may come back from here
        traceback.print_exc()
    finally:
        os._exit(code)


@pytest.mark.timeout(300)
def test_two_hundred_processes_take_turns_on_four_slots(tmp_path: Path) -> None:
    home = make(tmp_path / "home")
    Harness(home).store.close()
    gate, opened = os.pipe()
    children = [in_a_process(lambda n=n: take_a_turn(home, n, gate)) for n in range(1, PROCESSES + 1)]  # type: ignore[misc]
    os.write(opened, b"go")  # nobody reads it: it stays readable for all
    assert [0] * PROCESSES == [os.waitpid(pid, 0)[1] for pid in children]
    host = Harness(home)
    assert {} == host.held()
    assert [] == host.reasons()
    admitted = [line for line in host.journal() if line["event"] == "admitted"]
    assert PROCESSES == len({line["run"] for line in admitted}) == len(admitted)
    assert {f"wt-{n}" for n in range(1, SLOTS + 1)} == {line["slot"] for line in admitted}
    host.store.close()


CAP = 3


def serve(name: str, home: Path, url: str, gate: int) -> None:
    """One host: offers, holds what it got over its next look, gives that back, until nothing is open any more."""
    host = persist(lambda: Harness(home, name=name, url=url, slots=2, max_concurrent=CAP))
    host.now = 1.0
    persist(host.slots.join)
    select.select([gate], [], [])
    mine: list[runs.Taken] = []
    while persist(lambda: is_anything_open(host.store)):
        host.slots.offer()
        done, mine = mine, persist(lambda: held_now(host.store, name))
        for taken in done:
            held_alone(home, taken.lease)
            persist(lambda taken=taken: end(host.store, taken))  # type: ignore[misc]
    host.store.close()


def is_anything_open(store: Store) -> bool:
    with store.read() as connection:
        return bool(runs.open_runs(connection))


def held_now(store: Store, name: str) -> list[runs.Taken]:
    """What that host holds; on all of them together never too much, and never two in one repository."""
    with store.read() as connection:
        held = runs.leased(connection)
    assert len(held) <= CAP, held
    assert len({taken.repo for taken in held}) == len(held), held
    return [taken for taken in held if taken.lease.host == name]


def end(store: Store, taken: runs.Taken) -> None:
    with store.write() as connection:
        if runs.give_back(connection, taken.lease):
            runs.note(connection, taken.run_id, phase="closed", closed_at=1.0)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.needs("postgresql"))])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield "sqlite"
    else:
        with running() as cluster:
            yield cluster.database()


@pytest.mark.timeout(300)
def test_two_hosts_with_one_store_never_over_book_and_both_work(tmp_path: Path, url: str) -> None:
    home = make(tmp_path / "home")
    host = Harness(home, url=url)
    for n in range(60):
        host.ask(f"acme/r{n % 20}")
    host.store.close()
    gate, opened = os.pipe()
    children = [in_a_process(lambda name=name: serve(name, home, url, gate)) for name in ("anna", "zoe")]  # type: ignore[misc]
    os.write(opened, b"go")
    assert [0, 0] == [os.waitpid(pid, 0)[1] for pid in children]
    admitted = [line for line in host.journal() if line["event"] == "admitted"]
    assert 60 == len({line["run"] for line in admitted}) == len(admitted)
    assert {("anna", "wt-1"), ("zoe", "wt-1")} <= {(line["host"], line["slot"]) for line in admitted}

"""Two hundred processes ask for four slots: never two on one slot, never more than four, and all get their turn."""

from __future__ import annotations

import fcntl
import os
import select
import traceback
from collections.abc import Callable
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
    with (home / f"{lease.slot}.held").open("w") as file:
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

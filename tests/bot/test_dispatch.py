"""Hints: coalesced, never worked twice at once, never lost while the process lives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bot.dispatch import Dispatcher, Hint
from bot.errors import Unavailable

BOUND = 60.0


@contextmanager
def dispatching(work: dict[str, Callable[[str], float | None]], threads: int = 4) -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(threads=threads)
    dispatcher.start(work)
    try:
        yield dispatcher
    finally:
        dispatcher.stop(BOUND)


def test_a_hint_that_comes_while_its_work_goes_on_is_worked_once_more_after_it() -> None:
    entered, leave, twice = threading.Event(), threading.Event(), threading.Event()
    calls: list[str] = []

    def work(key: str) -> None:
        calls.append(key)
        entered.set()
        if len(calls) == 2:
            twice.set()
        assert leave.wait(BOUND)

    with dispatching({"run": work}) as dispatcher:
        dispatcher.put(Hint("run", "a"))
        assert entered.wait(BOUND)
        for _ in range(5):
            dispatcher.put(Hint("run", "a"))
        leave.set()
        assert twice.wait(BOUND)
    assert ["a", "a"] == calls


def test_the_same_thing_is_never_worked_twice_at_once_and_others_go_on_beside_it() -> None:
    lock, inside, most = threading.Lock(), 0, 0
    entered, other_went_on, done = threading.Event(), threading.Event(), threading.Semaphore(0)

    def work(key: str) -> None:
        nonlocal inside, most
        if key == "other":
            other_went_on.set()
            return
        with lock:
            inside += 1
            most = max(most, inside)
        entered.set()
        assert other_went_on.wait(BOUND)
        with lock:
            inside -= 1
        done.release()

    with dispatching({"run": work}) as dispatcher:
        dispatcher.put(Hint("run", "same"))
        assert entered.wait(BOUND)
        dispatcher.put(Hint("run", "same"))
        dispatcher.put(Hint("run", "other"))
        assert done.acquire(timeout=BOUND)
        assert done.acquire(timeout=BOUND)
    assert most == 1


def test_what_one_is_at_when_it_is_stopped_is_not_worked_beside_it_by_the_next() -> None:
    entered, leave, elsewhere, after = (threading.Event() for _ in range(4))
    order: list[str] = []

    def first(key: str) -> None:
        entered.set()
        assert leave.wait(BOUND)
        order.append(f"first {key}")

    def second(key: str) -> None:
        order.append(f"second {key}")
        (elsewhere if key == "other" else after).set()

    with dispatching({"run": first}) as one:
        one.put(Hint("run", "same"))
        assert entered.wait(BOUND)
        two = Dispatcher(threads=4, at_work=one.at_work)
        one.stop(0.0)
        two.start({"run": second})
        two.put(Hint("run", "same"))
        two.put(Hint("run", "other"))
        assert elsewhere.wait(BOUND)
        leave.set()
        assert after.wait(BOUND)
        two.stop(BOUND)
    assert ["second other", "first same", "second same"] == order


def test_work_that_fails_does_not_take_its_thread_along() -> None:
    worked = threading.Event()

    def work(key: str) -> None:
        if key == "bad":
            raise ValueError(key)
        worked.set()

    with dispatching({"run": work}, threads=1) as dispatcher:
        dispatcher.put(Hint("run", "bad"))
        dispatcher.put(Hint("run", "good"))
        assert worked.wait(BOUND)


def test_work_that_asks_for_it_is_looked_at_again_later() -> None:
    again = threading.Event()
    calls: list[str] = []

    def work(key: str) -> float | None:
        calls.append(key)
        if len(calls) == 2:
            again.set()
            return None
        return 0.01

    with dispatching({"run": work}) as dispatcher:
        dispatcher.put(Hint("run", "a"), after=0.01)
        assert again.wait(BOUND)
    assert ["a", "a"] == calls


def test_what_comes_by_the_clock_has_one_clock_however_often_it_is_hinted_at() -> None:
    worked = threading.Semaphore(0)

    def work(_key: str) -> float:
        worked.release()
        return 3600.0

    with dispatching({"scan": work}) as dispatcher:
        for after in (0.0, 0.0, 1800.0, 7200.0, 0.0):
            dispatcher.put(Hint("scan"), after=after)
            if not after:
                assert worked.acquire(timeout=BOUND)
    assert [Hint("scan")] == list(dispatcher._alarms)
    assert 2 >= len(dispatcher._later), "the first, and the one that was set for earlier"


def test_an_earlier_alarm_counts_and_the_later_one_is_forgotten() -> None:
    worked = threading.Semaphore(0)
    with dispatching({"lane": lambda _key: worked.release()}) as dispatcher:
        dispatcher.put(Hint("lane", "a"), after=0.3)
        dispatcher.put(Hint("lane", "a"), after=0.01)
        assert worked.acquire(timeout=BOUND)
        assert {} == dispatcher._alarms
        assert not worked.acquire(timeout=0.6)


def test_work_whose_store_is_away_is_said_in_one_line_and_an_accident_with_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def away(_key: str) -> None:
        raise Unavailable("The store can't be read: it is away")

    def accident(_key: str) -> None:
        raise ZeroDivisionError("an accident")

    done = threading.Event()
    work: dict[str, Callable[[str], float | None]] = {"sweep": away, "run": accident, "last": lambda _key: done.set()}
    with dispatching(work, threads=1) as dispatcher:
        for kind in work:
            dispatcher.put(Hint(kind))
        assert done.wait(BOUND)
    assert [("put off: sweep: The store can't be read: it is away", False), ("work failed: run ", True)] == [
        (record.getMessage(), record.exc_info is not None) for record in caplog.records
    ]

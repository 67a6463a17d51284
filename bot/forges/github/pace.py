"""How fast one token may go: GitHub's limits, kept by asking nothing while they last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from bot.errors import OutOfTurn, Unavailable

LONGEST_TURN = 8.0
"""Seconds a call waits for its turn to write; a longer queue is told to come back instead. Who waits keeps a thread
from what other accounts and other forges ask for: a second apart, these are half of all threads."""

_PENALTY = timedelta(minutes=1)
_LONGEST_PENALTY = timedelta(hours=1)


class Pace:
    """One account's, or one installation's of an App: each has limits of its own.

    After a refusal nothing is asked before its time is over: GitHub bans who goes on.
    https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
    """

    def __init__(self, pause: float, clock: Callable[[], datetime]) -> None:
        self._pause = pause
        self._clock = clock
        self._lock = threading.Lock()
        self._next_write = 0.0
        self._closed_until: datetime | None = None
        self._refusals = 0

    def enter(self, *, writes: bool) -> None:
        """Returns when the call may be made. Raises `Unavailable` where that is too far off."""
        with self._lock:
            now = self._open()
            wait = self._take_turn(now) if writes else 0.0
        if wait > 0:
            time.sleep(wait)
            with self._lock:
                self._open()  # a call that was made meanwhile may have been one too many

    def _open(self) -> datetime:
        """Now, which is not within the time that GitHub wants to be left alone."""
        now = self._clock()
        if self._closed_until is not None and now < self._closed_until:
            until = self._closed_until
            raise Unavailable(f"GitHub allows no more calls before {until:%H:%M:%S} UTC.", retry_at=until)
        return now

    def _take_turn(self, now: datetime) -> float:
        """Seconds until the turn to write that is now taken."""
        moment = time.monotonic()
        turn = max(moment, self._next_write)
        if turn - moment > LONGEST_TURN:
            retry_at = now + timedelta(seconds=turn - moment)
            raise OutOfTurn("Too many writes wait for their turn at GitHub.", retry_at=retry_at)
        self._next_write = turn + self._pause
        return turn - moment

    def refused(self, until: datetime | None) -> datetime:
        """GitHub said that it is too much: for how long, where it said so. Returns when to ask again."""
        with self._lock:
            if until is None:
                penalty = min(_PENALTY * 2**self._refusals, _LONGEST_PENALTY)
                until = self._clock() + penalty
            self._refusals = min(self._refusals + 1, 10)
            self._closed_until = max(until, self._closed_until or until)
            return self._closed_until

    def worked(self) -> None:
        with self._lock:
            self._refusals = 0

"""Carries hints to the work that may be ready. A hint says only "look at this": what is due is in the store.

The same hint is never worked twice at once, and one that comes while its work goes on is worked once more after it.
So lost hints cost time (a sweep finds what they left), and repeated ones cost nothing.
"""

from __future__ import annotations

import heapq
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bot.errors import Unavailable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Hint:
    """`kind` names the work (`run`, `lane`, ...), `key` what it is about."""

    kind: str
    key: str = ""


class Hints(Protocol):
    """The port that an engine stands behind: this module's threads on one machine, a queue's workers between hosts."""

    def put(self, hint: Hint, *, after: float = 0.0) -> None:
        """Asks for `hint` to be worked, `after` so many seconds."""


AGAIN_SECONDS = 30.0
"""After so long what failed is tried again."""

Work = Callable[[str], float | None]
"""Works the thing that `key` names; returns in how many seconds to look again, or None."""


@dataclass(frozen=True, slots=True)
class AtWork:
    """What is worked now, and is not to be worked beside that by whoever comes after; `wake` guards it."""

    wake: threading.Condition = field(default_factory=threading.Condition)
    hints: set[Hint] = field(default_factory=set)


class Dispatcher:
    """The in-process engine: threads that wait on a condition, and a heap of what is due later."""

    def __init__(self, *, threads: int, at_work: AtWork | None = None) -> None:
        """`at_work`: of one that ends before this one starts, and may be at something yet."""
        self.at_work = at_work or AtWork()
        self._count = threads
        self._wake = self.at_work.wake
        self._ready: deque[Hint] = deque()
        self._queued: set[Hint] = set()
        self._busy = self.at_work.hints
        self._again: set[Hint] = set()
        self._later: list[tuple[float, Hint]] = []
        self._alarms: dict[Hint, float] = {}
        """When each is due next, and no more than once: who hints at what comes by the clock sets no second clock."""
        self._stopping = False
        self._threads: list[threading.Thread] = []

    def start(self, work: Mapping[str, Work]) -> None:
        """`work`: by a hint's kind. It comes now, because what works hints also puts them; those put before wait."""
        self._threads = [
            threading.Thread(target=self._loop, args=(work,), name=f"work-{n}", daemon=True) for n in range(self._count)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> None:
        """Takes no more work; waits up to `timeout` seconds in all for what is under way."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        end = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def put(self, hint: Hint, *, after: float = 0.0) -> None:
        with self._wake:
            if after > 0:
                self._set_alarm(hint, after)
            else:
                self._enqueue(hint)

    def _set_alarm(self, hint: Hint, after: float) -> None:
        at = time.monotonic() + after
        if at < self._alarms.get(hint, math.inf):
            self._alarms[hint] = at
            heapq.heappush(self._later, (at, hint))
            self._wake.notify()

    def _enqueue(self, hint: Hint) -> None:
        if hint in self._busy:
            self._again.add(hint)
        elif hint not in self._queued:
            self._queued.add(hint)
            self._ready.append(hint)
            self._wake.notify()

    def _loop(self, work: Mapping[str, Work]) -> None:
        while (hint := self._next()) is not None:
            again = _attend(work, hint)
            with self._wake:
                self._busy.discard(hint)
                if self._stopping:
                    self._wake.notify_all()  # whoever comes after may have waited for this
                if hint in self._again:
                    self._again.discard(hint)
                    self._enqueue(hint)
                elif again is not None:
                    self._set_alarm(hint, again)

    def _next(self) -> Hint | None:
        with self._wake:
            while not self._stopping:
                now = time.monotonic()
                for hint in self._again - self._busy:  # one before us was at it
                    self._again.discard(hint)
                    self._enqueue(hint)
                while self._later and self._later[0][0] <= now:
                    at, due = heapq.heappop(self._later)
                    if self._alarms.get(due) == at:  # else it was set for earlier meanwhile
                        del self._alarms[due]
                        self._enqueue(due)
                if self._ready:
                    hint = self._ready.popleft()
                    self._queued.discard(hint)
                    self._busy.add(hint)
                    return hint
                self._wake.wait(self._later[0][0] - now if self._later else None)
            return None


def _attend(work: Mapping[str, Work], hint: Hint) -> float | None:
    try:
        return work[hint.kind](hint.key)
    except Unavailable as problem:  # a store or a remote that is away fails everything at once: a line each will do
        log.warning("put off: %s: %s", f"{hint.kind} {hint.key}".rstrip(), problem)
        return AGAIN_SECONDS
    except Exception:  # the border: one thing's accident must not stop the others, nor this thread
        log.exception("work failed: %s %s", hint.kind, hint.key)
        return AGAIN_SECONDS

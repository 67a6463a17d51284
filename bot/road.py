"""The road of a run, from an accepted intent to nothing left to do.

`advance` looks at what is, does the next idempotent thing, records it as a file in the run's directory, and goes on. It
can be called at any time, twice, by a restarted server, and ends at the same place. Which files there are says which
step is next (`next_step`); nothing is kept in memory.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from bot.ages import OURS, Ages, Sealed, Step
from bot.dispatch import Hint, Hints
from bot.errors import OutOfTurn, Unavailable
from bot.journal import Journal
from bot.ledger import Ledger
from bot.model import UNSEEN, AnyTicket, Claimable, Failed
from bot.ownhand import OwnHand
from bot.rundir import RunDir
from bot.steps import Steps, Wait
from bot.store import runs
from bot.store.engine import Store
from gitops.trash import let_us_in

log = logging.getLogger(__name__)

START_TRIES = 6
"""How often a run's start is tried while the outside does not answer, before it is given up (about two minutes)."""

TOLD_TRIES = 2
"""After so many, the comment says what it waits for; a hiccup is not worth an edit."""

END_TRIES = 40
"""How often its end is tried: the work is done and worth waiting for (about three hours)."""

STARTED = frozenset({"start", "blocked", "interrupted", "follow", "check", "publish"})
"""Phases of a run whose command was started."""


class Observer(Protocol):
    """Told of every step, before and after: the timeline, and whoever wants to look."""

    def __call__(self, run_id: str, step: Step, *, ended: bool) -> None: ...


def next_step(has: Callable[[str], bool], *, started: bool, lease: bool) -> Step | None:
    """Which step is next, from which ages there are. None: nothing is left to do."""
    if has("closed"):
        return None
    if has("held"):
        return "give_back" if lease else "close"
    if has("ended"):
        return _after_the_end(has, lease=lease)
    if not has("claim"):
        return "claim"
    if not has("run"):
        return "prepare"
    if not started:
        return "start"
    if not has("sealed"):
        return "follow"
    return "publish" if has("checked") else "check"


def _after_the_end(has: Callable[[str], bool], *, lease: bool) -> Step:
    if lease:
        return "give_back"
    if not has("report"):
        return "report"
    return "close" if has("left") else "leave"


class Road:
    """Advances runs."""

    def __init__(
        self,
        *,
        store: Store,
        runs_dir: Path,
        ledger: Ledger,
        steps: Steps,
        journal: Journal,
        hints: Hints,
        observe: Observer,
        patient: bool,
        clock: Callable[[], float],
    ) -> None:
        """`patient`: whoever started us waits for what is away."""
        self._store = store
        self._runs_dir = runs_dir
        self._ledger = ledger
        self._steps = steps
        self._journal = journal
        self._hints = hints
        self._observe = observe
        self._patient = patient
        self._clock = clock
        self._hands: dict[str, OwnHand] = {}
        self._work: Mapping[Step, Callable[[Ages], Wait | None]] = {
            "claim": steps.claim,
            "prepare": steps.prepare,
            "start": steps.start,
            "follow": steps.follow,
            "check": steps.check,
            "publish": steps.publish,
            "give_back": steps.give_back,
            "report": steps.report,
            "leave": steps.leave,
            "close": steps.close,
        }

    def advance(self, run_id: str) -> float | None:
        """Takes the run as far as it goes now. Returns in how many seconds to look again, or None."""
        if not self._ledger.may_be_ours(run_id):
            return None
        with self._alone(run_id) as mine:
            if not mine:
                return 1.0
            try:
                ages = self._ages(run_id)
                return None if ages is None else self._walk(run_id, ages)
            except (Unavailable, OSError) as problem:
                return self._put_off(run_id, self._files(run_id), problem)
            except Exception as problem:  # the border: an accident of ours is bounded like a stranger's
                log.exception("run %s can't go on", run_id)
                return self._put_off(run_id, self._files(run_id), problem)

    def _walk(self, run_id: str, ages: Ages) -> float | None:
        while True:
            if changed := ages.put_right():
                self._journal.say("meddled", run=run_id, files=changed)
            lease = self._ledger.lease(run_id)
            step = next_step(ages.has, started=self._started(ages), lease=lease is not None)
            if step is None:
                if lease is None:
                    self._steps.enter_closed(ages)
                self._hands.pop(run_id, None)
                return None
            if (
                step == "claim"
                and lease is None
                and (self._ledger.called_off(ages) is None or not self._ledger.adopt(run_id))
            ):
                return None  # it waits for a slot; the next one that is given back is offered to it
            self._observe(run_id, step, ended=False)
            wait = self._work[step](ages)
            if wait is not None:
                self._hints.put(Hint("state"))  # it stands here for a while
                return wait.seconds
            self._observe(run_id, step, ended=True)
            self._ledger.note(run_id, tries=0, **({} if step == "close" else {"phase": step, "reason": ""}))

    def _started(self, ages: Ages) -> bool:
        """By its status, or by the index: a run may have taken its own away."""
        if RunDir(ages.path).status.exists():
            return True
        with self._store.read() as connection:
            row = runs.get(connection, ages.path.name)
        return row is not None and row.phase in STARTED

    @contextmanager
    def _alone(self, run_id: str) -> Iterator[bool]:
        folder = self._runs_dir / run_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        let_us_in(folder)
        handle = os.open(folder / "advance.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(handle)

    def _files(self, run_id: str) -> Ages:
        folder = self._runs_dir / run_id
        if run_id not in self._hands:
            self._hands[run_id] = OwnHand(folder, OURS)
        return Ages(folder, self._hands[run_id])

    def _ages(self, run_id: str) -> Ages | None:
        """The run's files; its intent is written from the index where a crash came before it."""
        ages = self._files(run_id)
        if not ages.has("intent"):
            with self._store.read() as connection:
                intent = runs.intent(connection, run_id)
            if intent is None:
                return None
            ages.write("intent", intent)
        return ages

    def _put_off(self, run_id: str, ages: Ages, problem: Exception) -> float | None:
        tries = self._ledger.tries(run_id) + (not isinstance(problem, OutOfTurn))
        at = problem.retry_at if isinstance(problem, Unavailable) else None
        delay = min(300.0, 2.0**tries) if at is None else max(1.0, at.timestamp() - self._clock())
        self._ledger.note(run_id, tries=tries, reason=str(problem)[:500], due_at=self._clock() + delay)
        self._journal.say("put_off", run=run_id, tries=tries, why=str(problem))
        started, waits = self._started(ages), self._waits_for_a_tracker(ages, problem)
        if tries >= (END_TRIES if started or waits else START_TRIES) and not ages.has("ended"):
            self._steps.end(ages, Failed(stage_of(ages, started=started), f"{problem} (tried {tries} times)."))
            return 0.0
        if tries == TOLD_TRIES:
            self._hints.put(Hint("answer", ages.intent.answer))
        if waits and self._ledger.step_back(run_id):
            self._hints.put(Hint("waiting"))
            self._hints.put(Hint("waiting"), after=delay)
            return None
        return delay

    def _waits_for_a_tracker(self, ages: Ages, problem: Exception) -> bool:
        """What a person asked for on a ticket waits for a tracker that is away, hours if need be, and keeps no slot
        meanwhile. What a schedule took is taken again by itself, and a command that works without a server ends."""
        if not (self._patient and isinstance(problem, Unavailable) and ages.has("intent")):
            return False
        if any(ages.has(age) for age in ("claim", "held", "ended")):
            return False
        event = ages.intent.event
        return isinstance(event.subject, AnyTicket) and not isinstance(event.what, Claimable)


def stage_of(ages: Ages, *, started: bool) -> str:
    """Where a run is given up that waits for what does not answer."""
    if not ages.has("checked"):
        return "verify" if ages.has("sealed") else "seal" if started else "start"
    sealed, intent = ages.need("sealed", Sealed), ages.intent
    pushes = intent.task.publish != "none" and sealed.tip != intent.head
    return UNSEEN if pushes else "publish"

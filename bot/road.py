"""The road of a run, from an accepted intent to nothing left to do.

`advance` looks at what is, does the next idempotent thing, records it as a file in the run's directory, and goes on. It
can be called at any time, twice, by a restarted server, and ends at the same place. Which files there are says which
step is next (`next_step`); nothing is kept in memory.
"""

from __future__ import annotations

import fcntl
import logging
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from bot import handoff, liveness, stopping
from bot.ages import OURS, Ages, Checked, Closed, Ended, Left, Sealed, Step
from bot.claims import Claims
from bot.dispatch import Hint, Hints
from bot.errors import Unavailable
from bot.journal import Journal
from bot.landing import Landing, Moved
from bot.launchers import start
from bot.model import (
    AnyTicket,
    Blocked,
    Cancelled,
    Claim,
    Claimable,
    Failed,
    Held,
    Intent,
    Lease,
    Lost,
    Outcome,
    Published,
    Run,
    Sha,
    Unchanged,
)
from bot.ownhand import OwnHand
from bot.publishing import SKIP_CI
from bot.repositories import Repositories, git_trouble
from bot.rundir import RunDir, read_json
from bot.store import runs
from bot.store.engine import Store
from bot.tickets import Tickets
from bot.verification import Running, Verification
from bot.worksite import Worksite, trailers
from gitops import evidence, publish
from gitops.git import Identity
from gitops.registration import Damaged

log = logging.getLogger(__name__)

START_TRIES = 6
"""How often a run's start is tried while the outside does not answer, before it is given up (about two minutes)."""

TOLD_TRIES = 2
"""After so many, the comment says what it waits for; a hiccup is not worth an edit."""

END_TRIES = 40
"""How often its end is tried: the work is done and worth waiting for (about three hours)."""


SOON = 0.25
"""Seconds until the next look at a run whose supervisor has said its last word and is about to end; or has not said it,
and the run has written a status of its own, or taken that away."""

STARTED = frozenset({"start", "blocked", "interrupted", "follow", "check", "publish"})
"""Phases of a run whose command was started."""

LEAVE_TRIES = 5
"""How often a note on the commit and a status are tried (about a minute)."""


class Observer(Protocol):
    """Told of every step, before and after: the timeline, and whoever wants to look."""

    def __call__(self, run_id: str, step: Step, *, ended: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do now: the kernel, another run's end or a timer calls again (`seconds`, None = no timer)."""

    seconds: float | None = None


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
        host: str,
        repositories: Repositories,
        claims: Claims,
        worksite: Worksite,
        verification: Verification,
        landing: Landing,
        tickets: Tickets,
        identity: Identity,
        journal: Journal,
        hints: Hints,
        watch: Callable[[str, Path], None],
        write_report: Callable[[Ages], None],
        leave: Callable[[Ages], Left],
        observe: Observer,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._runs_dir = runs_dir
        self._host = host
        self._repositories = repositories
        self._claims = claims
        self._worksite = worksite
        self._verification = verification
        self._landing = landing
        self._tickets = tickets
        self._identity = identity
        self._journal = journal
        self._hints = hints
        self._watch = watch
        self._write_report = write_report
        self._leave_report = leave
        self._observe = observe
        self._clock = clock
        self._hands: dict[str, OwnHand] = {}
        self._steps: Mapping[Step, Callable[[Ages], Wait | None]] = {
            "claim": self._claim,
            "prepare": self._prepare,
            "start": self._start,
            "follow": self._follow,
            "check": self._check,
            "publish": self._publish,
            "give_back": self._give_back,
            "report": self._report,
            "leave": self._leave,
            "close": self._close,
        }

    def advance(self, run_id: str) -> float | None:
        """Takes the run as far as it goes now. Returns in how many seconds to look again, or None."""
        if not self._may_be_ours(run_id):
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
            lease = self._lease(run_id)
            step = next_step(ages.has, started=self._started(ages), lease=lease is not None)
            if step is None:
                self._hands.pop(run_id, None)
                return None
            if step == "claim" and lease is None and (self._called_off(ages) is None or not self._adopt(run_id)):
                return None  # it waits for a slot; the next one that is given back is offered to it
            self._observe(run_id, step, ended=False)
            wait = self._steps[step](ages)
            if wait is not None:
                return wait.seconds
            self._observe(run_id, step, ended=True)
            self._note(run_id, tries=0, **({} if step == "close" else {"phase": step, "reason": ""}))

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

    def _lease(self, run_id: str) -> Lease | None:
        with self._store.read() as connection:
            return runs.lease_of(connection, run_id)

    def _may_be_ours(self, run_id: str) -> bool:
        """Whether the run is this host's, or nobody's yet. Another's is nothing to us: its files are there; and where
        hosts share a store, the files of one that waits are made by the host that takes it."""
        with self._store.read() as connection:
            row = runs.get(connection, run_id)
        if row is None or row.host == self._host:
            return True
        return not row.host and (row.is_called_off or not self._store.is_shared)

    def _adopt(self, run_id: str) -> bool:
        with self._store.write() as connection:
            return runs.adopt(connection, run_id, self._host)

    def _note(self, run_id: str, **values: object) -> None:
        with self._store.write() as connection:
            runs.note(connection, run_id, **values)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    def _cancelled(self, ages: Ages) -> str | None:
        """Who asked for the run's end: in its directory (the command line), or in the index (a comment)."""
        if (by := liveness.cancel_asked(ages.path)) is not None:
            return by
        with self._store.read() as connection:
            row = runs.get(connection, ages.path.name)
        return row.cancel if row else None

    def _asked(self, ages: Ages) -> stopping.Asked | None:
        """Whether it is asked to stop after its turn."""
        with self._store.read() as connection:
            row = runs.get(connection, ages.path.name)
        return stopping.asked_of(row, ages.intent.limit)

    def _called_off(self, ages: Ages) -> Cancelled | None:
        """What it comes to where its end was asked for and its command does not run, not yet or not any more."""
        if (by := self._cancelled(ages)) is not None:
            return Cancelled(by)
        if (asked := self._asked(ages)) is None:
            return None
        return stopping.outcome(asked, read_json(RunDir(ages.path).status) or {}, ages.intent.limit)

    # ── before the command ───────────────────────────────────────────────────────────────────────────────────────

    def _claim(self, ages: Ages) -> Wait | None:
        if (called_off := self._called_off(ages)) is not None:
            return self._end(ages, called_off)
        intent = ages.intent
        lease = self._lease(intent.run_id)
        if lease is None:
            return Wait()
        ages.reach_for_claim()
        match self._claims.take(intent, lease):
            case Claim() as claim:
                return self._claim_ticket(ages, claim)
            case Held() as held:
                self._lose(ages, held)
        return None

    def _claim_ticket(self, ages: Ages, claim: Claim) -> Wait | None:
        """The same claim where people see it; the tracker's journal may name another one."""
        match self._tickets.claim(claim):
            case None:
                ages.write("claim", claim)
            case Held() as held:
                self._claims.release(claim, f"conceded to {held.by} run {held.run_id}")
                self._lose(ages, held)
            case Failed() as failed:
                ages.write("claim", claim)
                return self._end(ages, failed)
        return None

    def _lose(self, ages: Ages, held: Held) -> None:
        ages.write("held", held)
        self._hints.put(Hint("answer", ages.intent.answer))

    def _prepare(self, ages: Ages) -> Wait | None:
        if (called_off := self._called_off(ages)) is not None:
            return self._end(ages, called_off)
        match self._worksite.prepare(ages.need("claim", Claim), ages.path):
            case Run() as run:
                ages.write("run", run)
            case Failed() as failed:
                return self._end(ages, failed)
        return None

    def _start(self, ages: Ages) -> Wait | None:
        if (called_off := self._called_off(ages)) is not None:
            return self._end(ages, called_off)
        # Two starts of one run can't be: the supervisor takes the run's lock first, and leaves where it was taken.
        started = start(ages.path, "setsid")
        if started.error is not None and not RunDir(ages.path).status.exists():
            raise Unavailable(f"The run's supervisor did not start: {started.error}")
        self._hints.put(Hint("answer", ages.intent.answer))
        return None

    # ── while it runs, and after ─────────────────────────────────────────────────────────────────────────────────

    def _follow(self, ages: Ages) -> Wait | None:
        by = self._cancelled(ages)
        asked = self._asked(ages) if by is None else None
        status = _told(ages, by, asked)
        if status.get("supervisor") == "unknown" or (liveness.is_over(status) and liveness.has_supervisor(ages.path)):
            return Wait(SOON)
        run = ages.need("run", Run)
        waits = status["state"] == "blocked" or liveness.is_interrupted(status)
        if waits and by is None and asked is None:
            return self._wait_for_people(ages, status)
        if asked is not None and (waits or status["state"] in ("failed", "cancelled")):
            return self._end(ages, stopping.outcome(asked, status, run.intent.limit))
        reason = str(status.get("stop_reason") or "")
        match status["state"]:
            case "done":
                return self._seal(ages, run)
            case "failed":
                return self._end(ages, Failed("command", _why_failed(status)))
            case "cancelled":
                return self._end(ages, Cancelled(self._cancelled(ages) or reason or "a signal"))
            case "lost":
                return self._end(ages, Lost(str(status.get("error") or "ended without reporting")))
            case _:
                self._tell(run.id, "start", "")
                self._watch(run.id, ages.path)
                return Wait()

    def _wait_for_people(self, ages: Ages, status: Mapping[str, object]) -> Wait | None:
        """Keeps the worktree, the slot and the claim of a run without a process, until it is resumed or cancelled."""
        run = RunDir(ages.path)
        with self._store.read() as connection:
            row = runs.get(connection, ages.path.name)
        asked = row.resume if row is not None else None
        if asked is not None and asked > handoff.starts(read_json(run.spec) or {}):
            handoff.resume(run)
            self._journal.say("resumed", run=ages.path.name, start=asked)
            return self._follow(ages)
        phase = "blocked" if status["state"] == "blocked" else "interrupted"
        self._tell(ages.path.name, phase, str(status.get("error") or ""))
        return Wait()

    def _tell(self, run_id: str, phase: str, reason: str) -> None:
        """Lets the index and the answer say how the run stands, where that is news."""
        with self._store.read() as connection:
            row = runs.get(connection, run_id)
        if row is None or (row.phase, row.reason) == (phase, reason):
            return
        self._note(run_id, phase=phase, reason=reason)
        if phase in ("blocked", "interrupted"):
            self._journal.say(phase, run=run_id, why=reason)
        self._hints.put(Hint("answer", row.answer))
        self._hints.put(Hint("state"))
        self._hints.put(Hint("board"))

    def _seal(self, ages: Ages, run: Run) -> Wait | None:
        # Nothing was checked yet: what lies there was put there by the command, which knows the place.
        shutil.rmtree(ages.path / "checks", ignore_errors=True)
        ages.forget("checked")
        message = _commit_message(run)
        mirror = self._repositories.mirror(run.intent.event.subject.repo)
        try:
            with git_trouble("What the command left can't be collected"):
                sealed = evidence.seal(
                    mirror, run.worktree, base=run.intent.head, identity=self._identity, message=message
                )
                # Commits that come to nothing are nothing to publish; a history that was rewritten may be worth it.
                empty = sealed.descends and publish.same_files(mirror, sealed.tip, run.intent.head)
        except Damaged as problem:
            return self._end(ages, Failed("seal", f"The worktree is damaged, and was left alone: {problem}"))
        ages.write(
            "sealed",
            Sealed(
                tip=run.intent.head if empty else Sha(sealed.tip),
                commits=sealed.commits,
                leftovers_committed=sealed.committed_leftovers,
                descends=sealed.descends,
                skipped=tuple(sealed.skipped),
                unfinished=sealed.unfinished,
                head=Sha(sealed.tip),
            ),
        )
        return None

    def _check(self, ages: Ages) -> Wait | None:
        run, sealed = ages.need("run", Run), ages.need("sealed", Sealed)
        if (called_off := self._called_off(ages)) is not None:
            self._end_checks(ages)
            return self._end(ages, called_off)
        try:
            checked = self._verification.check(run, sealed)
        except Running as running:
            self._watch(run.id, running.where)
            return Wait()
        ages.write("checked", checked)
        return None

    def _end_checks(self, ages: Ages) -> None:
        for folder in sorted((ages.path / "checks").glob("*")):
            liveness.end(folder)

    def _publish(self, ages: Ages) -> Wait | None:
        run, sealed, checked = ages.need("run", Run), ages.need("sealed", Sealed), ages.need("checked", Checked)
        if sealed.unfinished is not None:
            return self._end(ages, Failed("seal", f"The command left a {sealed.unfinished} unfinished."))
        if sealed.tip != run.intent.head and not checked.holds:
            return self._end(ages, _not_green(checked))
        self._look_for_a_taker(ages)
        if (called_off := self._called_off(ages)) is not None and not self._landing.landed(run, sealed):
            return self._end(ages, called_off)
        match self._landing.land(run, sealed):
            case Moved(moved, same_files):
                if not same_files:
                    ages.forget("checked")
                ages.write("sealed", moved)
                return Wait(random.uniform(0, 0.2 * len(moved.incorporated)))  # noqa: S311  # spreads writers, no secret
            case Published() as published:
                return self._end(ages, published, pull=self._landing.open_pull(run, published))
            case Unchanged() | Failed() | Blocked() | Cancelled() | Lost() as outcome:
                return self._end(ages, outcome)

    def _look_for_a_taker(self, ages: Ages) -> None:
        """Before anything is published: nothing may have told of a person who took the ticket meanwhile."""
        if (by := self._tickets.taken(ages.intent)) is not None:
            with self._store.write() as connection:
                runs.ask_to_stop(connection, ages.path.name, by, self._clock())

    def _end(self, ages: Ages, outcome: Outcome, *, pull: str = "") -> Wait | None:
        ages.write("ended", Ended(outcome, self._now(), pull))
        self._journal.say("ended", run=ages.path.name, outcome=outcome.kind)
        return None

    def _give_back(self, ages: Ages) -> Wait | None:
        ended, run = ages.ended, ages.run
        if run is not None:
            well = ended is not None and isinstance(ended.outcome, Published | Unchanged)
            liveness.end(ages.path)
            self._verification.clean_up(run)
            published = ended.outcome.tip if ended is not None and isinstance(ended.outcome, Published) else None
            self._worksite.give_back(run, well=well, published=published)
        lease = self._lease(ages.path.name)
        if lease is not None:
            with self._store.write() as connection:
                runs.give_back(connection, lease)
        self._hints.put(Hint("waiting"))
        self._hints.put(Hint("trash"))
        return None

    def _report(self, ages: Ages) -> Wait | None:
        claim = ages.claim
        if claim is not None and not self._claims.ours(claim):
            ages.silence()  # swept meanwhile: the report is kept here, and nothing is said of it
        self._write_report(ages)
        ages.reported()
        return None  # said once nothing stands against the next run; where that takes long, the sweep says it before

    def _leave(self, ages: Ages) -> Wait | None:
        """The comment says it all; what is left beside it is worth a few tries, and not the claim for hours."""
        if ages.silenced:
            ages.write("left", Left(note="swept", status="swept"))
            return None
        try:
            ages.write("left", self._leave_report(ages))
        except Unavailable as problem:
            with self._store.read() as connection:
                if runs.tries(connection, ages.path.name) < LEAVE_TRIES:
                    raise
            ages.write("left", Left(note=f"given up: {problem}", status="given up"))
        return None

    def _close(self, ages: Ages) -> Wait | None:
        claim = ages.claim
        if claim is None and ages.reached_for_claim and not ages.has("held"):
            claim = self._claims.made(ages.intent, Lease("none", "none"))
        self._say_on_ticket(ages, claim)
        if claim is not None:
            self._claims.release(claim, _why_released(ages))
        at = self._now()
        ages.write("closed", Closed(at))
        self._note(ages.path.name, phase="closed", closed_at=at.timestamp(), reason=_why_released(ages))
        self._hints.put(Hint("answer", ages.intent.answer))
        self._hints.put(Hint("state"))
        self._hints.put(Hint("board"))
        if isinstance(ages.intent.event.what, Claimable):
            self._hints.put(Hint("scan"))  # there is room for the next one
        return None

    def _say_on_ticket(self, ages: Ages, claim: Claim | None) -> None:
        if (held := ages.read("held")) is not None:
            self._tickets.concede(ages.intent, held)
            return
        if isinstance(ages.intent.event.subject, AnyTicket) and claim is not None and not self._claims.ours(claim):
            ages.silence()
        self._tickets.finish(ages)

    # ── when the outside does not answer ─────────────────────────────────────────────────────────────────────────

    def _put_off(self, run_id: str, ages: Ages, problem: Exception) -> float:
        with self._store.read() as connection:
            tries = runs.tries(connection, run_id) + 1
        at = problem.retry_at if isinstance(problem, Unavailable) else None
        delay = min(300.0, 2.0**tries) if at is None else max(1.0, at.timestamp() - self._clock())
        self._note(run_id, tries=tries, reason=str(problem)[:500], due_at=self._clock() + delay)
        self._journal.say("put_off", run=run_id, tries=tries, why=str(problem))
        before = not ages.has("sealed")
        if tries >= (START_TRIES if before else END_TRIES) and not ages.has("ended"):
            stage = "start" if before else "publish"
            self._end(ages, Failed(stage, f"{problem} (tried {tries} times)"))
            return 0.0
        if tries == TOLD_TRIES:
            self._hints.put(Hint("answer", ages.intent.answer))
        return delay


def _told(ages: Ages, by: str | None, asked: stopping.Asked | None) -> dict[str, Any]:
    """The reading of a run, after it was told that its end is asked for."""
    if by is not None:
        liveness.request_cancel(ages.path, by)
    elif asked is not None:
        liveness.ask_to_stop(ages.path, asked.by, at=asked.at, until=asked.until)
    status = liveness.reading(ages.path)
    return liveness.end_what_is_left(ages.path) if status.get("supervisor") == "gone" else status


def _why_failed(status: Mapping[str, object]) -> str:
    if status.get("error"):
        return str(status["error"])
    match status.get("stop_reason"):
        case "time_limit":
            return "It did not end within its time limit."
        case "silent":
            return "It said no word within its first 120 seconds, though its task declares `speaks`."
        case str(reason) if reason:
            return f"It was stopped: {reason}."
    if status.get("signal"):
        return f"It was ended by signal {status['signal']}."
    if status.get("exit_code"):
        return f"It ended with exit code {status['exit_code']}."
    return "Its last word was `failed`."


def _not_green(checked: Checked) -> Outcome:
    """What a run comes to whose commit may not be published. A check that was cancelled is no failure."""
    bad = next((verdict for verdict in checked.verdicts if not verdict.holds), None)
    if bad is None:
        return Failed("verify", f"The check {checked.not_run[0].what} did not run: {checked.not_run[0].why}.")
    check = " ".join(bad.argv)
    match bad.state:
        case "cancelled":
            by = next((ran.by for ran in bad.tries if ran.by), "") or "a signal"
            return Cancelled(f"{by}, which ended the check {check}")
        case "unknown":
            return Failed("verify", f"Nobody saw how the check {check} ended, so it is not known whether it holds.")
        case _:
            return Failed("verify", f"The check {check} does not hold.")


def _why_released(ages: Ages) -> str:
    if ages.has("held"):
        return runs.HELD
    ended = ages.ended
    return ended.outcome.kind if ended else "unknown"


def _commit_message(run: Run) -> str:
    intent: Intent = run.intent
    lines = "\n".join(f"{key}: {' '.join(value.split())}" for key, value in trailers(run).items())
    ci = f" {SKIP_CI}" if intent.publish.skip_ci else ""
    return f"{intent.task.name}: what the run left uncommitted{ci}\n\n{lines}\n"

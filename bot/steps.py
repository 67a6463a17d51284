"""The steps of a run's road. Each looks at what is and does one thing that may be done again."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot import handoff, liveness, stopping
from bot.ages import Ages, Checked, Closed, Ended, Left, Sealed
from bot.claims import Claims
from bot.claimsweep import ClaimSweep
from bot.dispatch import Hint, Hints
from bot.errors import Unavailable
from bot.journal import Journal
from bot.landing import Landing, Moved
from bot.launchers import start
from bot.ledger import Ledger
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
from bot.publishing import SKIP_CI
from bot.repositories import Repositories, git_trouble
from bot.rundir import RunDir, read_json
from bot.store import runs
from bot.tickets import Tickets
from bot.verification import Running, Verification
from bot.worksite import Worksite, trailers
from gitops import evidence, publish
from gitops.git import Identity
from gitops.registration import Damaged

SOON = 0.25
"""Seconds until the next look at a run whose supervisor has said its last word and is about to end; or has not said it,
and the run has written a status of its own, or taken that away."""

LEAVE_TRIES = 5
"""How often a pull request, a note on the commit and a status are tried (about a minute)."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do now: the kernel, another run's end or a timer calls again (`seconds`, None = no timer)."""

    seconds: float | None = None


class Steps:
    """One method a step: it returns what there is to wait for, or None when it is done."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        repositories: Repositories,
        claims: Claims,
        worksite: Worksite,
        verification: Verification,
        landing: Landing,
        tickets: Tickets,
        sweep: ClaimSweep,
        identity: Identity,
        journal: Journal,
        hints: Hints,
        watch: Callable[[str, Path], None],
        write_report: Callable[[Ages], None],
        leave: Callable[[Ages], Left],
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._repositories = repositories
        self._claims = claims
        self._worksite = worksite
        self._verification = verification
        self._landing = landing
        self._tickets = tickets
        self._sweep = sweep
        self._identity = identity
        self._journal = journal
        self._hints = hints
        self._watch = watch
        self._write_report = write_report
        self._leave_report = leave
        self._clock = clock

    # ── before the command ───────────────────────────────────────────────────────────────────────────────────────

    def claim(self, ages: Ages) -> Wait | None:
        if (called_off := self._ledger.called_off(ages)) is not None:
            return self.end(ages, called_off)
        intent = ages.intent
        lease = self._ledger.lease(intent.run_id)
        if lease is None:
            return Wait()
        ages.reach_for_claim()
        match self._claimed(intent, lease):
            case Claim() as claim:
                ages.write("claim", claim)
            case Held() as held:
                ages.write("held", held)
                self._hints.put(Hint("answer", intent.answer))
            case (claim, failed):
                ages.write("claim", claim)
                return self.end(ages, failed)
        return None

    def _claimed(self, intent: Intent, lease: Lease) -> Claim | Held | tuple[Claim, Failed]:
        """The claim, or who has it: one that nobody works keeps nobody out."""
        taken = self._take(intent, lease)
        if isinstance(taken, Held) and self._sweep.clears(intent.event.subject, taken):
            return self._take(intent, lease)
        return taken

    def _take(self, intent: Intent, lease: Lease) -> Claim | Held | tuple[Claim, Failed]:
        """The ref, then the same claim where people see it: the tracker's journal may name another one."""
        claim = self._claims.take(intent, lease)
        if isinstance(claim, Held):
            return claim
        match self._tickets.claim(claim):
            case None:
                return claim
            case Held() as held:
                self._claims.give_way(claim, held)
                return held
            case Failed() as failed:
                return claim, failed

    def prepare(self, ages: Ages) -> Wait | None:
        if (called_off := self._ledger.called_off(ages)) is not None:
            return self.end(ages, called_off)
        match self._worksite.prepare(ages.need("claim", Claim), ages.path):
            case Run() as run:
                ages.write("run", run)
            case Failed() as failed:
                return self.end(ages, failed)
        return None

    def start(self, ages: Ages) -> Wait | None:
        if (called_off := self._ledger.called_off(ages)) is not None:
            return self.end(ages, called_off)
        # Two starts of one run can't be: the supervisor takes the run's lock first, and leaves where it was taken.
        started = start(ages.path, "setsid")
        if started.error is not None and not RunDir(ages.path).status.exists():
            raise Unavailable(f"The run's supervisor did not start: {started.error}")
        self._hints.put(Hint("answer", ages.intent.answer))
        return None

    # ── while it runs, and after ─────────────────────────────────────────────────────────────────────────────────

    def follow(self, ages: Ages) -> Wait | None:
        by = self._ledger.cancelled(ages)
        asked = self._ledger.asked(ages) if by is None else None
        status = _told(ages, by, asked)
        if status.get("supervisor") == "unknown" or (liveness.is_over(status) and liveness.has_supervisor(ages.path)):
            return Wait(SOON)
        run = ages.need("run", Run)
        waits = status["state"] == "blocked" or liveness.is_interrupted(status)
        if waits and by is None and asked is None:
            return self._wait_for_people(ages, status)
        if asked is not None and (waits or status["state"] in ("failed", "cancelled")):
            return self.end(ages, stopping.outcome(asked, status, run.intent.limit))
        reason = str(status.get("stop_reason") or "")
        match status["state"]:
            case "done":
                return self._seal(ages, run)
            case "failed":
                return self.end(ages, Failed("command", _why_failed(status)))
            case "cancelled":
                return self.end(ages, Cancelled(self._ledger.cancelled(ages) or reason or "a signal"))
            case "lost":
                return self.end(ages, Lost(str(status.get("error") or "ended without reporting")))
            case _:
                self._ledger.tell(run.id, "start", "")
                self._watch(run.id, ages.path)
                return Wait()

    def _wait_for_people(self, ages: Ages, status: Mapping[str, object]) -> Wait | None:
        """Keeps the worktree, the slot and the claim of a run without a process, until it is resumed or cancelled."""
        run = RunDir(ages.path)
        row = self._ledger.row(ages.path.name)
        asked = row.resume if row is not None else None
        # Which start it was is the supervisor's word: the spec says it before, and we may have been killed in between.
        if asked is not None and asked > int(str(status.get("starts") or handoff.starts(read_json(run.spec) or {}))):
            handoff.resume(run)
            self._journal.say("resumed", run=ages.path.name, start=asked)
            return self.follow(ages)
        phase = "blocked" if status["state"] == "blocked" else "interrupted"
        self._ledger.tell(ages.path.name, phase, str(status.get("error") or ""))
        return Wait()

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
            return self.end(ages, Failed("seal", f"The worktree is damaged, and was left alone: {problem}"))
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

    def check(self, ages: Ages) -> Wait | None:
        run, sealed = ages.need("run", Run), ages.need("sealed", Sealed)
        if (called_off := self._ledger.called_off(ages)) is not None:
            self._end_checks(ages)
            return self.end(ages, called_off)
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

    def publish(self, ages: Ages) -> Wait | None:
        run, sealed, checked = ages.need("run", Run), ages.need("sealed", Sealed), ages.need("checked", Checked)
        if sealed.unfinished is not None:
            return self.end(ages, Failed("seal", f"The command left a {sealed.unfinished} unfinished."))
        if sealed.tip != run.intent.head and not checked.holds:
            return self.end(ages, _not_green(checked))
        self._look_for_a_taker(ages)
        if (called_off := self._ledger.called_off(ages)) is not None and not self._landing.landed(run, sealed):
            return self.end(ages, called_off)
        match self._landing.land(run, sealed):
            case Moved(moved, same_files):
                if not same_files:
                    ages.forget("checked")
                ages.write("sealed", moved)
                return Wait(random.uniform(0, 0.2 * len(moved.incorporated)))  # noqa: S311  # spreads writers, no secret
            case Published() as published:
                return self.end(ages, published, pull=self._pull_from(run, published))
            case Unchanged() | Failed() | Blocked() | Cancelled() | Lost() as outcome:
                return self.end(ages, outcome)

    def _pull_from(self, run: Run, published: Published) -> str:
        """The commit is out: a forge that opens no pull request now costs a few tries, and not the truth of that."""
        try:
            return self._landing.open_pull(run, published)
        except Unavailable as problem:
            if self._ledger.tries(run.id) < LEAVE_TRIES:
                raise
            return f"could not be opened: {problem}"

    def _look_for_a_taker(self, ages: Ages) -> None:
        """Before anything is published: nothing may have told of a person who took the ticket meanwhile."""
        if (by := self._tickets.taken(ages.intent)) is not None:
            self._ledger.ask_to_stop(ages.path.name, by, self._clock())

    def end(self, ages: Ages, outcome: Outcome, *, pull: str = "") -> Wait | None:
        ages.write("ended", Ended(outcome, self._now(), pull))
        self._journal.say("ended", run=ages.path.name, outcome=outcome.kind)
        return None

    def give_back(self, ages: Ages) -> Wait | None:
        ended, run = ages.ended, ages.run
        if run is not None:
            well = ended is not None and isinstance(ended.outcome, Published | Unchanged)
            liveness.end(ages.path)
            self._verification.clean_up(run)
            published = ended.outcome.tip if ended is not None and isinstance(ended.outcome, Published) else None
            self._worksite.give_back(run, well=well, published=published)
        elif ages.has("claim"):
            self._worksite.abandon(ages.intent)
        lease = self._ledger.lease(ages.path.name)
        if lease is not None:
            self._ledger.give_back(lease)
        self._hints.put(Hint("waiting"))
        self._hints.put(Hint("trash"))
        return None

    def report(self, ages: Ages) -> Wait | None:
        claim = ages.claim
        if claim is not None and not self._claims.ours(claim):
            ages.silence()  # swept meanwhile: the report is kept here, and nothing is said of it
        self._write_report(ages)
        ages.reported()
        return None  # said once nothing stands against the next run; where that takes long, the sweep says it before

    def leave(self, ages: Ages) -> Wait | None:
        """The comment says it all; what is left beside it is worth a few tries, and not the claim for hours."""
        if ages.silenced:
            ages.write("left", Left(note="swept", status="swept"))
            return None
        try:
            ages.write("left", self._leave_report(ages))
        except Unavailable as problem:
            if self._ledger.tries(ages.path.name) < LEAVE_TRIES:
                raise
            ages.write("left", Left(note=f"given up: {problem}", status="given up"))
        return None

    def close(self, ages: Ages) -> Wait | None:
        claim = ages.claim
        if claim is None and ages.reached_for_claim and not ages.has("held"):
            claim = self._claims.made(ages.intent, Lease("none", "none"))
        self._say_on_ticket(ages, claim)
        if claim is not None:
            self._claims.release(claim, _why_released(ages))
        ages.write("closed", Closed(self._now()))
        self.enter_closed(ages)
        return None

    def enter_closed(self, ages: Ages) -> None:
        """Lets the index say so, and tells who waits for that; also where a crash came between the file and this. A run
        that stayed open there would be in the way of everyone who asks for the same."""
        row = self._ledger.row(ages.path.name)
        if row is None or row.closed_at is not None:
            return
        at = ages.need("closed", Closed).at.timestamp()
        self._ledger.note(ages.path.name, phase="closed", closed_at=at, reason=_why_released(ages))
        self._hints.put(Hint("answer", ages.intent.answer))
        self._hints.put(Hint("state"))
        self._hints.put(Hint("board"))
        if isinstance(ages.intent.event.what, Claimable):
            self._hints.put(Hint("scan"))  # there is room for the next one

    def _say_on_ticket(self, ages: Ages, claim: Claim | None) -> None:
        if (held := ages.read("held")) is not None:
            self._tickets.concede(ages.intent, held)
            return
        if isinstance(ages.intent.event.subject, AnyTicket) and claim is not None and not self._claims.ours(claim):
            ages.silence()
        self._tickets.finish(ages)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


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

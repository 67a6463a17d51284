"""Runs the checks of a report again, each on a clean checkout of the commit that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from bot import liveness
from bot.ages import Ran, Verdict
from bot.launchers import start
from bot.masking import Masking
from bot.recheck import Finding, differs, holds, unknown
from bot.reports import Report
from bot.rundir import RunDir, write_json
from bot.verification import ran_of
from bot.worksite import check_environment, supervised
from gitops import worktree
from gitops.git import GitError
from gitops.mirror import Mirror

LATE = 600.0
"""Seconds that a command may take beyond its own limit until it has ended: it waits for CPU passes, and for its end."""


class Rerun:
    """The commands of one report, started again below `place` (a folder of its own)."""

    def __init__(self, report: Report, mirror: Mirror, place: Path, environ: Mapping[str, str]) -> None:
        self._report = report
        self._mirror = mirror
        self._place = place
        self._environ = environ

    def findings(self) -> Iterator[Finding]:
        """A verdict for each check. What it came to then was seen by the bot; what it comes to now is seen here.

        The task's own command is run again where it left no commit: then its end is all that it came to. What made a
        commit is judged by that.
        """
        report = self._report
        if report.tip is None:
            for number, ran in enumerate(report.ran, 1):
                claim = f"command {' '.join(ran.argv)}"
                yield self._seen(claim, partial(self._command, claim, number, ran))
            return
        if report.checked_at is None:
            yield unknown("checks", "the report names no checks that ran on a commit")
            return
        for number, verdict in enumerate(report.verdicts, 1):
            claim = f"check {' '.join(verdict.argv)}"
            yield self._seen(claim, partial(self._again, claim, number, verdict, report.checked_at))

    def _seen(self, claim: str, look: Callable[[], Finding]) -> Finding:
        try:
            return look()
        except GitError as problem:
            return unknown(claim, problem.brief)
        except OSError as problem:
            return unknown(claim, str(problem))

    def _command(self, claim: str, number: int, then: Ran) -> Finding:
        check = Verdict(argv=then.argv, tries=(then,), at_base=None, wanted_red=False)
        now = self._run(check, f"command-{number}", lambda: self._checkout(self._report.base))
        seen = f"{_end(then)} then, {_end(now)} now"
        if then.state in ("cancelled", "unknown") or now.state in ("cancelled", "unknown"):
            return unknown(claim, seen)
        return (
            holds(claim, seen) if (then.exit_code, then.signal) == (now.exit_code, now.signal) else differs(claim, seen)
        )

    def _again(self, claim: str, number: int, then: Verdict, tip: str) -> Finding:
        tries = []
        for attempt in range(1, len(then.tries) + 1):
            tries.append(self._run(then, f"{number}-{attempt}", lambda: self._checkout(tip)))
        base = None
        if then.at_base is not None:
            base = self._run(then, f"{number}-base", lambda: self._at_base(then, tip))
        now = Verdict(argv=then.argv, tries=tuple(tries), at_base=base, wanted_red=then.wanted_red)
        seen = f"{_rate(then)} then, {_rate(now)} now"
        if then.state in ("cancelled", "unknown") or now.state in ("cancelled", "unknown"):
            return unknown(claim, f"{then.state} then, {now.state} now")
        return holds(claim, seen) if then.state == now.state and _rate(then) == _rate(now) else differs(claim, seen)

    def _checkout(self, sha: str) -> Path:
        path = self._place / "tree"
        worktree.checkout(self._mirror, path, sha)
        return path

    def _at_base(self, then: Verdict, tip: str) -> Path:
        path = self._checkout(self._report.base)
        worktree.put_files(self._mirror, path, tip, then.red_at_base)
        return path

    def _run(self, check: Verdict, name: str, checkout: Callable[[], Path]) -> Ran:
        folder = self._place / "runs" / name
        folder.mkdir(parents=True)
        run_id = f"{self._report.run}.{name}"
        environment = {
            **check_environment(self._report.env, self._environ, folder, self._mirror.path),
            "LEADSMAN_RUN_ID": run_id,
            "LEADSMAN_RUN_DIR": str(folder),
        }
        seconds = check.timeout or self._report.limits.seconds
        spec = supervised(
            run_id,
            self._report.task,
            check.argv,
            checkout(),
            environment,
            seconds=seconds,
            passes=check.passes,
            note=folder,
        )
        write_json(RunDir(folder).spec, spec)
        try:
            start(folder, "setsid")
            liveness.settled(folder, seconds + LATE)
        finally:
            liveness.end(folder)
        return ran_of(folder, folder, name, Masking())


def _end(ran: Ran) -> str:
    return f"exit {ran.exit_code}" if ran.exit_code is not None else f"signal {ran.signal}" if ran.signal else ran.ended


def _rate(verdict: Verdict) -> str:
    passed = sum(1 for ran in verdict.tries if ran.passed)
    red = ", red at base" if verdict.was_red_at_base else ", not red at base" if verdict.wanted_red else ""
    return f"{passed}/{len(verdict.tries)}{red}"

"""Judges the exact commit that is to be published, on a clean checkout of it, never in the worker's tree.

Each try of a check is supervised like the run itself, in a folder of its own: it outlives the server, and is never
doubled.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot import codec, liveness, occupants
from bot.ages import Checked, NotRun, Ran, Sealed, Use, Verdict
from bot.errors import Unavailable
from bot.handoff import starts
from bot.launchers import start
from bot.logs import Settled, settle
from bot.masking import Masking
from bot.model import Intent, Run, Sha
from bot.paths import matches, shown_path
from bot.repositories import Repositories, git_trouble
from bot.rundir import RunDir, read_json, write_json, write_text
from bot.statefiles import discard
from bot.status import sound
from bot.tasks import Check
from bot.worksite import check_environment, supervised
from gitops import evidence, worktree
from gitops.mirror import Mirror

STARTS = 3
"""How often a check is started that is killed each time, or interrupted by a restart of its host."""


class Running(Exception):
    """A try goes on in this folder: come back when it has ended."""

    def __init__(self, where: Path) -> None:
        super().__init__(str(where))
        self.where = where


class Verification:
    """Runs the checks of a task, one after the other."""

    def __init__(
        self, repositories: Repositories, checkouts: Path, environ: Mapping[str, str], *, masking: Masking
    ) -> None:
        self._repositories = repositories
        self._checkouts = checkouts
        self._environ = environ
        self._masking = masking
        # By heart, since what a check runs can write into the run's directory (`bot.ownhand`).
        self._begun: dict[str, set[str]] = {}
        self._seen: dict[Path, Ran] = {}

    def check(self, run: Run, sealed: Sealed) -> Checked:
        """What the checks say of `sealed.tip`. Raises `Running` while one goes on; called again it takes up there."""
        intent = run.intent
        if run.id not in self._begun:
            self._begun[run.id] = {folder.name for folder in (run.run_dir / "checks").glob("*")}
        mirror = self._repositories.mirror(intent.event.subject.repo)
        verdicts: list[Verdict] = []
        not_run: list[NotRun] = []
        if sealed.tip == intent.head or sealed.unfinished is not None:
            why = "nothing changed" if sealed.unfinished is None else f"a {sealed.unfinished} was left unfinished"
            return Checked(
                tip=sealed.tip, verdicts=(), not_run=tuple(NotRun(_name(check), why) for check in intent.task.verify)
            )
        for number, check in enumerate(intent.task.verify, 1):
            if not_run or (verdicts and not verdicts[-1].holds):
                not_run.append(NotRun(_name(check), "an earlier check did not hold"))
                continue
            verdict = self._judge(run, sealed, mirror, number, check)
            if isinstance(verdict, NotRun):
                not_run.append(verdict)
            else:
                verdicts.append(verdict)
        return Checked(tip=sealed.tip, verdicts=tuple(verdicts), not_run=tuple(not_run))

    def clean_up(self, run: Run) -> None:
        """Removes the checkouts."""
        self._begun.pop(run.id, None)
        for seen in [folder for folder in list(self._seen) if run.run_dir in folder.parents]:
            self._seen.pop(seen, None)
        mirror = self._repositories.mirror(run.intent.event.subject.repo)
        folder = self._checkouts / run.id
        occupants.clear(folder, run.at.timestamp())
        with git_trouble("The checkouts can't be removed"):
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                worktree.drop(mirror, path)
            if folder.is_dir():
                folder.rmdir()

    def _judge(self, run: Run, sealed: Sealed, mirror: Mirror, number: int, check: Check) -> Verdict | NotRun:
        at_base = None
        changed: tuple[str, ...] = ()
        if check.red_at_base:
            changed = self._changed(mirror, run, sealed, check)
            if not changed:
                return NotRun(_name(check), f"no changed file matches {', '.join(check.red_at_base)}")
            name = f"{number}-base-{sealed.tip[:12]}"
            at_base = self._try(run, check, name, run.intent.head, lambda: self._at_base(run, sealed, changed))
        tries: list[Ran] = []
        for attempt in range(1, check.repeat + 1):
            name = f"{number}-{attempt}-{sealed.tip[:12]}"
            tries.append(self._try(run, check, name, sealed.tip, lambda: self._at_tip(run, sealed)))
        return Verdict(
            argv=check.run,
            tries=tuple(tries),
            at_base=at_base,
            wanted_red=bool(check.red_at_base),
            red_at_base=tuple(shown_path(path) for path in changed),
            passes=check.passes,
            timeout=check.timeout,
        )

    def _changed(self, mirror: Mirror, run: Run, sealed: Sealed, check: Check) -> tuple[str, ...]:
        with git_trouble("The changed files can't be listed"):
            figures = evidence.figures(mirror, run.intent.head, sealed.tip)
        return tuple(f.path for f in figures.files if any(matches(f.path, glob) for glob in check.red_at_base))

    def _at_tip(self, run: Run, sealed: Sealed) -> Path:
        mirror = self._repositories.mirror(run.intent.event.subject.repo)
        path = self._checkouts / run.id / f"tip-{sealed.tip[:12]}"
        with git_trouble("The commit can't be checked out"):
            worktree.checkout(mirror, path, sealed.tip)
        return path

    def _at_base(self, run: Run, sealed: Sealed, changed: tuple[str, ...]) -> Path:
        mirror = self._repositories.mirror(run.intent.event.subject.repo)
        path = self._checkouts / run.id / f"base-{sealed.tip[:12]}"
        with git_trouble("The base can't be checked out"):
            worktree.checkout(mirror, path, run.intent.head)
            worktree.put_files(mirror, path, sealed.tip, changed)
        return path

    def _try(self, run: Run, check: Check, name: str, at: Sha, place: Callable[[], Path]) -> Ran:
        folder = run.run_dir / "checks" / name
        if (seen := self._seen.get(folder)) is not None:
            return seen
        if name not in self._begun[run.id]:
            _clear(folder)  # an earlier check may have written there how this one ends
        if not RunDir(folder).status.exists():
            self._start(run, check, folder, place())
        status = liveness.reading(folder)
        if status.get("supervisor") == "gone" and not liveness.is_over(status):
            status = liveness.end(folder)
        begun = starts(read_json(RunDir(folder).spec) or {})
        if status["state"] == "lost" and begun < STARTS:  # it was killed: that says nothing of the commit
            RunDir(folder).worker_log.unlink(missing_ok=True)
            self._start(run, check, folder, place(), number=begun + 1)
            status = liveness.reading(folder)
        if not liveness.is_over(status):
            raise Running(folder)
        self._seen[folder] = ran_of(run.run_dir, folder, _name(check), self._masking, at=at)
        return self._seen[folder]

    def _start(self, run: Run, check: Check, folder: Path, where: Path, *, number: int = 1) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._begun[run.id].add(folder.name)
        intent: Intent = run.intent
        run_id = f"{intent.run_id}.{folder.name}"
        mirror = self._repositories.mirror(intent.event.subject.repo)
        environment = check_environment(intent.task.env, self._environ, folder, mirror.path)
        spec = supervised(
            run_id,
            intent.task.name,
            check.run,
            where,
            {**environment, "LEADSMAN_RUN_ID": run_id},
            seconds=check.timeout or intent.limit.seconds,
            passes=check.passes,
            note=folder,
        )
        write_json(RunDir(folder).spec, {**spec, "starts": number})
        started = start(folder, "setsid", again=number > 1)
        if started.error is not None and not RunDir(folder).status.exists():
            raise Unavailable(f"The check's supervisor did not start: {started.error}")


def _clear(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    discard(folder)


def ran_of(run_dir: Path, folder: Path, what: str, masking: Masking, *, at: Sha | None = None) -> Ran:
    """What a supervised folder says of the command that ran in it and has ended.

    It is worked out once, with the log put right, and kept as `ran.json`: a log may be large. A run that is started
    again in its folder is worked out anew.
    """
    status = sound(read_json(RunDir(folder).status) or {})
    kept = folder / "ran.json"
    if kept.exists() and read_json(kept) and (known := _Kept.load(kept)).finished == str(status.get("finished")):
        return known.ran
    log = settle(RunDir(folder).worker_log, masking, exit_code=status.get("exit_code"))
    ran = _ran(run_dir, folder, status, log, what=what, at=at)
    write_text(kept, codec.dump(_Kept, _Kept(str(status.get("finished")), ran)))
    return ran


@dataclass(frozen=True, slots=True)
class _Kept:
    finished: str
    ran: Ran

    @staticmethod
    def load(path: Path) -> _Kept:
        return codec.load(_Kept, path.read_bytes())


def _ran(run_dir: Path, folder: Path, status: dict[str, Any], log: Settled, **about: Any) -> Ran:
    spec: dict[str, Any] = read_json(RunDir(folder).spec) or {}
    used = status.get("usage")
    return Ran(
        argv=tuple(spec.get("command") or spec.get("argv") or ()),
        exit_code=status.get("exit_code"),
        signal=status.get("signal"),
        seconds=round(max(0.0, status.get("seconds") or 0.0), 3),
        waited=status.get("waited"),
        stop_reason=str(status.get("stop_reason") or ""),
        log=str(RunDir(folder).worker_log.relative_to(run_dir)),
        log_bytes=log.size,
        log_sha256=log.sha256,
        ended=str(status.get("state") or ""),
        by=str(status.get("cancelled_by") or ""),
        counts=log.counts,
        use=_use(used) if used else None,
        **about,
    )


def _use(used: Mapping[str, object]) -> Use | None:
    match used:
        case {"user_seconds": float(user), "system_seconds": float(system), "max_rss_kib": int(most)}:
            return Use(cpu_seconds=round(user + system, 3), max_rss_kib=most)
    return None


def _name(check: Check) -> str:
    return " ".join(check.run)

"""Gathers what was seen of a run, signs it, and writes it into the run's directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from bot.ages import Ages, Checked, NotRun, Ran, Sealed
from bot.logs import tail
from bot.masking import Masking
from bot.model import (
    BranchRef,
    Command,
    Failed,
    Intent,
    Lost,
    Outcome,
    Published,
    PullRef,
    RuleFired,
    Run,
    RunId,
    Subject,
    Unchanged,
)
from bot.paths import shown_path
from bot.rendering import render
from bot.reports import Change, Limits, Links, Load, Report, Repository, Risk, Tail
from bot.repositories import Repositories, git_trouble
from bot.risk import NOTHING_CHANGED
from bot.rundir import RunDir, read_json, write_text
from bot.signing import SigningKey
from bot.statement import read, signed
from bot.verification import ran_of
from bot.weighing import risk_of
from bot.worksite import KEPT
from gitops import evidence, hooks, worktree
from gitops.pinning import RECOVER

TAIL_BYTES = 4_000
"""How much of a log's end a report holds."""

TAILS = 3
"""Of how many logs, at most."""


class Reporter:
    """Writes a run's report."""

    def __init__(
        self,
        repositories: Repositories,
        masking: Masking,
        key: SigningKey,
        *,
        host: str,
        links: Callable[[RunId], str],
        load: Callable[[], tuple[float, int]],
        clock: Callable[[], float],
    ) -> None:
        self._repositories = repositories
        self._masking = masking
        self._key = key
        self._host = host
        self._links = links
        self._load = load
        self._clock = clock

    def write(self, ages: Ages) -> None:
        """Writes `report.md`, then `report.json`, whose presence says that both are there.

        What people read is rendered from the statement as it was signed.
        """
        files = RunDir(ages.path)
        envelope = signed(self._gather(ages), self._key, self._masking)
        write_text(files.report_md, render(read(envelope).report))
        write_text(files.report_json, envelope)

    def _gather(self, ages: Ages) -> Report:
        intent, ended, run, claim = ages.intent, ages.ended, ages.run, ages.claim
        sealed = ages.need("sealed", Sealed) if ages.has("sealed") else None
        checked = ages.need("checked", Checked) if ages.has("checked") else None
        outcome: Outcome = ended.outcome if ended else Lost("how it ended is not known")
        status: dict[str, Any] = read_json(RunDir(ages.path).status) or {}
        ran = [ran_of(ages.path, ages.path, "the task's command", self._masking)] if status else []
        well = isinstance(outcome, Published | Unchanged)
        tip = sealed.tip if sealed and sealed.tip != intent.head else None
        return Report(
            run=intent.run_id,
            task=intent.task.name,
            project=intent.project,
            subject=str(intent.event.subject),
            repository=self._repository(intent),
            asked_by=intent.event.actor.login,
            asked_with=_asked_with(intent),
            trusted_from=intent.trusted_from,
            claim=claim.oid if claim else None,
            base=intent.head,
            base_why=intent.head_why,
            tip=tip,
            ref=outcome.ref if isinstance(outcome, Published) else None,
            pull=ended.pull if ended else "",
            outcome=outcome,
            commits=sealed.commits if sealed else 0,
            leftovers_committed=sealed.leftovers_committed if sealed else False,
            descends=sealed.descends if sealed else True,
            incorporated=sealed.incorporated if sealed else (),
            changes=self._changes(run, sealed) if run and sealed else (),
            changes_since=sealed.since(intent.head) if sealed else intent.head,
            risk=self._risk(intent, sealed) if sealed else None,
            skipped=tuple(shown_path(path) for path in sealed.skipped) if sealed else (),
            checked_at=checked.tip if checked and checked.verdicts else None,
            ran=tuple(ran),
            verdicts=checked.verdicts if checked else (),
            not_run=_not_run(intent, checked, ran, outcome),
            limits=Limits(
                seconds=intent.limit.seconds,
                turns=intent.limit.turns,
                origin=intent.limit.origin,
                round=status.get("round"),
                rounds=status.get("rounds"),
            ),
            env=intent.task.env,
            use=ran[0].use if ran else None,
            load=self._loads(run),
            host=self._host,
            tried=(*_pushes(ages), *_meddling(ages)),
            kept=() if isinstance(outcome, Published) else self._kept(ages),
            does_not_close=_does_not_close(intent.event.subject, outcome),
            tails=self._tails(ages, ran, checked, well=well),
            links=self._urls(intent, outcome),
            at=datetime.fromtimestamp(self._clock(), UTC),
        )

    def _repository(self, intent: Intent) -> Repository:
        repo = intent.event.subject.repo
        url = self._repositories.forge(repo).git(repo).url
        return Repository(forge=repo.forge, name=repo.name, url=url if urlsplit(url).scheme in _REACHABLE else "")

    def _changes(self, run: Run, sealed: Sealed) -> tuple[Change, ...]:
        mirror = self._repositories.mirror(run.intent.event.subject.repo)
        with git_trouble("The changed files can't be listed"):
            figures = evidence.figures(mirror, sealed.since(run.intent.head), sealed.tip)
        return tuple(Change(path=shown_path(f.path), added=f.added, deleted=f.deleted) for f in figures.files)

    def _risk(self, intent: Intent, sealed: Sealed) -> Risk:
        """What the change is by the rules of the branch that it is for."""
        if sealed.tip == intent.head:
            return Risk(tier=None, reasons=(NOTHING_CHANGED,))
        subject = intent.event.subject
        # What a run begins at is the branch's own, as it stood then, but for a pull request: that has its own author.
        rules_at = None if isinstance(subject, PullRef) else intent.head
        since, mirror = sealed.since(intent.head), self._repositories.mirror(subject.repo)
        return risk_of(mirror, since, sealed.tip, branch=intent.base_ref, rules_at=rules_at)

    def _loads(self, run: Run | None) -> Load:
        load, cpus = self._load()
        return Load(at_start=run.load if run else None, at_end=round(load, 2), cpus=cpus)

    def _tails(self, ages: Ages, ran: Sequence[Ran], checked: Checked | None, *, well: bool) -> tuple[Tail, ...]:
        """The ends of the logs of what did not go well."""
        bad = [one for verdict in checked.verdicts for one in verdict.tries if not one.passed] if checked else []
        chosen = [] if well else [*bad, *(one for one in ran if not bad or not one.passed)]
        return tuple(
            Tail(what=one.what, log=one.log, text=self._masking(tail(ages.path / one.log, TAIL_BYTES)))
            for one in chosen[:TAILS]
        )

    def _kept(self, ages: Ages) -> tuple[str, ...]:
        """What there is, and nothing that might be."""
        run = ages.run
        if run is None:
            return ()
        mirror = self._repositories.mirror(run.intent.event.subject.repo)
        with git_trouble("What was kept can't be listed"):
            refs = worktree.recovered(mirror, f"{RECOVER}/{run.id}")
        kept = [f"commits that are nowhere else: {ref} of the bot's mirror" for ref in refs]
        patch = RunDir(ages.path).changes_patch
        if patch.exists() and patch.stat().st_size:
            kept.append(f"what was not committed: {patch.name} in the run's directory")
        if aside := read_json(ages.path / KEPT):
            kept.append(f"the worktree's files, since {aside['why']}: {aside['worktree']}")
        return tuple(kept)

    def _urls(self, intent: Intent, outcome: Outcome) -> Links:
        repo = intent.event.subject.repo
        forge = self._repositories.forge(repo)
        found = Links(run=self._links(intent.run_id), base=forge.commit_url(repo, intent.head))
        if not isinstance(outcome, Published):
            return found
        branch = outcome.ref.removeprefix("refs/heads/")
        return replace(found, tip=forge.commit_url(repo, outcome.tip), ref=forge.branch_url(repo, branch))


_REACHABLE = ("http", "https", "ssh")


def _pushes(ages: Ages) -> list[str]:
    """Of the command, and of its checks."""
    folders = (ages.path / "hooks", *sorted(ages.path.glob("checks/*/hooks")))
    return list(dict.fromkeys(told for folder in folders for told in hooks.refused_pushes(folder)))


def _meddling(ages: Ages) -> list[str]:
    return [f"change of {name}, the bot's own record of the run, which was put back" for name in ages.meddled]


def _asked_with(intent: Intent) -> str:
    match intent.reason:
        case Command(line):
            return line
        case RuleFired(on, place):
            return f"{on} ({place})"


def _not_run(intent: Intent, checked: Checked | None, ran: Sequence[Ran], outcome: Outcome) -> tuple[NotRun, ...]:
    """What was configured or asked and did not run."""
    why = _why_not_run(outcome)
    if checked is not None:
        missing = checked.not_run
    else:
        missing = tuple(NotRun(" ".join(check.run), why) for check in intent.task.verify)
    command = () if ran else (NotRun(" ".join((*intent.task.run, *intent.args)), why),)
    none = () if intent.task.verify else (NotRun("checks", "the task names none (`[[task.verify]]`)"),)
    return (*command, *missing, *none)


def _why_not_run(outcome: Outcome) -> str:
    match outcome:
        case Failed(stage):
            return f"the run failed before it ({stage})"
        case _:
            return f"the run was {outcome.kind} before it"


def _does_not_close(subject: Subject, outcome: Outcome) -> str:
    """Commits on a branch close nothing: that is said, so that nobody takes a report for the end of a ticket."""
    if isinstance(subject, BranchRef):
        return ""
    left = "merging it" if isinstance(outcome, Published) else "what to do about it"
    return f"{subject}: {left} and closing it is for people"

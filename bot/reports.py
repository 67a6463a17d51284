"""The report: what was seen of a run, as data (`report.json`) and rendered from it for people (`report.md`).

A line says only what was seen. What did not run is named, with why; no checks at all is never green.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_never

from bot import codec
from bot.ages import Ages, Checked, NotRun, Ran, Sealed, Verdict
from bot.markdown import block, cell, code, inline
from bot.masking import Masking
from bot.model import (
    Blocked,
    Cancelled,
    Claim,
    Command,
    Failed,
    Intent,
    Lost,
    Outcome,
    Published,
    RuleFired,
    Run,
    RunId,
    Sha,
    Unchanged,
)
from bot.repositories import Repositories, git_trouble
from bot.rundir import RunDir, read_json, write_text
from bot.statefiles import open_plain
from bot.verification import ran_of
from gitops import evidence

TAIL_BYTES = 4_000
"""How much of a log's end a report shows."""

FILES_SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed file. None = binary."""

    path: str
    added: int | None
    deleted: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The host's load average over one minute when the command started, and when the run ended, and its CPUs."""

    at_start: float | None
    at_end: float | None
    cpus: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything the report says; `report.json` is this, and `report.md` holds nothing else."""

    run: RunId
    task: str
    subject: str
    asked_by: str
    asked_with: str
    project: str
    trusted_from: str
    claim: str | None
    base: Sha
    base_why: str
    tip: Sha | None
    ref: str | None
    outcome: Outcome
    commits: int
    leftovers_committed: bool
    descends: bool
    incorporated: tuple[Sha, ...]
    changes: tuple[Change, ...]
    skipped: tuple[str, ...]
    ran: tuple[Ran, ...]
    verdicts: tuple[Verdict, ...]
    not_run: tuple[NotRun, ...]
    limit_seconds: int
    limit_turns: int
    limit_origin: str
    rounds: int | None
    load: Load
    host: str
    kept: tuple[str, ...]
    """What was kept of the work that was not published."""
    tail: str
    """The end of the command's log, with secrets masked; empty when it ended well."""
    at: datetime

    @property
    def added(self) -> int:
        return sum(change.added or 0 for change in self.changes)

    @property
    def deleted(self) -> int:
        return sum(change.deleted or 0 for change in self.changes)


class Reporter:
    """Writes a run's report into its directory."""

    def __init__(
        self,
        repositories: Repositories,
        masking: Masking,
        *,
        host: str,
        links: Callable[[RunId], str],
        load: Callable[[], tuple[float, int]],
        clock: Callable[[], float],
    ) -> None:
        self._repositories = repositories
        self._masking = masking
        self._host = host
        self._links = links
        self._load = load
        self._clock = clock

    def write(self, ages: Ages) -> None:
        """Writes `report.md`, then `report.json`, whose presence says that both are there."""
        report = self._gather(ages)
        files = RunDir(ages.path)
        write_text(files.report_md, self._masking(render(report, self._urls(ages.intent, report))))
        write_text(files.report_json, self._masking(codec.dump(Report, report)))

    def _gather(self, ages: Ages) -> Report:
        intent = ages.intent
        ended = ages.ended
        run, claim = ages.run, ages.claim
        sealed = ages.need("sealed", Sealed) if ages.has("sealed") else None
        checked = ages.need("checked", Checked) if ages.has("checked") else None
        outcome: Outcome = ended.outcome if ended else Lost("how it ended is not known")
        status: dict[str, Any] = read_json(RunDir(ages.path).status) or {}
        ran = [ran_of(ages.path, ages.path, "the task's command")] if status else []
        well = isinstance(outcome, Published | Unchanged)
        load, cpus = self._load()
        return Report(
            run=intent.run_id,
            task=intent.task.name,
            subject=str(intent.event.subject),
            asked_by=intent.event.actor.login,
            asked_with=_asked_with(intent),
            project=intent.project,
            trusted_from=intent.trusted_from,
            claim=claim.oid if claim else None,
            base=intent.head,
            base_why=intent.head_why,
            tip=sealed.tip if sealed and sealed.tip != intent.head else None,
            ref=outcome.ref if isinstance(outcome, Published) else None,
            outcome=outcome,
            commits=sealed.commits if sealed else 0,
            leftovers_committed=sealed.leftovers_committed if sealed else False,
            descends=sealed.descends if sealed else True,
            incorporated=sealed.incorporated if sealed else (),
            changes=self._changes(run, sealed) if run and sealed else (),
            skipped=sealed.skipped if sealed else (),
            ran=tuple(ran),
            verdicts=checked.verdicts if checked else (),
            not_run=_not_run(intent, checked, ran),
            limit_seconds=intent.limit.seconds,
            limit_turns=intent.limit.turns,
            limit_origin=intent.limit.origin,
            rounds=status.get("round"),
            load=Load(at_start=run.load if run else None, at_end=round(load, 2), cpus=cpus),
            host=self._host,
            kept=() if well else _kept(ages, claim),
            tail="" if well else self._masking(tail(RunDir(ages.path).worker_log)),
            at=datetime.fromtimestamp(self._clock(), UTC),
        )

    def _changes(self, run: Run, sealed: Sealed) -> tuple[Change, ...]:
        mirror = self._repositories.mirror(run.intent.event.subject.repo)
        with git_trouble("The changed files can't be listed"):
            figures = evidence.figures(mirror, run.intent.head, sealed.tip)
        return tuple(Change(path=f.path, added=f.added, deleted=f.deleted) for f in figures.files)

    def _urls(self, intent: Intent, report: Report) -> dict[str, str]:
        repo = intent.event.subject.repo
        forge = self._repositories.forge(repo)
        urls = {"run": self._links(intent.run_id), "base": forge.commit_url(repo, intent.head)}
        if report.tip is not None and report.ref is not None:
            urls["tip"] = forge.commit_url(repo, report.tip)
            urls["ref"] = forge.branch_url(repo, report.ref.removeprefix("refs/heads/"))
        return urls


def _asked_with(intent: Intent) -> str:
    match intent.reason:
        case Command(line):
            return line
        case RuleFired(on, place):
            return f"{on} ({place})"


def _not_run(intent: Intent, checked: Checked | None, ran: Sequence[Ran]) -> tuple[NotRun, ...]:
    if checked is not None:
        missing = checked.not_run
    else:
        missing = tuple(NotRun(" ".join(check.run), "the run ended before it") for check in intent.task.verify)
    command = () if ran else (NotRun("the task's command", "the run ended before it"),)
    none = () if intent.task.verify else (NotRun("checks", "the task names none (`[[task.verify]]`)"),)
    return (*command, *missing, *none)


def _kept(ages: Ages, claim: Claim | None) -> tuple[str, ...]:
    if claim is None or not ages.has("run"):
        return ()
    kept = [f"commits that are nowhere else: refs/leadsman/recover/{ages.path.name} of the bot's mirror"]
    patch = RunDir(ages.path).changes_patch
    if patch.exists() and patch.stat().st_size:
        kept.append(f"what was not committed: {patch.name} in the run's directory")
    return tuple(kept)


def tail(log: Path, most: int = TAIL_BYTES) -> str:
    """The last whole lines of a log, at most `most` bytes, undecodable bytes shown as such."""
    descriptor = open_plain(log)
    if descriptor is None:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - most))
        raw = file.read(most)
    text = raw.decode("utf-8", "backslashreplace")
    return text.partition("\n")[2] if size > most and "\n" in text else text


# ── the same for people ──────────────────────────────────────────────────────────────────────────────────────────


def render(report: Report, urls: dict[str, str]) -> str:
    """The report as Markdown. Nothing from outside leaves its cell or fence, and nobody is mentioned."""
    parts = [
        _headline(report, urls),
        _facts(report, urls),
        _ran(report),
        _not_run_part(report),
        _changes_part(report),
        _kept_part(report),
        _tail_part(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _headline(report: Report, urls: dict[str, str]) -> str:
    run = f"[`{report.run}`]({urls['run']})"
    task = code(report.task)
    match report.outcome:
        case Published(tip, ref):
            branch = f"[{code(ref.removeprefix('refs/heads/'))}]({urls['ref']})"
            checks = _green(report)
            return f"**Published** {task}: [`{tip[:12]}`]({urls['tip']}) on {branch}, {checks}. Run {run}."
        case Unchanged(why):
            return f"**Nothing to publish** from {task}: {inline(why)} Run {run}."
        case Failed(stage, why):
            return f"**Failed** {task} ({inline(stage)}): {inline(why)} Nothing was published. Run {run}."
        case Blocked(waits_for):
            return f"**Blocked** {task}: it waits for {inline(waits_for)}. Run {run}."
        case Cancelled(by):
            return f"**Cancelled** {task} by {inline(by)}. Nothing was published. Run {run}."
        case Lost(why):
            return f"**Lost** {task}: {inline(why)} Nothing was published. Run {run}."
        case unreachable:
            assert_never(unreachable)


def _green(report: Report) -> str:
    held = sum(1 for verdict in report.verdicts if verdict.holds)
    if not report.verdicts:
        return "not checked by any command"
    return f"{held} of {len(report.verdicts)} checks hold"


def _facts(report: Report, urls: dict[str, str]) -> str:
    rows = [
        ("asked by", f"{inline(report.asked_by)} with {code(report.asked_with)}"),
        ("base", f"[`{report.base}`]({urls['base']}): {inline(report.base_why)}"),
    ]
    if report.tip is not None:
        rows.append(("tip", f"`{report.tip}`, {_count(report.commits, 'commit')}{_own_commit(report)}"))
        rows.append(("changed", f"{_count(len(report.changes), 'file')}, +{report.added} -{report.deleted}"))
    if not report.descends:
        rows.append(("history", "the tip does not descend from the base: the command rewrote it"))
    if report.incorporated:
        rows.append(("merged in", ", ".join(f"`{sha}`" for sha in report.incorporated)))
    if report.skipped:
        rows.append(("left out of the commits", f"{', '.join(code(p) for p in report.skipped)}"))
    rows.append(("task from", inline(report.trusted_from)))
    rows.append(
        ("limit", f"{report.limit_seconds} s, {_count(report.limit_turns, 'turn')} ({inline(report.limit_origin)})")
    )
    rows.append(("host", _host(report)))
    if report.claim is not None:
        rows.append(("Claim-Id", f"`{report.claim}`"))
    return "| | |\n|---|---|\n" + "\n".join(f"| {name} | {cell(value)} |" for name, value in rows)


def _own_commit(report: Report) -> str:
    return ", the last one by the bot: the command left it uncommitted" if report.leftovers_committed else ""


def _host(report: Report) -> str:
    load = report.load
    figures = [
        f"{name} {value:.2f}" for name, value in (("start", load.at_start), ("end", load.at_end)) if value is not None
    ]
    cpus = f" on {_count(load.cpus, 'CPU')}" if load.cpus else ""
    return f"{inline(report.host)}, load at {', '.join(figures)}{cpus}" if figures else inline(report.host)


def _ran(report: Report) -> str:
    lines = [_ran_line(ran) for ran in report.ran]
    lines += [line for verdict in report.verdicts for line in _verdict_lines(verdict)]
    if not lines:
        return ""
    head = "**Ran**\n\n| what | command | result | took | log (SHA-256) |\n|---|---|---|---|---|"
    return "\n".join([head, *lines])


def _verdict_lines(verdict: Verdict) -> list[str]:
    passed = sum(1 for ran in verdict.tries if ran.passed)
    rate = f"check, {passed}/{len(verdict.tries)}"
    lines = [
        _ran_line(ran, what=f"{rate}, try {n}" if len(verdict.tries) > 1 else rate)
        for n, ran in enumerate(verdict.tries, 1)
    ]
    if verdict.at_base is not None:
        red = "red at base" if verdict.at_base.exit_code not in (0, None) else "NOT red at base"
        lines.append(_ran_line(verdict.at_base, what=f"check at base: {red}"))
    return lines


def _ran_line(ran: Ran, what: str | None = None) -> str:
    waited = f" (+{ran.waited:.1f} s wait)" if ran.waited else ""
    log = f"`{ran.log_sha256[:16]}…`, {ran.log_bytes} bytes"
    argv = code(" ".join(ran.argv)[:200])
    return f"| {what or ran.what} | {cell(argv)} | {cell(_result(ran))} | {ran.seconds:.1f} s{waited} | {log} |"


def _result(ran: Ran) -> str:
    if ran.stop_reason:
        return f"stopped: {inline(ran.stop_reason)}"
    if ran.signal:
        return f"signal {ran.signal}"
    return "unknown" if ran.exit_code is None else f"exit {ran.exit_code}"


def _not_run_part(report: Report) -> str:
    if not report.not_run:
        return ""
    lines = "\n".join(f"- {code(item.what)}: {inline(item.why)}" for item in report.not_run)
    return f"**Not run**\n\n{lines}"


def _changes_part(report: Report) -> str:
    if not report.changes:
        return ""
    lines = [f"- {code(c.path)} {_figures(c)}" for c in report.changes[:FILES_SHOWN]]
    if len(report.changes) > FILES_SHOWN:
        lines.append(f"- and {len(report.changes) - FILES_SHOWN} more")
    return "**Files**\n\n" + "\n".join(lines)


def _figures(change: Change) -> str:
    return "binary" if change.added is None else f"+{change.added} -{change.deleted or 0}"


def _kept_part(report: Report) -> str:
    if not report.kept:
        return ""
    return "**Kept**\n\n" + "\n".join(f"- {inline(item)}" for item in report.kept)


def _tail_part(report: Report) -> str:
    return f"**End of the log**\n\n{block(report.tail)}" if report.tail.strip() else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

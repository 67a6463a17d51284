"""Every sentence that people read in an answer, as functions that return Markdown: what is, and the next step.

Arguments are plain text from anywhere; they are made harmless here. Nobody is mentioned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.invisible import name_of
from bot.markdown import block, cell, code, inline
from bot.model import BranchRef, Failed, Held, Intent, Published, Unchanged
from bot.passview import Passes
from bot.reports import Report

LOG_BYTES = 20_000
"""What an answer shows of a log, in bytes of UTF-8: three such answers fit into one comment."""

_PHASES = {
    "waiting": "waits",
    "claim": "is being started",
    "prepare": "is being started",
    "start": "runs",
    "blocked": "is blocked",
    "interrupted": "was interrupted",
    "follow": "is being checked",
    "check": "is being published",
    "publish": "is being tidied up",
    "give_back": "is being reported",
    "report": "is being tidied up",
    "leave": "is being tidied up",
    "closed": "has ended",
}
"""The last step of the road that is done -> what goes on since."""

# What was typed


def unknown_command(word: str, nearest: str | None) -> str:
    if not word:
        return "No command stands behind my name. `/help` lists what there is."
    return f"There is no command {code(word)}.{_did_you_mean(nearest)} `/help` lists what there is."


def hidden_characters(characters: Sequence[str]) -> str:
    names = ", ".join(name_of(character) for character in characters[:5])
    more = f" and {len(characters) - 5} more" if len(characters) > 5 else ""
    return (
        f"This line holds characters that can't be seen ({names}{more}), so what runs could differ from what is read. "
        "Type it again by hand."
    )


def too_long(what: str, limit: int) -> str:
    return (
        f"The {what} is longer than {limit:,} characters, so the command in it was not read. "
        "Post the command in a short comment of its own."
    )


def too_many(limit: int, left_out: int) -> str:
    return f"One comment may hold {limit} commands; the last {left_out} were left out. Post them in another comment."


def unknown_argument(word: str, nearest: str | None, *, usage: str, passes_on: bool) -> str:
    behind = " What the task itself is to get goes behind `--`." if passes_on else ""
    return f"There is no argument {code(word)} here.{_did_you_mean(nearest)}{behind} {_usage(usage)}"


def missing_value(argument: str, *, usage: str) -> str:
    lacks = "is missing" if argument.isupper() else "has no value"
    return f"{code(argument)} {lacks}. {_usage(usage)}"


def duplicate_argument(argument: str, *, usage: str) -> str:
    return f"{code(argument)} is given twice; leave one out. {_usage(usage)}"


def unclosed_quote() -> str:
    return "A quote is opened and never closed. Close it, or write `\\'` or `\\\"` for a plain quotation mark."


def bad_value(argument: str, value: str, wanted: str, *, usage: str) -> str:
    return f"{code(argument)} can't be {code(value)}: it takes {wanted}. {_usage(usage)}"


def short_sha(value: str) -> str:
    return (
        f"{code(value)} is not a full commit id. Copy all 40 digits from the commit that you looked at: "
        "another one with the same first digits can be made on purpose."
    )


# Who may


def denied(command: str, *, needs: str, has: str, who: str, or_asker: bool) -> str:
    other = ", or to have asked for the run" if or_asker else ""
    return (
        f"{code('/' + command)} needs **{needs}** permission in this repository{other}; {code(who)} has **{has}**. "
        f"Somebody with {needs} permission can post it."
    )


def no_right(what: str) -> str:
    return (
        f"The forge refused the bot what it needs here: {inline(what)}. "
        "Whoever runs the bot can give its token the right; then post the command again."
    )


def not_found(what: str) -> str:
    return f"The forge has no such thing (any more): {inline(what)}. Check it, then post the command again."


# What can't run now


def unknown_task(name: str, nearest: str | None, known: Iterable[str]) -> str:
    listed = list(known)
    names = ", ".join(code(task) for task in listed[:20]) + (" and more: see `/tasks`" if len(listed) > 20 else "")
    there_are = f"There are {names}." if names else "No task is configured for this repository yet."
    return f"There is no task {code(name)} here.{_did_you_mean(nearest)} {there_are}"


def head_moved(where: str, *, was: str, named: bool, now: str, again: str) -> str:
    """`named`: the person named the commit; else it was the head when they wrote. `ref_changed` is for programs."""
    expected = f"You asked for {code(was)}" if named else f"When you wrote, the head of {code(where)} was {code(was)}"
    return (
        f"`ref_changed`: nothing was started. {expected}; the head of {code(where)} is {code(now)} now. "
        f"Look at what changed, then ask for it:\n\n{block(again)}"
    )


def approval_misses(where: str, *, was: str, now: str, again: str) -> str:
    return (
        f"`ref_changed`: nothing was approved. {code(was)} is not the head of {code(where)}; that is {code(now)} now. "
        f"Read that commit, then approve it:\n\n{block(again)}"
    )


def pull_closed(number: int, *, merged: bool) -> str:
    return f"Pull request {number} is {'merged' if merged else 'closed'}, so nothing was started. Reopen it first."


def fork_not_approved(number: int, sha: str) -> str:
    return (
        f"Pull request {number} comes from a fork, and nobody approved its commit {code(sha)} yet. Somebody with write "
        f"permission reads that commit, posts this, and asks for the run again:\n\n{block('/ok-to-test ' + sha)}"
    )


def on_hold(by: str, reason: str) -> str:
    return f"No new runs start here: {code(by)} put it on hold{_because(reason)}. `/unhold` ends that."


# Answers


def help_page(rows: Iterable[tuple[str, str, bool]], *, who: str, has: str) -> str:
    """`rows`: usage and help of each command that `who` may use, and whether only on runs that they asked for."""
    listing = "\n".join(
        f"{usage}\n    {text}{' (only runs that you asked for)' if own_only else ''}" for usage, text, own_only in rows
    )
    return f"What {code(who)} may do here, with **{has}** permission:\n\n{block(listing)}"


def help_of(*, usage: str, text: str, needs: str, or_asker: bool) -> str:
    other = ", or to have asked for the run" if or_asker else ""
    who = "Anyone may use it." if needs == "none" else f"It needs {needs} permission{other}."
    return f"{block(f'{usage}{chr(10)}    {text}')}\n{who}"


@dataclass(frozen=True, slots=True)
class TaskLine:
    name: str
    help: str
    difficulty: str
    origin: str


def task_list(tasks: Sequence[TaskLine], warnings: Sequence[str]) -> str:
    lines = [
        f"- {code(task.name)}{': ' + inline(task.help) if task.help else ''} "
        f"({inline(task.difficulty)}, from {code(task.origin)})"
        for task in tasks
    ]
    said = (
        ["Start one with `/run` and its name:", "\n".join(lines)]
        if lines
        else ["No task is configured for this repository yet. Write a `[[task]]` into its `.leadsman.toml`."]
    )
    if warnings:
        said += ["The configuration has warnings:", "\n".join(f"- {inline(warning)}" for warning in warnings)]
    return "\n\n".join(said)


def file_wrong(sha: str, branch: str, problems: Sequence[str], *, earlier_counts: bool) -> str:
    """The repository's own file can't be used. `problems` name it and the line."""
    counts = "what it said when it was last right still counts" if earlier_counts else "nothing of it counts"
    listing = "\n".join(f"- {inline(problem)}" for problem in problems)
    return (
        f"`.leadsman.toml` of {code(branch)} is wrong at {code(sha)}, so {counts}:\n\n{listing}\n\n"
        f"Correct it on {code(branch)}. This is said once."
    )


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run for a list. `position` is its place among the waiting, 0 where it does not wait."""

    run_id: str
    task: str
    phase: str
    reason: str
    position: int
    asked_by: str
    head: str


def host_line(
    held: int, slots: int, peak: int, pending: int, *, done: tuple[int, int], paused_by: str, passes: Passes
) -> str:
    """How full the host is, and who holds its CPU passes; `done` are the runs that were ever (started, reported),
    `paused_by` is empty where new runs may start."""
    paused = f" New runs are paused by {code(paused_by)}." if paused_by else ""
    runs = "1 run waits" if pending == 1 else f"{pending} runs wait"
    by = f" by {', '.join([*map(code, passes.labels), *passes.more])}" if passes.holders else ""
    pool = f" {len(passes.holders)} of {passes.size} CPU passes are held{by}." if passes.size else ""
    full = f"On this host {held} of {slots} slots are held ({peak} at most so far), {runs}"
    return f"{full}; started in all: {done[0]}, reported: {done[1]}.{pool}{paused}"


def run_list(open_runs: Sequence[RunLine], ended: Sequence[RunLine], host: str) -> str:
    if not open_runs and not ended:
        return f"No run was asked for here yet. `/run` with a task's name starts one; `/tasks` lists them.\n\n{host}"
    said = [_run_lines(open_runs)] if open_runs else ["No run is open here."]
    if ended:
        said += ["Ended lately:", _run_lines(ended)]
    said.append(host)
    return "\n\n".join(said)


def _run_lines(runs: Sequence[RunLine]) -> str:
    return "\n".join(
        f"- {code(run.run_id)}: {code(run.task)} at {code(run.head)}, asked for by {code(run.asked_by)}, {_state(run)}"
        for run in runs
    )


def _state(run: RunLine) -> str:
    place = f" at place {run.position}" if run.position else ""
    reason = f": {inline(run.reason)}" if run.reason else ""
    return f"{_PHASES.get(run.phase, inline(run.phase))}{place}{reason}"


def log_tail(run_id: str, task: str, lines: Sequence[str]) -> str:
    if not lines:
        return f"Run {code(run_id)} of {code(task)} has written no log yet."
    text = block(_last_bytes("\n".join(lines), LOG_BYTES))
    return f"The end of the log of run {code(run_id)} ({code(task)}):\n\n{text}"


def files_elsewhere(run_id: str, task: str, host: str, command: str) -> str:
    return (
        f"Run {code(run_id)} of {code(task)} is on the host {code(host)}, and so are its files. "
        f"Whoever operates it can look there: {code(command)}"
    )


def _last_bytes(text: str, most: int) -> str:
    raw = text.encode(errors="backslashreplace")
    return raw.decode() if len(raw) <= most else "[...]\n" + raw[-most:].decode(errors="ignore")


def stopping(run_id: str, task: str) -> str:
    return f"Run {code(run_id)} of {code(task)} is being cancelled. Its report says when nothing of it is left."


def run_has_ended(run_id: str, task: str) -> str:
    return f"Run {code(run_id)} of {code(task)} has already ended. `/retry` starts it anew."


def run_is_open(run_id: str, task: str, pid: int | None) -> str:
    """`pid` is its command's, None where it has none now."""
    alive = f" (pid {pid})" if pid is not None else ""
    return (
        f"Run {code(run_id)} of {code(task)} has not ended{alive}. Wait for it, or stop it:\n\n"
        f"{block('/cancel ' + run_id)}"
    )


def nothing_to_resume(run_id: str, task: str) -> str:
    return f"Run {code(run_id)} of {code(task)} has not begun yet, so there is nothing to resume. It starts by itself."


def no_run_here(what: str) -> str:
    """`what`: "to cancel", "to try again", ..."""
    return f"There is no run {what} here. `/status` lists what there is."


def unknown_run(run_id: str) -> str:
    return f"There is no run {code(run_id)} here. `/status` lists what there is."


def which_run(command: str, run_ids: Sequence[str]) -> str:
    choices = "\n".join(f"/{command} {run_id}" for run_id in run_ids)
    return f"More than one run is meant. Post one of these:\n\n{block(choices)}"


def only_tickets(command: str) -> str:
    return f"{code('/' + command)} is for issues and tickets. Post it there."


def claimed(who: str) -> str:
    return f"{code(who)} has this ticket now, and no bot starts on it by itself. `/release` gives it back."


def held_by_run(run_id: str, task: str, who: str, since: datetime) -> str:
    return (
        f"Run {code(run_id)} of {code(task)} has this ticket. "
        "`/release` has it stop after its turn, and gives the ticket back. "
        f"{code(who)} asked for it at {since:%Y-%m-%dT%H:%M:%SZ}."
    )


def held_elsewhere(by: str, since: str, run_id: str) -> str:
    return (
        f"{inline(by)} has this ticket since {inline(since)}, with run {code(run_id)}. Wait for its report, or change "
        "the ticket's status or assignee yourself: then it is yours."
    )


def releasing(run_ids: Sequence[str]) -> str:
    runs = " and ".join(f"run {code(run_id)}" for run_id in run_ids)
    return (
        f"The ticket is given back as soon as {runs} has come to the end of its turn, without publishing anything; "
        "its last note says so. `/cancel` ends it at once."
    )


def released(who: str, reason: str) -> str:
    return f"{code(who)} gave the ticket back{_because(reason)}. It may be claimed again."


def released_in_comment(who: str, reason: str) -> str:
    return f"{who}, who gave the ticket back{' (' + reason + ')' if reason else ''}"


def hold_set(reason: str) -> str:
    since = f"No new runs start here from now on{_because(reason)}."
    return f"{since} What runs goes on, what waits waits on; `/unhold` ends the hold."


def hold_ended(by: str) -> str:
    return f"Runs may start here again. The hold was set by {code(by)}."


def hold_absent() -> str:
    return "Nothing is on hold here."


def approved(sha: str, number: int) -> str:
    return f"Runs may start on commit {code(sha)} of pull request {number}. A new commit needs a new approval."


def only_pulls(command: str) -> str:
    return f"{code('/' + command)} is for pull requests. Post it there."


def approval_not_needed(number: int) -> str:
    return f"Pull request {number} does not come from a fork, so its commits need no approval. `/run` works right away."


# What a run's own part of an answer says


def waiting(run_id: str, task: str, reason: str, position: int) -> str:
    """`position` is its place among the waiting, from 1; 0 where it is on its way already."""
    place = f" at place {position}" if position else ""
    why = f": {inline(reason.removesuffix('.'))}" if reason else ""
    return f"Run {code(run_id)} of {code(task)} waits{place}{why}. This comment tells how it goes on."


def running(run_id: str, task: str, started: str) -> str:
    since = f" since {code(started)}" if started else ""
    return f"Run {code(run_id)} of {code(task)} is under way{since}. Its report will stand here; `/cancel` stops it."


def asked_to_stop(run_id: str, task: str, by: str, until: str) -> str:
    return (
        f"Run {code(run_id)} of {code(task)} was asked to stop after its turn by {inline(by)}; at {code(until)} it is "
        "ended. It publishes nothing; its report will stand here. `/cancel` ends it at once."
    )


def blocked(run_id: str, task: str, waits_for: str) -> str:
    return (
        f"Run {code(run_id)} of {code(task)} is **blocked**, and waits for this:\n\n{block(waits_for)}\n"
        "What it did is kept in its worktree. Once it can go on, start it again there, or give it up:\n\n"
        f"{block(f'/resume {run_id}{chr(10)}/cancel {run_id}')}"
    )


def interrupted(run_id: str, task: str, why: str) -> str:
    return (
        f"Run {code(run_id)} of {code(task)} was **interrupted** by a restart of its host ({inline(why)}). "
        "What it did is kept in its worktree. Start it again there, or give it up:\n\n"
        f"{block(f'/resume {run_id}{chr(10)}/cancel {run_id}')}"
    )


def resuming(run_id: str, task: str) -> str:
    return f"Run {code(run_id)} of {code(task)} is started again where it was. Its report will stand where it waits."


def held(holder: Held) -> str:
    return (
        f"Nothing was started: {inline(holder.by)} has this in hand since {inline(holder.since)}, "
        f"with run {_linked(holder)} ({inline(holder.where)}). Wait for its report, or stop it:\n\n"
        f"{block('/cancel ' + holder.run_id)}"
    )


def _linked(holder: Held) -> str:
    return f"[{code(holder.run_id)}]({holder.link})" if holder.link else code(holder.run_id)


def outdated(head: str, newer: str) -> str:
    return f"**Outdated**: this is about {code(head)}, and the head is {code(newer)} now. `/run` starts on that one."


def unreachable(what: str) -> str:
    return f"{inline(what)} does not answer. The bot keeps trying; nothing needs to be posted again."


def left_out(count: int) -> str:
    return f"*{count:,} bytes were left out here; `/logs` and the run's directory have the rest.*"


def pull_title(intent: Intent) -> str:
    """Plain text: the title of a pull request that the bot opens."""
    subject = intent.event.subject
    return f"{intent.task.name}: {subject if isinstance(subject, BranchRef) else f'#{subject.number}'}"


def pull_body(intent: Intent) -> str:
    """Nothing in it closes anything."""
    subject = str(intent.event.subject)
    return (
        f"The commits of run {code(intent.run_id)} of {code(intent.task.name)}, which {code(intent.event.actor.login)} "
        f"asked for on {inline(subject)}. What was checked stands in its report there, and in the note on its last "
        "commit (`refs/notes/leadsman`)."
    )


def unknown_to_the_store(run_id: str) -> str:
    """For a terminal, as the next one."""
    return f"The store knows nothing of run {run_id}. `leadsman runs` lists those there are."


def under_way(run_id: str, task: str) -> str:
    return f"Run {run_id} of {task} has not ended. `leadsman wait {run_id}` waits for it, `leadsman cancel` ends it."


def no_report(run_id: str) -> str:
    return f"Run {code(run_id)} has no report on this host, so there is nothing to check."


class Found(Protocol):
    """A claim that was checked again."""

    @property
    def claim(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def detail(self) -> str: ...


def verified(run_id: str, task: str, findings: Sequence[Found]) -> str:
    held = sum(1 for finding in findings if finding.verdict == "holds")
    rows = "\n".join(
        f"| {cell(inline(one.claim))} | {one.verdict} | {cell(inline(one.detail))} |" for one in findings[:100]
    )
    return (
        f"The report of run {code(run_id)} of {code(task)}, checked again: {held} of {len(findings)} claims hold.\n\n"
        f"| claim | verdict | seen |\n|---|---|---|\n{rows}\n\n"
        "Anybody can do the same, with the checks run again: `leadsman verify` in a clone."
    )


def no_change(commits: int) -> str:
    """`commits`: how many there are all the same, which come to nothing."""
    if commits == 0:
        return "The command left no change."
    return f"The command left {'a commit' if commits == 1 else f'{commits} commits'}, and no file differs by that."


def status_line(report: Report) -> str:
    """Plain text, for where a commit's status is shown: the outcome, and the checks that hold."""
    held = f"{report.holding} of {len(report.verdicts)} checks hold" if report.verdicts else "not checked"
    match report.outcome:
        case Published(_, ref):
            return f"published on {ref.removeprefix('refs/heads/')}, {held}"
        case Unchanged():
            return f"nothing to publish, {held}"
        case Failed(stage) as failed:
            return f"failed ({stage}), {failed.published}"
        case outcome:
            return f"{outcome.kind}, nothing was published"


def not_attached(why: str) -> str:
    return f"The log could not be attached: {inline(why)} It is in the run's directory; `/logs` shows its end."


def rows_left_out(count: int, run_id: str) -> str:
    return f"*The {count:,} oldest were left out here; `leadsman report {run_id}` has all of them.*"


def tail_left_out(log: str, run_id: str) -> str:
    """`log` is its path in the run's directory, as Markdown."""
    return f"*More of this log's end was left out here; it is {log} in the directory of run {code(run_id)}.*"


def _did_you_mean(nearest: str | None) -> str:
    return f" Did you mean {code(nearest)}?" if nearest else ""


def _usage(usage: str) -> str:
    return f"Usage: {code(usage)}"


def _because(reason: str) -> str:
    return f" ({inline(reason)})" if reason else ""


# Reasons that reports and the index repeat


def head_of_pull(number: int) -> str:
    return f"the head of #{number} when the bot acted"


def head_of_base(branch: str) -> str:
    return f"the head of {branch}, the project's base, when the bot acted"


def as_asked(why: str) -> str:
    return f"{why}, as sha= asked"


def pushed_head(branch: str) -> str:
    return f"what was pushed to {branch}"


def cancelled_in_comment(line: str) -> str:
    return f"{line} in a comment"


def stopped(at: str, how: str) -> str:
    """Plain text: a run that was asked at that time to stop after its turn, and what came of it."""
    return f"Asked at {at} to stop after its turn, {how}."


def ticket_taken(who: str, old: str | None, new: str | None) -> str:
    """The ticket's status before and after; `new` is empty where a label was taken off, both are None where the
    assignee was changed."""
    match new:
        case None:
            what = "changed the ticket's assignee"
        case "":
            what = f"took the label {old} off"
        case _:
            what = f"set the ticket to {new}"
    return f"{who}, who {what}"


def pull_ended(*, merged: bool) -> str:
    return "the pull request was merged" if merged else "the pull request was closed"

"""A report as Markdown for people: rendered from the signed statement and from nothing else, and never too long.

Nothing from outside leaves its cell or its fence, and nobody is mentioned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from bot import wording
from bot.ages import Ran, Verdict
from bot.markdown import block, cell, code, inline
from bot.model import Blocked, Cancelled, Failed, Lost, Published, Unchanged
from bot.reports import Change, Report, Risk, Tail

BUDGET = 60_000
"""Bytes of UTF-8: below the 65,536 characters that forges take, however they count them."""

FILES_SHOWN = 30
LISTED = 50
CELL = 400
"""Bytes that one text from outside may take, once it is rendered."""
TAIL = 4_000
ALL = 1 << 40

Write = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Room:
    """How much of each part is shown, in the order in which parts give way."""

    tail: int
    """Bytes of each log's end."""
    rows: int
    """Commands, the newest."""
    logs: int
    """Digests, of the newest."""
    files: int
    listed: int
    """Items of each other list."""


def render(report: Report, *, budget: int | None = BUDGET) -> str:
    """The report in at most `budget` bytes of UTF-8 (None: all of it). What is left out is said, and where it is.

    The ends of the logs give way first, then the oldest commands, then the lists.
    """
    parts = _Parts(report)
    ran = len(parts.rows)
    if budget is None:
        return parts.whole(Room(tail=ALL, rows=ran, logs=ran, files=ALL, listed=ALL))
    room = Room(tail=TAIL, rows=ran, logs=ran, files=FILES_SHOWN, listed=LISTED)
    text = parts.whole(room)
    for name, least in (("tail", 0), ("logs", 0), ("rows", 1), ("files", 0), ("listed", 1)):
        if len(text.encode()) <= budget:
            break
        room, text = _largest(parts, room, name, least, budget)
    return text


def _largest(parts: _Parts, room: Room, name: str, least: int, budget: int) -> tuple[Room, str]:
    """The most room for that part with which the whole fits; `least` where even that does not."""
    fits, too_much = least, getattr(room, name)
    while too_much - fits > 1:
        middle = (fits + too_much) // 2
        if len(parts.whole(replace(room, **{name: middle})).encode()) <= budget:
            fits = middle
        else:
            too_much = middle
    room = replace(room, **{name: fits})
    return room, parts.whole(room)


class _Parts:
    """The parts of one report; what does not depend on the room is rendered once."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.rows = list(_rows(report))
        self._head = [headline(report), _facts_table(report)]
        self._logs = [_log_line(ran) for ran in report.all_ran]

    def whole(self, room: Room) -> str:
        report = self.report
        parts = [
            *self._head,
            self._ran(room.rows),
            _listed("Not run", [f"{_code(item.what)}: {_text(item.why)}" for item in report.not_run], room.listed),
            _listed("Tried and refused", [_text(item) for item in report.tried], room.listed),
            _files(report.changes, room.files),
            _listed("Kept", [_text(item) for item in report.kept], room.listed),
            *(self._tails(room.tail)),
            self._folded(room.logs),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _ran(self, most: int) -> str:
        if not self.rows:
            return ""
        left_out = len(self.rows) - most
        table = "| what | command | result | tests | took |\n|---|---|---|---|---|"
        note = [wording.rows_left_out(left_out, self.report.run)] if left_out > 0 else []
        return "\n\n".join(["**Ran**", *note, "\n".join([table, *self.rows[max(0, left_out) :]])])

    def _tails(self, most: int) -> Iterator[str]:
        for tail in self.report.tails:
            if tail.text.strip():
                yield f"**End of the log** of {_code(tail.what)}\n\n{_tail(tail, most, self.report.run)}"

    def _folded(self, most: int) -> str:
        if not self._logs:
            return ""
        left_out = len(self._logs) - most
        note = [wording.rows_left_out(left_out, self.report.run)] if left_out > 0 else []
        lines = ["\n".join(f"- {line}" for line in self._logs[max(0, left_out) :])] if most else []
        return "\n\n".join(["<details><summary>Logs</summary>", *note, *lines, "</details>"])


def _tail(tail: Tail, most: int, run: str) -> str:
    """The log's end in a fence of at most `most` bytes: whole lines, where one of them fits."""
    text, shown = tail.text, block(tail.text)
    while text and len(shown.encode()) > most:
        excess = len(shown.encode()) - most
        text = text[max(1, min(len(text), excess // 8)) :]
        rest = text.partition("\n")[2]
        text = rest if rest.strip() else text
        shown = block(text)
    if len(text) == len(tail.text):
        return shown
    note = wording.tail_left_out(_code(tail.log), run)
    return f"{note}\n\n{shown}" if text.strip() else note


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fitted(write: Write, text: str, most: int = CELL) -> str:
    """`text` as `write` puts it, in at most `most` bytes: its beginning, where there is more."""
    shown = write(text[: most + 1])
    if len(text) <= most and len(shown.encode()) <= most:
        return shown
    kept = text[:most]
    while kept and len((shown := write(f"{kept}…")).encode()) > most:
        kept = kept[: min(len(kept) - 1, len(kept) * most // len(shown.encode()))]
    return shown


def _text(text: str) -> str:
    return _fitted(inline, text)


def _code(text: str) -> str:
    return _fitted(code, text)


def headline(report: Report) -> str:
    """What it came to, in a line of Markdown."""
    run = f"[`{report.run}`]({report.links.run})" if report.links.run else f"`{report.run}`"
    task = _code(report.task)
    match report.outcome:
        case Published(tip, ref):
            branch = _linked(_code(ref.removeprefix("refs/heads/")), report.links.ref)
            commit = _linked(f"`{tip[:12]}`", report.links.tip)
            return f"**Published** {task}: {commit} on {branch}, {_checks(report)}. Run {run}."
        case Unchanged(why):
            return f"**Nothing to publish** from {task}: {_text(why)} Run {run}."
        case Failed(stage, why) as failed:
            known = failed.published.capitalize()
            return f"**Failed** {task} ({_text(stage)}): {_text(why)} {known}. Run {run}."
        case Blocked(waits_for):
            return f"**Blocked** {task}: it waits for {_text(waits_for)} Nothing was published. Run {run}."
        case Cancelled(by, how):
            came = f" {_text(how)}" if how else ""
            return f"**Cancelled** {task} by {_text(by)}.{came} Nothing was published. Run {run}."
        case Lost(why):
            return f"**Lost** {task}: {_text(why)} Nothing was published. Run {run}."
        case unreachable:
            assert_never(unreachable)


def _linked(shown: str, url: str) -> str:
    return f"[{shown}]({url})" if url else shown


def _checks(report: Report) -> str:
    if not report.verdicts:
        return "not checked by any command"
    held = f"{report.holding} of {len(report.verdicts)} checks hold"
    earlier = report.checked_at not in (None, report.tip)
    return f"{held}, as measured at `{report.checked_at}`, an earlier commit with the same files" if earlier else held


def facts(report: Report) -> list[tuple[str, str]]:
    """What is known, as pairs of our own word and a line of Markdown."""
    return [*_origin(report), *_work(report), *_frame(report)]


def _facts_table(report: Report) -> str:
    return "| | |\n|---|---|\n" + "\n".join(f"| {name} | {cell(value)} |" for name, value in facts(report))


def _origin(report: Report) -> Iterator[tuple[str, str]]:
    yield "for", f"{_text(report.subject)}, project {_code(report.project)}"
    yield "asked by", f"{_text(report.asked_by)} with {_code(report.asked_with)}"
    yield "base", f"{_linked(f'`{report.base}`', report.links.base)}: {_text(report.base_why)}"


def _work(report: Report) -> Iterator[tuple[str, str]]:
    if report.tip is not None:
        own = ", the last one by the bot: the command left it uncommitted" if report.leftovers_committed else ""
        yield "tip", f"`{report.tip}`, {_count(report.commits, 'commit')}{own}"
        yield "changed", f"{_count(len(report.changes), 'file')}, +{report.added} -{report.deleted}"
    if report.risk is not None:
        yield "risk", _risk(report.risk)
    if not report.descends:
        yield "history", "the tip does not descend from the base: the command rewrote it"
    if report.incorporated:
        shown = ", ".join(f"`{sha}`" for sha in report.incorporated[-3:])
        more = f"{len(report.incorporated) - 3} earlier ones, then " if len(report.incorporated) > 3 else ""
        yield "came first", f"{more}{shown}"
    if report.skipped:
        shown = ", ".join(_code(path) for path in report.skipped[:5])
        yield "left out of the commits", shown + (f" and {len(report.skipped) - 5} more" * (len(report.skipped) > 5))
    if report.pull:
        yield "pull request", _text(report.pull)


def _risk(risk: Risk) -> str:
    why = "; ".join(_text(reason) for reason in risk.reasons)
    by = f", by the rules of {_code(risk.branch)} at `{risk.rules_at}`" if risk.rules_at is not None else ""
    return f"{risk.tier or 'no tier'}{by}: {why}"


def _frame(report: Report) -> Iterator[tuple[str, str]]:
    yield "task from", _text(report.trusted_from)
    limits = report.limits
    turns = f"{_count(limits.turns, 'turn')}"
    rounds = _rounds(limits.round, limits.rounds) if limits.round is not None else "rounds unknown"
    # Nobody but the command itself could tell how many turns it took.
    yield "limit", f"{limits.seconds} s, {turns} ({_text(limits.origin)}); {rounds}, turns used unknown"
    if report.use is not None:
        yield "used", f"{report.use.cpu_seconds:.1f} s of CPU, {report.use.max_rss_kib / 1024:.0f} MiB of memory"
    yield "host", _host(report)
    if report.claim is not None:
        yield "Claim-Id", f"`{report.claim}`"
    if report.does_not_close:
        yield "does not close", _text(report.does_not_close)


def _rounds(number: int, of: int | None) -> str:
    return f"round {number} of {of}" if of is not None else f"round {number}"


def _host(report: Report) -> str:
    load = report.load
    figures = [
        f"{name} {value:.2f}" for name, value in (("start", load.at_start), ("end", load.at_end)) if value is not None
    ]
    cpus = f" on {_count(load.cpus, 'CPU')}" if load.cpus else ""
    return (
        f"{_text(report.host)}, load at {', '.join(figures)}{cpus}"
        if figures
        else f"{_text(report.host)}, load unknown"
    )


def _rows(report: Report) -> Iterator[str]:
    for ran in report.ran:
        yield _row(ran, _text(ran.what))
    for verdict in report.verdicts:
        yield from _verdict_rows(verdict)


def _verdict_rows(verdict: Verdict) -> Iterator[str]:
    rate = f"check, {sum(1 for ran in verdict.tries if ran.passed)}/{len(verdict.tries)}"
    for number, ran in enumerate(verdict.tries, 1):
        yield _row(ran, f"{rate}, try {number}" if len(verdict.tries) > 1 else rate)
    if verdict.at_base is not None:
        red = "red at base" if verdict.was_red_at_base else "NOT red at base"
        yield _row(verdict.at_base, f"check at base: {red}")


def _row(ran: Ran, what: str) -> str:
    waited = f" (+{ran.waited:.1f} s wait)" if ran.waited else ""
    cells = (what, _code(" ".join(ran.argv)), result_of(ran), tests_of(ran), f"{ran.seconds:.1f} s{waited}")
    return f"| {' | '.join(cell(one) for one in cells)} |"


def result_of(ran: Ran) -> str:
    """How it ended, in words: an exit code where it ended by itself."""
    match ran.stop_reason:
        case "" | "exit_code" | "signal" | "resolved":
            if ran.signal:
                return f"signal {ran.signal}"
            return "unknown" if ran.exit_code is None else f"exit {ran.exit_code}"
        case "said_failed":
            return f"exit {ran.exit_code}, said it failed" if ran.exit_code is not None else "said it failed"
        case "time_limit":
            return "stopped at its time limit"
        case "not_started":
            return "did not start"
        case reason if ran.state == "cancelled":
            by = f" by {_text(ran.by)}" if ran.by else ""
            return f"cancelled{by}" + ("" if reason == "cancelled" else f": {_text(reason.replace('_', ' '))}")
        case reason:
            return f"stopped: {_text(reason.replace('_', ' '))}"


def tests_of(ran: Ran) -> str:
    """What a known runner said of itself; empty where none did."""
    counts = ran.counts
    if counts is None:
        return ""
    said = [f"{counts.passed} passed"]
    said += [f"{number} {name}" for name, number in (("failed", counts.failed), ("errors", counts.errors)) if number]
    said += [f"{counts.skipped} skipped"] if counts.skipped else []
    unit = f" {counts.unit}" if counts.unit != "tests" else ""
    return f"{', '.join(said)}{unit} ({counts.runner})"


def _log_line(ran: Ran) -> str:
    return f"{_code(ran.log)}: {ran.log_bytes} bytes, SHA-256 `{ran.log_sha256}`"


def _listed(title: str, items: Sequence[str], most: int) -> str:
    if not items:
        return ""
    lines = [f"- {item}" for item in items[:most]]
    lines += [f"- and {len(items) - most} more"] if len(items) > most else []
    return f"**{title}**\n\n" + "\n".join(lines)


def _files(changes: Sequence[Change], most: int) -> str:
    if not changes:
        return ""
    lines = [f"- {_code(change.path)} {_figures(change)}" for change in changes[:most]]
    lines += [f"- and {len(changes) - most} more"] if len(changes) > most else []
    return "**Files**\n\n" + "\n".join(lines)


def _figures(change: Change) -> str:
    return "binary" if change.added is None else f"+{change.added} -{change.deleted or 0}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

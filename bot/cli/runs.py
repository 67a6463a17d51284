"""`leadsman runs`: the runs there are, the newest first."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bot.cli.options import Options, printable, read
from bot.errors import UsageError

USAGE = """Usage: leadsman runs [--store DIR] [--json|--jsonl] [--all] [--limit N]

Lists the runs, the newest first: what was handed off, and what the server was asked for, with its place in the queue
and why it waits. Runs of the server that have not ended are always among them.

  --limit N   the newest N (default 20); --all: every one
  --json      for programs, an array
  --jsonl     one line a run, what `leadsman load report --runs` judges: every run, the oldest first

  leadsman runs --limit 5
  leadsman runs --all --json
"""

USUAL = 20

HEADINGS = ("RUN", "STATE", "ROUND", "TASK", "FOR", "SINCE", "WHY")


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, flags=("--json", "--jsonl", "--all"), values=("--limit", "--config"), words=(0, 0))
    if options is None:
        return 0
    if "--jsonl" in options.flags:
        return _judged(options)
    from bot.roll import call

    roll = call(options.store, _most(options))
    if "--json" in options.flags:
        print(json.dumps([line._asdict() for line in roll.lines], indent=1))
    elif roll.lines:
        from bot.cli import table

        rows = [
            (line.run_id, line.state, str(line.round), line.task, line.subject, line.started or line.created, why(line))
            for line in roll.lines
        ]
        table.show(HEADINGS, [tuple(map(printable, row)) for row in rows])
    else:
        print(f"There is no run in {printable(options.store)}.", file=sys.stderr)
    if roll.more and "--json" not in options.flags:
        print(f"{roll.more} older ones are not shown; --all shows every one.", file=sys.stderr)
    if roll.trouble:
        print(printable(roll.trouble), file=sys.stderr)
    return 0


def why(line: object) -> str:
    """The reason, behind the place in the queue where it waits."""
    position, reason = getattr(line, "position", 0), getattr(line, "reason", "")
    return f"place {position}{': ' if reason else ''}{reason}" if position else str(reason)


def _most(options: Options) -> int | None:
    if "--all" in options.flags:
        return None
    text = options.values.get("--limit", str(USUAL))
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
        raise UsageError(
            f"--limit takes a whole number from 1 on, not {text!r}. For example: `leadsman runs --limit 5`."
        )
    return int(text)


def _judged(options: Options) -> int:
    from bot.convergence import UnreadableRuns
    from bot.runlist import own_store, runs_of_home

    house = Path(options.store).parent
    trouble = ""
    try:
        runs = runs_of_home(own_store(house, options.values.get("--config")), options.store)
    except UnreadableRuns as problem:
        trouble, runs = str(problem), list(problem.readable)
    most = _most(options) if "--limit" in options.values else None
    for run in sorted(runs, key=lambda run: (run.created_at, run.run))[-(most or len(runs)) :]:
        print(run.jsonl())
    if trouble:
        print(trouble, file=sys.stderr)
    return 1 if trouble else 0

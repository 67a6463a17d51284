"""`leadsman status`: the state of a run, or of the whole fleet."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bot.cli.options import printable, read, say
from bot.liveness import reading
from bot.rundir import find

USAGE = """Usage: leadsman status [ID] [--store DIR] [--json|--brief]

Says what a run does now. ID may be shortened while it is unique. Without it: what the server does, which slots are
held, what waits and why.

  --json    the object of status.json
  --brief   one line, of a run

  leadsman status 20260105-0900
  leadsman status
"""

SHOWN = (
    "state", "stop_reason", "error", "round", "rounds", "started", "finished", "exit_code", "signal", "pid",
    "supervisor_pid", "supervisor", "driver", "session", "host",
)  # fmt: skip


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, flags=("--json", "--brief"), words=(0, 1))
    if options is None:
        return 0
    if not options.words:
        from bot.cli import fleet

        return fleet.show(options.store, as_json="--json" in options.flags)
    run = find(options.store, options.words[0])
    status = reading(run.path)
    if "--json" in options.flags:
        print(json.dumps(status))
    elif "--brief" in options.flags:
        say(brief(status))
    else:
        say(in_full(status, {"directory": str(run.path), "log": str(run.worker_log)}))
    return 0


def brief(status: Mapping[str, object]) -> str:
    """`<id> <state> round <n>`, and why where there is a why."""
    rounds = f"/{status['rounds']}" if status.get("rounds") else ""
    why = status.get("error") or status.get("stop_reason") or ""
    line = f"{status.get('run_id')} {status.get('state')} round {status.get('round', 1)}{rounds}"
    return printable(f"{line} {why}".rstrip())


def in_full(status: Mapping[str, object], places: Mapping[str, str]) -> str:
    """A line a field that has something to say."""
    known = {name: status[name] for name in SHOWN if status.get(name) is not None}
    lines = [f"Run {status.get('run_id')} ({status.get('task') or 'no task'})"]
    if isinstance(word := status.get("word"), dict) and word.get("verb"):
        known["said"] = f"{word['verb']}: {word.get('text', '')}"
    if isinstance(asked := status.get("asked_to_stop"), dict):
        known["asked to stop"] = f"after its turn, by {asked.get('by')} at {asked.get('at')}"
    return "\n".join(lines + [f"  {name:<15}{printable(value)}" for name, value in {**known, **places}.items()])

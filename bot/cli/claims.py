"""`leadsman claims`: what runs of this bot hold, what became of claims, and how one is given back."""

from __future__ import annotations

import json

from bot.claimlog import Happened, held, history
from bot.cli import table
from bot.cli.options import Options, printable, read
from bot.errors import UsageError

USAGE = """Usage: leadsman claims [log WHICH | release WHICH [--force]] [--json]

Lists the claims that runs of this bot hold now. WHICH is what is claimed, as it is listed (work:7,
github:acme/shop#7:fix), or a run, by its id or the start of it.

  log WHICH       what happened to its claims: claim, claim_lost, concede, release, sweep; the oldest first
  release WHICH   gives the claim back; the run that holds it is ended
    --force       also one that no run of this bot holds, of a bot that is gone
  --json          for programs

  leadsman claims
  leadsman claims log work:7
  leadsman claims log 20260105-0900 --json
  leadsman claims release work:7 --force
"""

HEADINGS = ("CLAIMED", "RUN", "TASK", "ASKED BY", "SINCE", "PHASE")

HISTORY = ("AT", "EVENT", "CLAIMED", "RUN", "ABOUT")


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, flags=("--json", "--force"), values=("--config",), words=(0, 2))
    if options is None:
        return 0
    match options.words:
        case ():
            _list(options)
        case ("log", which):
            _log(options, which)
        case ("release", which):
            from bot.cli.giving_back import give_back

            give_back(options, which, force="--force" in options.flags)
        case (("log" | "release") as verb,):
            raise UsageError(f"Name what is meant: `leadsman claims {verb} work:7`, or a run.")
        case _:
            raise UsageError(
                f"`leadsman claims` knows `log` and `release`, not {printable(options.words[0])}. "
                "For example: `leadsman claims log work:7`."
            )
    return 0


def _list(options: Options) -> None:
    found = held(options.store)
    if "--json" in options.flags:
        print(json.dumps([one._asdict() for one in found]))
    elif not found:
        print("Nothing is claimed.")
    else:
        table.show(HEADINGS, [tuple(map(printable, one[:6])) for one in found])


def _log(options: Options, which: str) -> None:
    found = history(options.store.parent, which)
    if "--json" in options.flags:
        names = ("at", "event", "key", "run_id", "facts")
        print(json.dumps([{name: getattr(one, name) for name in names} for one in found]))
        return
    rows = [(one.at, one.event, one.key, one.run_id, about(one)) for one in found]
    table.show(HISTORY, [tuple(map(printable, row)) for row in rows])


def about(happened: Happened) -> str:
    """What there is to say of it, in a few words."""
    facts = happened.facts
    match happened.event:
        case "claim":
            return f"with {str(facts.get('oid'))[:12]}"
        case "claim_lost":
            return f"{facts.get('holder')} has it, with run {facts.get('holder_run')}"
        case "concede":
            return f"to {facts.get('to')}, run {facts.get('to_run')}"
        case "release" if not facts.get("was_ours", True):
            return f"{facts.get('why')}; it was taken away before"
        case _:
            return str(facts.get("why", ""))

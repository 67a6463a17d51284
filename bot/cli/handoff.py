"""`leadsman handoff`: starts a command that outlives whatever started it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from bot.cli.options import Options, printable, read, say
from bot.errors import UsageError
from bot.rundir import RunDir

USAGE = """Usage: leadsman handoff [--store DIR] [--driver tmux|setsid] [--wait S] [--json] -- CMD ARGS...

Starts CMD in a run of its own, writes down where it is, and returns; CMD goes on, whatever becomes of the caller.

  --store DIR     where runs are kept (default: runs in the home)
  --driver NAME   tmux (the default where it is installed) or setsid
  --wait S        wait up to S seconds for the run's end, too
  --timeout S     end the run after S seconds
  --adopt STORE   CMD starts a run of its own: name the one that appears in STORE within --wait
  --json          print the record

Exit codes: 0 it is alive or ended well meanwhile, 2 the call is off, 3 it did not start or has failed.

  leadsman handoff -- make -j4 all
  leadsman handoff --wait 10 --json -- ./migrate.sh --all
"""

EXIT_FAILED = 3


def main(argv: list[str]) -> int:
    valued = ("--driver", "--wait", "--timeout", "--adopt")
    options = read(argv, USAGE, flags=("--json",), values=valued, words=(0, 0))
    if options is None:
        return 0
    if not options.behind:
        raise UsageError("There is no command to start. Put it behind `--`: `leadsman handoff -- make all`.")
    if options.seconds("--timeout") == 0:
        raise UsageError("--timeout 0 would end the run before it starts. Leave it out for a run without a limit.")
    driver = chosen_driver(options.values.get("--driver"))
    try:
        here = os.getcwd()  # noqa: PTH109  # what a shell says is the folder, as it says it
    except FileNotFoundError:
        return _not_started("the folder you are in does not exist any more. Go to another one.", options)
    try:
        run, record = _handed_off(options, options.behind, here, driver)
    except OSError as problem:
        return not_recorded(options.store, problem, options)
    return told(run, record, as_json="--json" in options.flags)


def _handed_off(options: Options, argv: Sequence[str], here: str, driver: str) -> tuple[RunDir, Mapping[str, object]]:
    from bot import handoff

    if "--store" not in options.values:  # in the home, which is for its user alone: the first run of all makes it
        options.store.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    spec = handoff.specification(
        options.store,
        argv,
        cwd=here,
        environ=os.environ,
        driver=driver,
        time_limit=options.seconds("--timeout"),
        adopts="--adopt" in options.values,
    )
    wait = options.seconds("--wait") or 0.0
    adopt = Path(options.values["--adopt"]).absolute() if "--adopt" in options.values else None
    return handoff.hand_off(options.store, spec, wait=wait, adopt=adopt)


def chosen_driver(given: str | None) -> str:
    """The driver asked for, else tmux where it is, though not inside a run; raises `UsageError` for one not there."""
    from bot.launchers import LAUNCHERS, tmux

    if given is not None and given not in LAUNCHERS:
        raise UsageError(f"There is no driver {given}. It is one of: {', '.join(LAUNCHERS)}.")
    if given == "tmux" and not tmux.present():
        raise UsageError("There is no tmux on PATH. Install it, or take `--driver setsid`.")
    inside = "LEADSMAN_RUN_ID" in os.environ  # a tmux server that is first needed inside a run would end with it
    return given or ("tmux" if tmux.present() and not inside else "setsid")


def told(run: RunDir, record: Mapping[str, object], *, as_json: bool) -> int:
    """Prints the record of a start; the exit code that agrees with it, also where nobody can read what is printed."""
    where = f"{record.get('run_id')} round {record.get('round')} {printable(run.path)}"
    lines = f"{record['status']} {where}\nreport {printable(run.waiting)}"
    _tell(sys.stdout, json.dumps(record) if as_json else lines)
    if record["status"] == "waiting":
        return 0
    _tell(sys.stderr, printable(record.get("error") or "The run did not start."))
    return EXIT_FAILED


def _tell(stream: TextIO, text: str) -> None:
    try:
        say(text, stream)
        stream.flush()
    except OSError:  # a full disk, a reader that has gone: the record says it all, and the run is what it is
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # or Python would complain at its end


def not_recorded(place: Path, problem: OSError, options: Options) -> int:
    """Says that nothing was started, since it could not be written down; the exit code."""
    why = f"it can't be recorded in {place}: {problem.strerror or problem}. Make room there, or choose another --store."
    return _not_started(why, options)


def _not_started(why: str, options: Options) -> int:
    text = f"The run was not started, since {why}"
    if "--json" in options.flags:
        _tell(sys.stdout, json.dumps({"run_id": None, "status": "failed", "found": False, "error": text}))
    _tell(sys.stderr, printable(text))
    return EXIT_FAILED

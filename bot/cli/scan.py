"""`leadsman scan`: takes claimable tickets, beside a running server or without one."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import click

from bot import home
from bot.cli.clicked import Setting, examples
from bot.cli.ending import is_unfinished
from bot.config import Config
from bot.dispatch import Hint
from bot.errors import UserError
from bot.rebuilding import open_or_rebuild
from bot.store import runs
from bot.store.engine import Store
from bot.wake import Doorbell, ring
from bot.wiring.bot import Bot
from bot.wiring.outside import World

LOOK_SECONDS = 0.2


@click.command(
    "scan",
    epilog=examples(
        "leadsman scan --once",
        "leadsman scan",
        note="The first is for a cron job, the second for a host that has no door. "
        "Exit code 0: every run that it started ended well; 1: one did not, or something could not be looked at.",
    ),
)
@click.option("--once", is_flag=True, help="Works what is claimable now, to its end, also what failed before; no more.")
@click.option(
    "--cycle-seconds",
    type=click.IntRange(min=1),
    metavar="S",
    help="Start no run that may not end within S seconds from now: cap x [budget] run_cap_seconds + 30 s must be left.",
)
@click.pass_obj
def command(setting: Setting, once: bool, cycle_seconds: int | None) -> int:
    """Takes the tickets that rules with on = "schedule" are for: the most urgent first, then the oldest."""
    if cycle_seconds is not None and not once:
        raise UserError("--cycle-seconds is for --once: a scan that goes on has no end.", code=2)
    config = setting.config()
    tables = (*config.trackers.values(), *config.forges.values())
    if not any(getattr(settings, "claim_enabled", False) for settings in tables):
        raise UserError(
            "No [trackers.*] and no [forges.*] has claim_enabled = true, so there is nothing that the bot may claim.",
            code=2,
        )
    folder = home.make(setting.home)
    for name in ("runs", "worktrees", "checkouts", "mirrors"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    try:
        with home.serving(folder):
            return _once(config, folder, cycle_seconds) if once else _on_and_on(config, folder)
    except home.HomeHeld:
        ring(folder, "scan", _asking() if once else "")
        print("A server holds this home; it scans now.")
        return 0


def _asking() -> str:
    """A name for this asking, so that it takes a ticket once."""
    return f"asked-{time.time_ns():x}"


def _once(config: Config, folder: Path, cycle_seconds: int | None) -> int:
    store = open_or_rebuild(config.store, folder)[0]
    try:
        before = _known(store)
        ends = None if cycle_seconds is None else time.time() + cycle_seconds
        bot = Bot(config, World(home=folder, environ=os.environ, patient=False, cycle_ends=ends), store)
        bot.scan.asking = _asking()  # so that each ticket is taken once, whoever looks
        bot.join()
        bot.start()
        try:
            while _look(bot) or is_unfinished(store):
                time.sleep(LOOK_SECONDS)  # whoever ends it here is a thread of ours; a person waits for the last line
        finally:
            bot.stop()
        return _tell(store, before, bot.scan.missed)
    finally:
        store.close()


def _look(bot: Bot) -> bool:
    hints = bot.scan.look()
    for hint in hints:
        bot.dispatcher.put(hint)
    return bool(hints)


def _on_and_on(config: Config, folder: Path) -> int:
    store = open_or_rebuild(config.store, folder)[0]
    bot = Bot(config, World(home=folder, environ=os.environ), store)
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before the first thread, which inherits it
    bell = Doorbell(folder, lambda kind, key: bot.dispatcher.put(Hint(kind, key)))
    bot.join()
    bot.start()
    bell.start()
    print(f"leadsman scans, home {folder}", flush=True)
    signal.sigwait(ends)
    bell.stop()
    bot.stop()
    store.close()
    return 0


def _known(store: Store) -> set[str]:
    with store.read() as connection:
        return {row.run_id for row in runs.recent(connection, limit=10_000)}


def _tell(store: Store, before: set[str], missed: list[str]) -> int:
    with store.read() as connection:
        fresh = [row for row in runs.recent(connection, limit=10_000) if row.run_id not in before]
    for row in reversed(fresh):
        print(f"{row.subject} {row.run_id} {row.task}: {row.reason}")
    for problem in missed:
        print(f"Not looked at: {problem}", file=sys.stderr)
    if not fresh and not missed:
        print("Nothing was claimable.")
    well = all(row.reason in {"published", "unchanged", runs.HELD} for row in fresh)
    return 0 if well and not missed else 1

"""`leadsman scan`: takes claimable tickets, beside a running server or without one."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import click

from bot import answers, home
from bot.cli.clicked import Setting
from bot.config import Config
from bot.errors import UserError
from bot.store import runs
from bot.store.engine import Store, open_store
from bot.wake import ring
from bot.wiring import Bot, World

LOOK_SECONDS = 0.2


@click.command(
    "scan",
    epilog="Examples: leadsman scan --once, in a cron job; leadsman scan, on a host that has no door. "
    "Exit code 0: every run that it started ended well; 1: one did not.",
)
@click.option("--once", is_flag=True, help="Works what is claimable now, to its end, also what failed before; no more.")
@click.pass_obj
def command(setting: Setting, once: bool) -> int:
    """Takes the tickets that rules with on = "schedule" are for: the most urgent first, then the oldest."""
    config = setting.config()
    if not any(getattr(tracker, "claim_enabled", False) for tracker in config.trackers.values()):
        raise UserError("No [trackers.*] has claim_enabled = true, so there is nothing that the bot may claim.", code=2)
    folder = home.make(setting.home)
    for name in ("runs", "worktrees", "checkouts", "mirrors"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    try:
        with home.serving(folder):
            return _once(config, folder) if once else _on_and_on(config, folder)
    except home.HomeHeld:
        ring(folder, "scan", _asking() if once else "")
        print("A server holds this home; it scans now.")
        return 0


def _asking() -> str:
    """A name for this asking, so that it takes a ticket once."""
    return f"asked-{time.time_ns():x}"


def _once(config: Config, folder: Path) -> int:
    store = open_store(config.store, folder)
    try:
        before = _known(store)
        bot = Bot(config, World(home=folder, environ=os.environ, patient=False), store)
        bot.scan.asking = _asking()  # so that each ticket is taken once, whoever looks
        bot.start()
        try:
            while _look(bot) or _open(store):
                time.sleep(LOOK_SECONDS)  # whoever ends it here is a thread of ours; a person waits for the last line
        finally:
            bot.stop()
        return _tell(store, before)
    finally:
        store.close()


def _look(bot: Bot) -> bool:
    hints = bot.scan.look()
    for hint in hints:
        bot.dispatcher.put(hint)
    return bool(hints)


def _on_and_on(config: Config, folder: Path) -> int:
    store = open_store(config.store, folder)
    bot = Bot(config, World(home=folder, environ=os.environ), store)
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before the first thread, which inherits it
    bot.start()
    print(f"leadsman scans, home {folder}", flush=True)
    signal.sigwait(ends)
    bot.stop()
    store.close()
    return 0


def _open(store: Store) -> bool:
    with store.read() as connection:
        return bool(runs.open_runs(connection)) or bool(answers.due(connection))


def _known(store: Store) -> set[str]:
    with store.read() as connection:
        return {row.run_id for row in runs.recent(connection, limit=10_000)}


def _tell(store: Store, before: set[str]) -> int:
    with store.read() as connection:
        fresh = [row for row in runs.recent(connection, limit=10_000) if row.run_id not in before]
    for row in reversed(fresh):
        print(f"{row.subject} {row.run_id} {row.task}: {row.reason}")
    if not fresh:
        print("Nothing was claimable.")
    return 0 if all(row.reason in {"published", "unchanged", runs.HELD} for row in fresh) else 1

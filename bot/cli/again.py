"""Asks for an ended run of the server once more. What is asked stands in the inbox before anything is done about it,
so it is done once, whatever is killed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bot import home
from bot.ages import Ages
from bot.cli.cancel import user
from bot.cli.options import Options, printable, say
from bot.codec import Unreadable
from bot.config import load
from bot.errors import Unavailable, UserError
from bot.model import Actor, Event, Intent, Retried
from bot.rebuilding import open_or_rebuild
from bot.rundir import RunDir
from bot.store import runs
from bot.wake import ring
from bot.wiring.bot import Bot
from bot.wiring.outside import World
from webhooks import polled
from webhooks.inbox import Delivery, Entry, Verdict

DECIDED_WITHIN = 30.0
"""Seconds that a server has to say what came of it. It asks the forge where the head is."""

LOOK = 0.1
"""Seconds between two looks at the store, which tells nobody of its changes."""

EXIT_FAILED = 3


def ask_again(run: RunDir, options: Options) -> int:
    """Asks, and tells what came of it. Raises `UserError` where nothing may be started."""
    told = _delivery(run)
    with _bot(options) as bot:
        _remember(bot, told)
        heard = ring(bot.world.home, "lane", told.lane)
        if not heard:
            bot.lanes.work(told.lane)
        entry = _decided(bot, told)
        fresh = _run_of(bot, told)
        if fresh is None:
            return _undecided(entry, heard=heard)
        _tell(bot, fresh, options, heard=heard)
        seconds = options.seconds("--wait") or 0.0
        return _wait(bot, fresh, seconds) if heard and seconds else 0


def _delivery(run: RunDir) -> Delivery:
    """A lane of its own: it waits for nothing that was delivered."""
    try:
        intent: Intent = Ages(run.path).intent
    except (Unreadable, OSError) as problem:
        raise UserError(f"What run {run.path.name} was asked for can't be read: {problem}") from problem
    name = f"{polled.RETRY}{run.path.name}-{os.urandom(6).hex()}"
    event = Event(
        source=intent.event.source,
        delivery=name,
        subject=intent.event.subject,
        actor=Actor(f"{user()} on the command line", f"user {os.getuid()}"),
        what=Retried(run.path.name),
        head_sha=None,
        at=datetime.now(UTC),
    )
    told = polled.told(event)
    return replace(told, lane=f"{told.lane} {name}")


@contextmanager
def _bot(options: Options) -> Iterator[Bot]:
    """The parts of the bot, which do nothing by themselves."""
    folder = home.make(options.store.parent)
    given = options.values.get("--config")
    config = load(Path(given) if given else None, os.environ, home=folder)
    store, _ = open_or_rebuild(config.store, folder)
    try:
        yield Bot(config, World(home=folder, environ=os.environ), store)
    except Unavailable as problem:
        raise UserError(f"{problem}. `leadsman doctor` says more.") from problem
    finally:
        store.close()


def _remember(bot: Bot, told: Delivery) -> None:
    verdict = bot.inbox.remember(told)
    if verdict is not Verdict.ACCEPTED:
        raise UserError(f"It could not be asked for: {verdict.value}. Look at `leadsman deliveries`.")


def _decided(bot: Bot, told: Delivery) -> Entry:
    """What came of it, or how it stands when the time is up; raises `UserError` where it was refused."""
    until = time.monotonic() + DECIDED_WITHIN
    while True:
        (entry,) = bot.inbox.find(told.delivery)
        if entry.state in ("failed", "ignored") or (entry.state == "done" and entry.note):
            raise UserError(" ".join(entry.note.split()))
        if entry.state == "done" or entry.tries or time.monotonic() > until:
            return entry
        time.sleep(LOOK)  # the server's threads tell nobody in another process; a person waits


def _run_of(bot: Bot, told: Delivery) -> Intent | None:
    with bot.store.read() as connection:
        for row in runs.recent(connection):
            intent = runs.intent(connection, row.run_id)
            if intent is not None and intent.event.delivery == told.delivery:
                return intent
    return None


def _undecided(entry: Entry, *, heard: bool) -> int:
    if entry.state == "done":
        raise UserError("Another run of the task came first. `leadsman runs` lists it.")
    why = f" ({printable(entry.note)})" if entry.note else ""
    who = "The server" if heard else "The next `leadsman serve`"
    say(f"It was asked for, and is not decided yet{why}. {who} tries again; `leadsman runs` shows what comes of it.")
    return 0


def _tell(bot: Bot, fresh: Intent, options: Options, *, heard: bool) -> None:
    place = bot.world.runs / fresh.run_id
    if "--json" in options.flags:
        shown = {"run_id": fresh.run_id, "task": fresh.task.name, "round": 1, "run_dir": str(place)}
        print(json.dumps({**shown, "status": "waiting", "found": True}))
        return
    where = "The server starts it." if heard else "No server is there; the next `leadsman serve` starts it."
    say(f"waiting {fresh.run_id} round 1 {printable(place)}\n{where}")


def _wait(bot: Bot, fresh: Intent, seconds: float) -> int:
    """As `leadsman handoff --wait`: 0 while it goes on, and where it ended well."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with bot.store.read() as connection:
            row = runs.get(connection, fresh.run_id)
        if row is not None and row.closed_at is not None:
            say(f"{fresh.run_id} {row.reason}")
            return 0 if row.reason in ("published", "unchanged") else EXIT_FAILED
        time.sleep(LOOK)  # as above
    return 0

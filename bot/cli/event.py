"""`leadsman event FILE`: one event from a file, worked without a server, to its end."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path

import click

from bot import answers, home
from bot.cli.clicked import Setting
from bot.cli.ending import is_unfinished
from bot.config import Config
from bot.errors import UserError
from bot.model import Ignored, LookAgain
from bot.rebuilding import open_or_rebuild
from bot.store import runs
from bot.store.engine import Store
from bot.wake import ring
from bot.wiring.bot import Bot
from bot.wiring.lanes import delivery_of
from bot.wiring.outside import World, kind_of
from webhooks import polled
from webhooks.inbox import Delivery, Entry, Inbox, Verdict
from webhooks.payload import Malformed
from webhooks.receiver import SIZE
from webhooks.sources import redmine

LOOK_SECONDS = 0.2


@click.command(
    "event",
    epilog='Example, in a workflow: leadsman event "$GITHUB_EVENT_PATH" --source github --event issue_comment. '
    "Of a Redmine's webhook: leadsman event ticket.json --source work. "
    "Exit code 0: worked, and every run it started ended well; 1: a run did not, or a command was refused.",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--source", required=True, metavar="NAME", help="The [forges.NAME] or [trackers.NAME] it comes from.")
@click.option(
    "--event", "name", metavar="EVENT", help="As the forge names it: issue_comment, push, ... A tracker's file says it."
)
@click.option("--delivery", metavar="ID", help="Its id; default: the SHA-256 of the file, so that twice is once.")
@click.option(
    "--cycle-seconds",
    type=click.IntRange(min=1),
    metavar="S",
    help="Start no run that may not end within S seconds from now: cap x [budget] run_cap_seconds + 30 s must be left.",
)
@click.pass_obj
def command(
    setting: Setting, *, file: Path, source: str, name: str | None, delivery: str | None, cycle_seconds: int | None
) -> int:
    """Works one event from a file, as if the forge had delivered it; the file is trusted, nothing is signed."""
    config = setting.config()
    if source not in {*config.forges, *config.trackers}:
        known = ", ".join([*config.forges, *config.trackers]) or "none"
        raise UserError(
            f"There is no [forges.{source}] and no [trackers.{source}] in the configuration. Known: {known}.", code=2
        )
    if source in config.forges and name is None:
        raise UserError("Say which event it is, as the forge names it: --event issue_comment, for example.", code=2)
    try:
        with file.open("rb") as opened:
            body = opened.read(SIZE + 1)
    except OSError as problem:
        raise UserError(f"{file} can't be read: {problem.strerror}.", code=2) from problem
    if len(body) > SIZE:
        raise UserError(f"{file} is larger than {SIZE} bytes, which no forge delivers.", code=2)
    told = _told(config, source, name, delivery, body)
    if told is None:
        raise UserError(f"{file} holds no JSON object. Give the payload as the forge sends it.", code=2)
    if isinstance(told, Malformed):
        raise UserError(f"{file} is no webhook of a tracker: {told.reason}. Give the payload as it was sent.", code=2)
    if isinstance(told, Ignored):
        print(f"ignored: {told.reason}")
        return 0
    ends = None if cycle_seconds is None else time.time() + cycle_seconds
    return _worked(config, home.make(setting.home), told, ends)


def _worked(config: Config, folder: Path, told: Delivery, ends: float | None) -> int:
    """By this process, or by the server that holds the home. Who holds it and hears no bell is another such command: it
    may end any moment, and what it did not look at would be left lying, so its end is waited for."""
    waits = False
    while True:
        try:
            with home.serving(folder):
                return _work(config, folder, told, ends)
        except home.HomeHeld:
            if ring(folder, "lane", told.lane):
                return _hand_over(config, folder, told)
            if not waits:
                print(f"{folder} is {home.described(home.held_by(folder))}. Waiting for its end.", file=sys.stderr)
            waits = True
        time.sleep(LOOK_SECONDS)


def _told(
    config: Config, source: str, name: str | None, delivery: str | None, body: bytes
) -> Delivery | Ignored | Malformed | None:
    """The delivery that the file is. Of a tracker's, which says no more than that a ticket changed, the one entry of
    the journal that it names is read from there."""
    if source in config.forges:
        known_as = delivery or hashlib.sha256(body).hexdigest()
        return delivery_of(source, kind_of(config.forges[source]), known_as, name or "", body)
    found = redmine.look_at(body)
    if isinstance(found, LookAgain):
        return polled.look_at(source, found.number, found.entry or "", delivery or "")
    return found


def _work(config: Config, folder: Path, told: Delivery, ends: float | None) -> int:
    store = open_or_rebuild(config.store, folder)[0]
    bot = Bot(config, World(home=folder, environ=os.environ, patient=False, cycle_ends=ends), store)
    _remember(bot.inbox, told)
    if told.ignored:
        print(f"ignored: {told.ignored}")
        return 0
    before, begun = _known(store), time.time()
    bot.join()
    bot.start()
    try:
        while bot.inbox.lanes() or is_unfinished(store):
            time.sleep(LOOK_SECONDS)  # whoever ends it here is a thread of ours; a person waits for the last line
    finally:
        bot.stop()
    worked = [entry for entry in bot.inbox.find(told.delivery) if entry.source == told.source]
    for entry in worked:
        if entry.note and entry.state != "failed":
            print(f"ignored: {entry.note}")
    return max(_tell(store, before), _refused(store, begun), _failed(worked))


def _remember(inbox: Inbox, told: Delivery) -> None:
    verdict = inbox.remember(told)
    if verdict is Verdict.DUPLICATE:
        print(f"{told.delivery} was worked before; `--delivery` gives it another id.", file=sys.stderr)
    elif verdict is not Verdict.ACCEPTED:
        raise UserError(f"The event was not taken: {verdict.value}. Look at `leadsman deliveries`.")


def _known(store: Store) -> set[str]:
    with store.read() as connection:
        return {row.run_id for row in runs.recent(connection, limit=1000)}


def _tell(store: Store, before: set[str]) -> int:
    with store.read() as connection:
        fresh = [row for row in runs.recent(connection, limit=1000) if row.run_id not in before]
    for row in fresh:
        print(f"{row.run_id} {row.task} {row.subject}: {row.reason}")
    if not fresh:
        print("No run was started.")
    return 0 if all(row.reason in {"published", "unchanged"} for row in fresh) else 1


def _refused(store: Store, since: float) -> int:
    with store.read() as connection:
        threads = answers.refusals(connection, since)
    for on in threads:
        print(f"Not all of it was done; the answer on {on} says why.", file=sys.stderr)
    return 1 if threads else 0


def _failed(worked: list[Entry]) -> int:
    """A forge that refuses, or an error of ours: nobody could be told."""
    why = [f"{entry.note}." for entry in worked if entry.state == "failed"]
    for text in why:
        print(f"The event could not be worked: {text}", file=sys.stderr)
    return 1 if why else 0


def _hand_over(config: Config, folder: Path, told: Delivery) -> int:
    store = open_or_rebuild(config.store, folder)[0]
    try:
        _remember(Inbox(store, time.time, limit=config.server.queue_limit), told)
    finally:
        store.close()
    ring(folder, "lane", told.lane)
    print("A server holds this home; it works the event.")
    return 0

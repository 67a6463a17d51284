"""`leadsman event FILE`: one event from a file, worked without a server, to its end."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from bot import answers, home
from bot.cli.clicked import Setting, examples, json_option
from bot.cli.ending import is_unfinished
from bot.config import Config
from bot.errors import UserError
from bot.model import Commented, Event, Ignored, Intent, IssueRef, LookAgain, PullRef
from bot.rebuilding import open_or_rebuild
from bot.store import runs
from bot.store.engine import Store
from bot.wake import ring
from bot.wiring.bot import Bot
from bot.wiring.lanes import delivery_of
from bot.wiring.outside import World, kind_of
from webhooks import polled
from webhooks.inbox import Delivery, Inbox, Verdict
from webhooks.payload import Malformed
from webhooks.receiver import NAME, SIZE
from webhooks.sources import SOURCES, redmine

LOOK_SECONDS = 0.2
WELL = {"published", "unchanged"}


@dataclass(frozen=True, slots=True)
class Told:
    """What the file tells: as a delivery, and as an event where no tracker has to be asked what happened."""

    delivery: Delivery
    event: Event | None = None


@dataclass(frozen=True, slots=True)
class Came:
    """What came of it. `again`: it was told before, and this is what came of it then."""

    again: bool = False
    ignored: str = ""
    runs: Sequence[runs.Row] = ()
    refused: Sequence[str] = ()
    """Where an answer says what was not done, or did not end well."""
    failed: str = ""
    """A forge that refuses, or an error of ours: nobody could be told."""
    handed_over: bool = False

    @property
    def code(self) -> int:
        well = not self.refused and not self.failed and all(row.reason in WELL for row in self.runs)
        return 0 if well else 1


@click.command(
    "event",
    epilog=examples(
        'leadsman event "$GITHUB_EVENT_PATH" --source github --event issue_comment',
        "leadsman event ticket.json --source work",
        note="The first is for a workflow, the second of a Redmine's webhook. "
        "Exit code 0: worked, and every run it started ended well; 1: a run did not, or a command was refused. "
        "The same file again is the same event: it starts nothing anew, and ends as it did.",
    ),
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
@json_option
@click.pass_obj
def command(
    setting: Setting,
    *,
    file: Path,
    source: str,
    name: str | None,
    delivery: str | None,
    cycle_seconds: int | None,
    as_json: bool,
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
    for option, word in (("--event", name), ("--delivery", delivery)):
        if word is not None and NAME.fullmatch(word) is None:
            raise UserError(f"{option} takes one word of up to 200 letters, as the forge sends it.", code=2)
    ends = None if cycle_seconds is None else time.time() + cycle_seconds
    told = _told(config, source, name or "", delivery, _content(file))
    if isinstance(told, Malformed):
        raise UserError(
            f"{file} is no {name or 'webhook'} of {source}: {told.reason}. Give the payload as it was sent.", code=2
        )
    if isinstance(told, Ignored):
        return _tell(Came(ignored=told.reason), "", as_json=as_json)
    came = _worked(config, home.make(setting.home), told, ends)
    return _tell(came, told.delivery.delivery, as_json=as_json)


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            body = opened.read(SIZE + 1)
    except OSError as problem:
        raise UserError(f"{file} can't be read: {problem.strerror}.", code=2) from problem
    if len(body) > SIZE:
        raise UserError(f"{file} is larger than {SIZE} bytes, which no forge delivers.", code=2)
    return body


def _told(config: Config, source: str, name: str, delivery: str | None, body: bytes) -> Told | Ignored | Malformed:
    """Of a tracker's file, which says no more than that a ticket changed, the one entry of the journal that it names is
    read from there."""
    if source in config.forges:
        kind = kind_of(config.forges[source])
        kept = delivery_of(source, kind, delivery or hashlib.sha256(body).hexdigest(), name, body)
        if kept is None:
            return Malformed("it holds no JSON object")
        event = SOURCES[kind].read(kept.headers, body, source=source, at=datetime.now(UTC))
        return event if isinstance(event, Malformed) else Told(kept, event if isinstance(event, Event) else None)
    found = redmine.look_at(body)
    if isinstance(found, LookAgain):
        return Told(polled.look_at(source, found.number, found.entry or "", delivery or ""))
    return found


def _worked(config: Config, folder: Path, told: Told, ends: float | None) -> Came:
    """By this process, or by the server that holds the home. Who holds it without a door or a bell is another
    such command: it may end any moment, and what it did not look at would be left lying, so its end is waited for."""
    waits = False
    while True:
        try:
            with home.serving(folder):
                return _work(config, folder, told, ends)
        except home.HomeHeld:
            holder = home.held_by(folder)
            if ring(folder, "lane", told.delivery.lane) or (holder is not None and holder.address):
                return _hand_over(config, folder, told.delivery)
            if not waits:
                print(f"{folder} is {home.described(holder)}. Waiting for its end.", file=sys.stderr)
            waits = True
        time.sleep(LOOK_SECONDS)


def _work(config: Config, folder: Path, told: Told, ends: float | None) -> Came:
    store = open_or_rebuild(config.store, folder)[0]
    bot = Bot(config, World(home=folder, environ=os.environ, patient=False, cycle_ends=ends), store)
    again = _remember(bot.inbox, told.delivery)
    if told.delivery.ignored:
        return Came(again, told.delivery.ignored)
    before, begun = _known(store), time.time()
    bot.join()
    bot.start()
    try:
        while bot.inbox.lanes() or is_unfinished(store):
            time.sleep(LOOK_SECONDS)  # whoever ends it here is a thread of ours; a person waits for the last line
    finally:
        bot.stop()
    worked = [entry for entry in bot.inbox.find(told.delivery.delivery) if entry.source == told.delivery.source]
    return Came(
        again,
        ignored="; ".join(entry.note for entry in worked if entry.note and entry.state != "failed"),
        runs=_runs(store, told.delivery, before, again=again),
        refused=_refused(store, told.event, begun, again=again),
        failed="; ".join(entry.note for entry in worked if entry.state == "failed"),
    )


def _hand_over(config: Config, folder: Path, told: Delivery) -> Came:
    store = open_or_rebuild(config.store, folder)[0]
    try:
        again = _remember(Inbox(store, time.time, limit=config.server.queue_limit), told)
    finally:
        store.close()
    ring(folder, "lane", told.lane)
    return Came(again, told.ignored, handed_over=not told.ignored)


def _remember(inbox: Inbox, told: Delivery) -> bool:
    """Whether it was known before."""
    verdict = inbox.remember(told)
    if verdict not in {Verdict.ACCEPTED, Verdict.DUPLICATE}:
        raise UserError(f"The event was not taken: {verdict.value}. Look at `leadsman deliveries`.")
    return verdict is Verdict.DUPLICATE


def _known(store: Store) -> dict[str, bool]:
    """Each run, and whether it has ended."""
    with store.read() as connection:
        return {row.run_id: row.closed_at is not None for row in runs.recent(connection, limit=1000)}


def _runs(store: Store, told: Delivery, before: dict[str, bool], *, again: bool) -> list[runs.Row]:
    """Those that came of it: now, or when it was told before by a command that did not live to see their end."""
    with store.read() as connection:
        return [
            row
            for row in runs.recent(connection, limit=1000)
            if row.run_id not in before
            or (again and (not before[row.run_id] or _is_of(told, runs.intent(connection, row.run_id))))
        ]


def _is_of(told: Delivery, intent: Intent | None) -> bool:
    return intent is not None and (intent.event.source, intent.event.delivery) == (told.source, told.delivery)


def _refused(store: Store, told: Event | None, since: float, *, again: bool) -> list[str]:
    """Also where the comment was answered before, for another command or under another id."""
    with store.read() as connection:
        threads = answers.refusals(connection, since)
        match told:
            case Event(what=Commented(comment_id, before=before), subject=PullRef() | IssueRef() as on):
                if (again or before is None) and not answers.ended_well(connection, on, comment_id):
                    threads.append(on)
    return list(dict.fromkeys(map(str, threads)))


def _tell(came: Came, delivery: str, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(_facts(came, delivery)))
        return came.code
    if came.again:
        print(f"{delivery} was worked before; `--delivery` gives it another id.", file=sys.stderr)
    if came.handed_over:
        print("A server holds this home; it works the event.")
        return came.code
    if came.ignored:
        print(f"ignored: {came.ignored}")
    for row in came.runs:
        print(f"{row.run_id} {row.task} {row.subject}: {row.reason}")
    if not came.runs:
        print("No run was started.")
    for on in came.refused:
        print(f"Not all of it was done; the answer on {on} says why.", file=sys.stderr)
    if came.failed:
        print(f"The event could not be worked: {came.failed}.", file=sys.stderr)
    return came.code


def _facts(came: Came, delivery: str) -> dict[str, object]:
    """For programs."""
    return {
        "delivery": delivery,
        "again": came.again,
        "server": came.handed_over,
        "ignored": came.ignored,
        "failed": came.failed,
        "refused": list(came.refused),
        "runs": [
            {"run_id": row.run_id, "task": row.task, "subject": row.subject, "reason": row.reason} for row in came.runs
        ],
    }

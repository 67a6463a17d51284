"""`leadsman deliveries`: what the forges delivered, beside a running server or without one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import get_args

import click

from bot import home
from bot.cli import table
from bot.cli.clicked import Setting, examples, json_option
from bot.cli.options import printable
from bot.errors import UserError
from bot.store.engine import Store, open_store
from bot.wake import ring
from webhooks.inbox import Entry, Inbox, Kept, State


@click.group(
    "deliveries",
    invoke_without_command=True,
    epilog=examples("leadsman deliveries", "leadsman deliveries --state failed", "leadsman deliveries replay 42"),
)
@click.option("--state", type=click.Choice(get_args(State)), help="Only these.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="The latest so many.")
@json_option
@click.pass_context
def command(context: click.Context, state: State | None, limit: int, as_json: bool) -> None:
    """What the forges delivered, the latest first."""
    if context.invoked_subcommand is not None:
        return
    with _inbox(context.obj) as inbox:
        entries = inbox.listing(state=state, limit=limit)
    if as_json:
        print(json.dumps([told(entry) for entry in entries]))
        return
    if not entries:
        print("No deliveries." if state is None else f"No deliveries that are {state}.")
        return
    headings = ("number", "received", "source", "event", "about", "state", "tries", "delivery", "note")
    table.show(headings, [line(entry) for entry in entries])


@command.command("show", epilog=examples("leadsman deliveries show 42 | less"))
@click.argument("delivery", metavar="ID")
@json_option
@click.pass_context
def show(context: click.Context, delivery: str, as_json: bool) -> None:
    """A delivery as it came: ID is its number here, or the forge's own id."""
    with _inbox(context.obj) as inbox:
        kept = inbox.get(which(inbox, delivery).id)
    if kept is None:
        raise _unknown(delivery)
    print(json.dumps(whole(kept)) if _for_programs(context, as_json) else shown(kept))


@command.command("replay", epilog=examples("leadsman deliveries replay 42"))
@click.argument("delivery", metavar="ID")
@json_option
@click.pass_context
def replay(context: click.Context, delivery: str, as_json: bool) -> None:
    """Has a delivery worked again. What it asked for and got already is not done twice."""
    setting: Setting = context.obj
    with _inbox(setting) as inbox:
        entry = inbox.replay(which(inbox, delivery).id)
    if entry is None:
        raise _unknown(delivery)
    heard = ring(setting.home, "lane", entry.lane)
    if _for_programs(context, as_json):
        print(json.dumps(told(entry)))
        return
    where = "The server takes it up now." if heard else "No server runs here: the next `leadsman serve` takes it up."
    print(f"{entry.id} ({entry.event} {printable(entry.delivery)}) is queued again. {where}")


def _for_programs(context: click.Context, as_json: bool) -> bool:
    """Whether `--json` was given, to the command or before its name."""
    return as_json or (context.parent is not None and bool(context.parent.params["as_json"]))


@contextmanager
def _inbox(setting: Setting) -> Iterator[Inbox]:
    config = setting.config()
    store: Store = open_store(config.store, home.make(setting.home))
    try:
        yield Inbox(store, lambda: datetime.now(UTC).timestamp(), limit=config.server.queue_limit)
    finally:
        store.close()


def which(inbox: Inbox, text: str) -> Entry:
    """The delivery that `text` names: by its number, else by its source's id. Raises `UserError`."""
    if text.isascii() and text.isdecimal() and len(text) < 19 and (kept := inbox.get(int(text))) is not None:
        return kept.entry
    found = inbox.find(text) if text.isprintable() else ()  # as all ids are; bytes that are no text fit no database
    if not found:
        raise _unknown(text)
    if len(found) > 1:
        numbers = ", ".join(f"{entry.id} ({entry.source})" for entry in found)
        raise UserError(f"{len(found)} sources have a delivery {text}. Name it by its number: {numbers}.")
    return found[0]


def _unknown(text: str) -> UserError:
    return UserError(f"There is no delivery {printable(text)}. `leadsman deliveries` lists the latest.")


def told(entry: Entry) -> dict[str, object]:
    """For programs: times as RFC 3339."""
    times = {name: _time(getattr(entry, name)) for name in ("received_at", "due_at", "ended_at")}
    return {**asdict(entry), **times}


def whole(kept: Kept) -> dict[str, object]:
    """As `told`, with headers and body; the body as text, undecodable bytes as U+FFFD."""
    return {**told(kept.entry), "headers": dict(kept.headers), "body": kept.body.decode(errors="replace")}


def shown(kept: Kept) -> str:
    """For people: the facts, the headers, the body, indented where it is JSON."""
    facts = [f"{name}: {printable(value)}" for name, value in told(kept.entry).items() if value not in {None, ""}]
    headers = [f"{name}: {printable(text)}" for name, text in kept.headers.items()]
    return "\n".join([*facts, "", *headers, "", _readable(kept.body)])


def _readable(body: bytes) -> str:
    try:
        return json.dumps(json.loads(body), indent=2)  # in ASCII: nothing in it can steer a terminal
    except (ValueError, RecursionError):
        return printable(body.decode(errors="replace"))


def line(entry: Entry) -> tuple[str, ...]:
    """A row of the table."""
    about = entry.lane.removeprefix(f"{entry.source}:")
    received = _time(entry.received_at) or ""
    note = entry.note if len(entry.note) <= 60 else f"{entry.note[:59]}…"
    cells = (entry.id, received, entry.source, entry.event, about, entry.state, entry.tries, entry.delivery, note)
    return tuple(printable(cell) for cell in cells)


def _time(at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

"""`leadsman claims`: what this bot holds, and how it is given back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import click

from bot import home
from bot.ages import Ages
from bot.cli import table
from bot.cli.cancel import user
from bot.cli.clicked import Setting, json_option
from bot.cli.options import printable
from bot.codec import Unreadable
from bot.epoch import holder
from bot.errors import Forbidden, Gone, Unavailable, UserError
from bot.store import runs
from bot.store.engine import Store, open_store
from bot.wake import ring
from bot.wiring.bot import Bot
from bot.wiring.outside import World


@dataclass(frozen=True, slots=True)
class Held:
    """A claim that an open run of this bot holds."""

    key: str
    run_id: str
    task: str
    asked_by: str
    since: str
    phase: str
    ref: str


@click.group(
    "claims",
    invoke_without_command=True,
    epilog="Examples: leadsman claims, leadsman claims release work:7, leadsman claims release work:7 --force",
)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """The claims that runs of this bot hold now."""
    if context.invoked_subcommand is not None:
        return
    with _store(context.obj) as store:
        found = held(store, context.obj)
    if as_json:
        print(json.dumps([asdict(one) for one in found]))
    elif not found:
        print("Nothing is claimed.")
    else:
        headings = ("claimed", "run", "task", "asked by", "since", "phase")
        table.show(headings, [tuple(map(printable, tuple(asdict(one).values())[:6])) for one in found])


@command.command("release", epilog="Example: leadsman claims release 20260105-090000-a1b2c3")
@click.argument("which", metavar="ID")
@click.option("--force", is_flag=True, help="Also a claim that no run of this bot holds: of a bot that is gone.")
@click.pass_context
def release(context: click.Context, which: str, force: bool) -> None:
    """Gives a claim back. ID is a run's, or what is claimed (work:7); the run that holds it is ended."""
    setting: Setting = context.obj
    with _store(setting) as store:
        found = [one for one in held(store, setting) if one.key == which or one.run_id.startswith(which)]
        if len(found) > 1:
            raise UserError(f"{len(found)} claims are meant. Name one run: {', '.join(one.run_id for one in found)}.")
        if found:
            with store.write() as connection:
                runs.ask_cancel(connection, found[0].run_id, f"{user()}, who released its claim")
            heard = ring(setting.home, "run", found[0].run_id)
            where = "The server ends the run now." if heard else "The next `leadsman serve` ends the run."
            print(f"{found[0].key} will be given back. {where}")
        elif force:
            _force(setting, store, which)
        else:
            raise UserError(
                f"No run of this bot holds {printable(which)}. `leadsman claims` lists what is held; "
                "a claim of a bot that is gone is given back with --force."
            )


def held(store: Store, setting: Setting) -> list[Held]:
    with store.read() as connection:
        rows = runs.open_runs(connection)
    found = []
    for row in rows:
        try:
            claim = Ages(setting.home / "runs" / row.run_id).claim
        except (Unreadable, OSError):
            continue  # `leadsman doctor` tells of it
        if claim is not None:
            since = claim.at.isoformat(timespec="seconds").replace("+00:00", "Z")
            found.append(Held(claim.key, row.run_id, row.task, row.asked_by, since, row.phase, claim.ref))
    return found


def _force(setting: Setting, store: Store, which: str) -> None:
    """A ticket's claim, whoever made it."""
    config = setting.config()
    bot = Bot(config, World(home=setting.home, environ=os.environ), store)
    name, _, number = which.rpartition(":")
    tracker = bot.outside.trackers.get(name)
    if tracker is None or not number.isdecimal():
        known = ", ".join(bot.outside.trackers) or "none"
        raise UserError(f"{printable(which)} is no ticket: write TRACKER:NUMBER. Known trackers: {known}.", code=2)
    try:
        ref = tracker.find(int(number))
        ticket = tracker.ticket(ref) if ref is not None else None
        claim = holder(ticket.journal) if ticket is not None else None
        if ticket is None or claim is None:
            raise UserError(f"Nobody has claimed {printable(which)}, as its journal says.")
        why = f"{user()} gave it back by hand (it was run {claim.run_id} of {claim.by})"
        bot.ticketing.sweep.give_back(tracker, ticket, claim, why)
    except (Gone, Forbidden, Unavailable) as problem:
        raise UserError(f"{which} can't be given back: {problem}") from problem
    print(f"{which} was given back: {claim.by} had it with run {claim.run_id}.")


@contextmanager
def _store(setting: Setting) -> Iterator[Store]:
    store = open_store(setting.config().store, home.make(setting.home))
    try:
        yield store
    finally:
        store.close()

"""`leadsman claims release`: gives a claim back, of a run of this bot, or of a bot that is gone."""

from __future__ import annotations

import os
from pathlib import Path

from bot import home
from bot.claimlog import held
from bot.cli.cancel import user
from bot.cli.options import Options, printable
from bot.config import Config, load
from bot.epoch import holder
from bot.errors import Forbidden, Gone, Unavailable, UserError
from bot.model import AnyTicket, Held, IssueRef, Repo
from bot.store import runs
from bot.store.engine import Store, open_store
from bot.wake import ring
from bot.wiring.bot import Bot
from bot.wiring.outside import World


def give_back(options: Options, which: str, *, force: bool) -> None:
    """Has the run that holds it ended; with `force`, and where none does, clears a ticket's claim whoever made it."""
    folder = options.store.parent
    found = [one for one in held(options.store) if one.key == which or (which and one.run_id.startswith(which))]
    if len(found) > 1:
        raise UserError(f"{len(found)} claims are meant. Name one run: {', '.join(one.run_id for one in found)}.")
    if not found and not force:
        raise UserError(
            f"No run of this bot holds {printable(which)}. `leadsman claims` lists what is held; "
            "a claim of a bot that is gone is given back with --force."
        )
    config = load(Path(given) if (given := options.values.get("--config")) else None, os.environ, home=folder)
    store = open_store(config.store, home.make(folder))
    try:
        if not found:
            _force(config, folder, store, which)
            return
        with store.write() as connection:
            runs.ask_cancel(connection, found[0].run_id, f"{user()}, who released its claim")
    finally:
        store.close()
    heard = ring(folder, "run", found[0].run_id)
    where = "The server ends the run now." if heard else "The next `leadsman serve` ends the run."
    print(f"{found[0].key} will be given back. {where}")


def _force(config: Config, folder: Path, store: Store, which: str) -> None:
    bot = Bot(config, World(home=folder, environ=os.environ), store)
    try:
        ref = _ticket(bot, which)
        freed = None if ref is None else _freed(bot, ref)
    except (Gone, Forbidden, Unavailable) as problem:
        raise UserError(f"{printable(which)} can't be given back: {problem}") from problem
    if freed is None:
        raise UserError(f"Nobody has claimed {printable(which)}, as its journal and its ref say.")
    print(f"{which} was given back: {freed.by} had it with run {freed.run_id}.")


def _freed(bot: Bot, ref: AnyTicket) -> Held | None:
    """Whose claim was taken away: by the journal, and where that tells of none, by the ref alone."""
    tracker, claims = bot.outside.trackers[ref.tracker], bot.ticketing.claims
    ticket = tracker.ticket(ref)
    claim = holder(ticket.journal)
    found = claims.holder(ref) if claim is None else Held(claim.by, claim.at, claim.run_id, str(ref))
    if found is None:
        return None
    why = f"{user()} gave it back by hand (it was run {found.run_id} of {found.by})"
    if claim is None:
        return found if claims.clear(ref, found.run_id, why) else None
    if not bot.ticketing.sweep.give_back(tracker, ticket, claim, why):
        raise UserError(f"Another run has claimed {ref} meanwhile. `leadsman claims release {ref} --force`, again.")
    return found


def _ticket(bot: Bot, which: str) -> AnyTicket | None:
    """`work:7`, or `github:acme/shop#9`; None for a number that is none of ours. Raises `UserError`."""
    name, _, rest = which.partition(":")
    repository, hash_, number = rest.rpartition("#")
    if number.isdecimal() and hash_ and name in bot.outside.forges:
        return IssueRef(Repo(name, repository), int(number))
    if number.isdecimal() and not hash_ and (system := bot.outside.systems.get(name)) is not None:
        return system.find(int(number))
    known = ", ".join(bot.outside.trackers)
    raise UserError(
        f"{printable(which)} is no ticket: write TRACKER:NUMBER, or FORGE:OWNER/NAME#NUMBER. Known: {known}.", code=2
    )

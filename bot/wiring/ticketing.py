"""Claims and tickets: the ref that decides, the journal that people see, and who gives back what nobody works."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass

from bot.claimbook import ClaimBook
from bot.claims import Claims
from bot.claimsweep import ClaimSweep
from bot.config import Config
from bot.journal import Journal
from bot.model import AnyTicket, Intent, RunId, Subject
from bot.store import runs
from bot.store.engine import Store
from bot.tickets import Tickets
from bot.wiring.outside import Outside, World, identity_of, tracker_projects

VERTICAL = "leadsman"
"""What claims call this kind of bot, before its host's name."""


@dataclass(frozen=True, slots=True)
class Ticketing:
    claims: Claims
    tickets: Tickets
    sweep: ClaimSweep


def ticketing(
    config: Config,
    world: World,
    store: Store,
    outside: Outside,
    journal: Journal,
    *,
    answered: Callable[[Intent], str | None],
) -> Ticketing:
    book = ClaimBook(store, journal, world.clock)
    host = socket.gethostname()
    claims = Claims(
        outside.repositories,
        store,
        book,
        identity_of(config),
        host=host,
        vertical=VERTICAL,
        in_journal=lambda subject: _has_a_journal(outside, subject),
        url=lambda run_id: run_url(config, run_id),
        clock=world.clock,
    )
    tickets = Tickets(
        outside.trackers,
        book,
        by=f"{VERTICAL}@{host}",
        is_ours=lambda run_id: _knows(store, run_id),
        url=lambda run_id: run_url(config, run_id),
        answered=answered,
        clock=world.clock,
    )
    sweep = ClaimSweep(
        outside.trackers,
        {name: tracker_projects(config, name) for name in outside.trackers},
        claims,
        store,
        book,
        limit=max((row.total_s for row in config.budget.rows()), default=0),
        clock=world.clock,
    )
    return Ticketing(claims, tickets, sweep)


def run_url(config: Config, run_id: RunId) -> str:
    return f"{config.server.url}/runs/{run_id}"


def _has_a_journal(outside: Outside, subject: Subject) -> bool:
    return isinstance(subject, AnyTicket) and outside.trackers[subject.tracker].claiming.enabled


def _knows(store: Store, run_id: str) -> bool:
    with store.read() as connection:
        return runs.get(connection, run_id) is not None

"""What takes a run from its claim to its report."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from bot import landing, recheck, road
from bot.config import Config
from bot.dispatch import Hints
from bot.hostload import host_load
from bot.journal import Journal
from bot.leaving import Leaving
from bot.ledger import Ledger
from bot.model import Repo, RunId
from bot.reporter import Reporter
from bot.reports import Report
from bot.signing import SigningKey
from bot.spares import Spares
from bot.steps import Steps
from bot.store.engine import Store
from bot.verification import Verification
from bot.wiring.outside import Outside, World, identity_of
from bot.wiring.ticketing import Ticketing, run_url
from bot.worksite import Worksite
from gitops.mirror import Mirror


def make_road(
    config: Config,
    world: World,
    store: Store,
    outside: Outside,
    journal: Journal,
    *,
    ticketing: Ticketing,
    spares: Spares,
    key: SigningKey,
    hints: Hints,
    watch: Callable[[str, Path], None],
    observe: road.Observer,
) -> road.Road:
    identity = identity_of(config)
    repositories = outside.repositories
    reporter = Reporter(
        repositories,
        outside.masking,
        key,
        host=socket.gethostname(),
        links=lambda run_id: run_url(config, run_id),
        load=host_load,
        clock=world.clock,
    )
    worksite = Worksite(
        repositories,
        world.home / "worktrees",
        identity,
        trackers=outside.trackers,
        environ=world.environ,
        load=host_load,
        clock=world.clock,
        keep_failed=config.fleet.keep_failed_worktrees,
        spare=spares.take,
    )
    ledger = Ledger(store, world.name, journal, hints)
    steps = Steps(
        ledger=ledger,
        repositories=repositories,
        claims=ticketing.claims,
        worksite=worksite,
        verification=Verification(repositories, world.home / "checkouts", world.environ, masking=outside.masking),
        landing=landing.Landing(repositories, ticketing.claims, identity),
        tickets=ticketing.tickets,
        sweep=ticketing.sweep,
        identity=identity,
        journal=journal,
        hints=hints,
        watch=watch,
        write_report=reporter.write,
        leave=Leaving(repositories, identity, journal).leave,
        clock=world.clock,
    )
    return road.Road(
        store=store,
        runs_dir=world.runs,
        ledger=ledger,
        steps=steps,
        journal=journal,
        hints=hints,
        observe=observe,
        patient=world.patient,
        clock=world.clock,
    )


def verified(world: World, outside: Outside, key: SigningKey, run_id: RunId) -> list[recheck.Finding]:
    """What holds of a run's report now."""

    def mirror(report: Report) -> Mirror:
        return outside.repositories.mirror(Repo(report.repository.forge, report.repository.name))

    return recheck.of_run(world.runs / run_id, key.public, mirror)

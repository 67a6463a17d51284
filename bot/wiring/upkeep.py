"""What goes on beside the runs: sweeps for what a lost hint left, worktrees kept ready and tidied, boards."""

from __future__ import annotations

from collections.abc import Callable

from bot import answers
from bot.board import Boards, Host
from bot.config import Config
from bot.dispatch import Hint, Hints
from bot.errors import Forbidden, Gone, Unavailable, UserError
from bot.journal import Journal
from bot.merged import Merged
from bot.projects import Project
from bot.spares import Spares
from bot.store import runs
from bot.store.engine import Store
from bot.tidying import Tidying
from bot.wiring.outside import Outside, World, identity_of
from webhooks.inbox import Inbox

SWEEP_SECONDS = 20.0
"""How often the store is looked through for what a lost hint left lying."""


class Sweep:
    """Asks again for all that is due. The first look takes up everything, whatever its time: a server that was killed
    told nobody."""

    def __init__(self, config: Config, world: World, store: Store, inbox: Inbox, hints: Hints) -> None:
        self._keep_seconds = config.server.keep_deliveries_seconds
        self._runs_dir = world.runs
        self._host = world.name
        self._store = store
        self._inbox = inbox
        self._hints = hints
        self._clock = world.clock
        self._swept = False

    def look(self, _key: str) -> float:
        before = self._clock() if self._swept else None
        self._swept = True
        with self._store.read() as connection:
            open_runs = [row.run_id for row in runs.open_runs(connection) if self._is_due(row, before)]
            due = answers.due(connection, before)
        for lane in self._inbox.lanes():
            self._hints.put(Hint("lane", lane))
        self._hints.put(Hint("waiting"))
        for run_id in open_runs:
            self._hints.put(Hint("run", run_id))
        for key in due:
            self._hints.put(Hint("answer", key))
        if self._keep_seconds:
            self._inbox.purge(self._clock() - self._keep_seconds)
        return SWEEP_SECONDS

    def _is_due(self, row: runs.Row, before: float | None) -> bool:
        """Whether there may be something to do for a run of which nobody told any news."""
        if row.host not in ("", self._host):
            return False
        if row.phase == "waiting" and not row.is_called_off:
            return (
                not self._store.is_shared and not (self._runs_dir / row.run_id / "intent.json").exists()
            )  # it is offered a slot, not advanced
        return before is None or row.due_at <= before


def publish_boards(config: Config, boards: Boards, journal: Journal) -> float | None:
    """After each run, and by the clock; what can't be published now is tried at the next occasion."""
    for project in on_a_board(config):
        try:
            commit = boards.publish(project.repo)
        except (Unavailable, Gone, Forbidden, UserError) as problem:
            journal.say("no_board", repo=str(project.repo), why=str(problem))
        else:
            journal.say("board", repo=str(project.repo), commit=commit)
    return float(config.board.every_seconds) or None


def on_a_board(config: Config) -> list[Project]:
    """The projects whose repository has a board."""
    wished = config.board.projects
    return [project for project in config.projects if "*" in wished or project.name in wished]


def boards(
    config: Config, world: World, store: Store, outside: Outside, *, load: Callable[[], tuple[float | None, int]]
) -> Boards:
    name = world.name

    def host() -> Host:
        p95, cpus = load()
        return Host(name, config.fleet.slots, None if p95 is None else round(p95, 2), cpus)

    return Boards(
        outside.repositories,
        store,
        world.runs,
        config.board,
        config.publish,
        identity=identity_of(config),
        masking=outside.masking,
        host=host,
        clock=world.clock,
    )


def tidying(config: Config, world: World, store: Store, outside: Outside, journal: Journal) -> Tidying:
    return Tidying(
        outside.repositories,
        store,
        (world.home / "worktrees", world.home / "checkouts"),
        [project.repo for project in config.projects],
        world.runs,
        journal=journal,
    )


def merged(config: Config, world: World, outside: Outside, journal: Journal) -> Merged:
    return Merged(outside.repositories, world.runs, [project.repo for project in config.projects], journal=journal)


def spares(config: Config, world: World, store: Store, outside: Outside, journal: Journal, *, hints: Hints) -> Spares:
    return Spares(
        world.home / "spares",
        config.fleet.spares,
        [project.repo for project in config.projects],
        outside.repositories,
        store,
        hints=hints,
        journal=journal,
        clock=world.clock,
    )

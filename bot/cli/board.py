"""`leadsman board`: what runs, waits and came of it, published as files of the repository it is about."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from bot import home
from bot.board import Boards
from bot.cli.clicked import Setting, examples
from bot.config import Config
from bot.errors import Forbidden, Gone, Unavailable, UserError
from bot.hostload import LoadWindow
from bot.journal import Journal
from bot.nearest import did_you_mean
from bot.projects import Project
from bot.store.engine import open_store
from bot.wiring.outside import World, reach
from bot.wiring.upkeep import boards, on_a_board


@click.group("board", epilog=examples("leadsman board publish"))
def command() -> None:
    """BOARD.md and board.json on a branch of the repository: runs, claims, slots, load."""


@command.command("publish", epilog=examples("leadsman board publish", "leadsman board publish shop"))
@click.argument("project", required=False)
@click.pass_obj
def publish(setting: Setting, project: str | None) -> int:
    """Brings the board up to date, of PROJECT or of all that [board] names; a commit only where something changed."""
    config = setting.config()
    chosen = _chosen(config, project)
    failed = 0
    with _boards(setting, config) as keeper:
        for one in chosen:
            try:
                commit = keeper.publish(one.repo)
            except (Unavailable, Gone, Forbidden, UserError) as problem:
                print(f"{one.name}: {problem}", file=sys.stderr)
                failed += 1
            else:
                print(f"{one.name}: {commit or 'nothing has changed'}")
    return 1 if failed else 0


def _chosen(config: Config, name: str | None) -> list[Project]:
    if name is None:
        chosen = on_a_board(config)
        if not chosen:
            raise UserError('No project has a board. Name one here, or in the configuration: [board] projects = ["*"].')
        return chosen
    chosen = [project for project in config.projects if project.name == name]
    if not chosen:
        meant = did_you_mean(name, [project.name for project in config.projects]) or "."
        raise UserError(f'There is no project "{name}"{meant}', code=2)
    return chosen


@contextmanager
def _boards(setting: Setting, config: Config) -> Iterator[Boards]:
    world = World(home=home.make(setting.home), environ=os.environ)
    store = open_store(config.store, setting.home)
    try:
        load = LoadWindow(setting.home, os.environ, world.clock)
        yield boards(
            config,
            world,
            store,
            reach(config, world, store, Journal(world.home / "events.jsonl", world.clock)),
            load=load.p95,
        )
    finally:
        store.close()

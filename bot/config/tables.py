"""The tables of the two files, and the class that each one fills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from bot.budget import BudgetSettings
from bot.fleet import FleetSettings
from bot.forges import FORGES
from bot.projects import Project
from bot.publishing import BoardSettings, PublishSettings, RepositoryPublish
from bot.risk import RiskSettings
from bot.serving import ServerSettings
from bot.settings import Settings
from bot.store import StoreSettings
from bot.tasks import Rule, Task
from bot.trackers import TRACKERS


@dataclass(frozen=True, slots=True)
class One:
    """`[name]`."""

    settings: type[Settings]


@dataclass(frozen=True, slots=True)
class Many:
    """`[[name]]`, once for each."""

    settings: type[Settings]


@dataclass(frozen=True, slots=True)
class ByKind:
    """`[name.<any>]`, each of a `kind` whose module holds the class; imported when it is asked for."""

    modules: Mapping[str, str]

    def settings(self, kind: str) -> type[Settings]:
        return cast("type[Settings]", import_module(self.modules[kind]).Settings)


TABLES: Mapping[str, One | Many | ByKind] = {
    "server": One(ServerSettings),
    "store": One(StoreSettings),
    "forges": ByKind(FORGES),
    "trackers": ByKind(TRACKERS),
    "project": Many(Project),
    "task": Many(Task),
    "rule": Many(Rule),
    "fleet": One(FleetSettings),
    "budget": One(BudgetSettings),
    "publish": One(PublishSettings),
    "board": One(BoardSettings),
}
"""leadsman.toml."""

REPOSITORY_TABLES: Mapping[str, One | Many] = {
    "task": Many(Task),
    "rule": Many(Rule),
    "publish": One(RepositoryPublish),
    "risk": One(RiskSettings),
}
"""A repository's .leadsman.toml."""

EXPLAINED: Mapping[str, One | Many | ByKind] = {
    **TABLES,
    **{name: table for name, table in REPOSITORY_TABLES.items() if name not in TABLES},
}
"""Each table that there is: as the server's file has it, and those that a repository alone has."""

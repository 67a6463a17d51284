"""The tables as read, before anybody has compared them with each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from bot.budget import BudgetSettings
from bot.config.sheet import Sheet
from bot.config.tables import TABLES, ByKind
from bot.config.values import shown
from bot.fleet import FleetSettings
from bot.nearest import did_you_mean
from bot.projects import Project
from bot.publishing import BoardSettings, PublishSettings
from bot.serving import ServerSettings
from bot.settings import Settings
from bot.store import StoreSettings
from bot.tasks import Rule, Task

T = TypeVar("T", bound=Settings)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Each table that is right in itself; a wrong one is its default here, and a problem on the sheet."""

    server: ServerSettings
    store: StoreSettings
    forges: Mapping[str, Settings]
    trackers: Mapping[str, Settings]
    projects: Mapping[int, Project]
    """By their place in the file from 0, as `tasks` and `rules`."""
    tasks: Mapping[int, Task]
    rules: Mapping[int, Rule]
    fleet: FleetSettings
    budget: BudgetSettings
    publish: PublishSettings
    board: BoardSettings


def read(sheet: Sheet) -> Draft:
    """Every table of the server's file. What is wrong is gathered on the sheet."""
    sheet.only(TABLES)
    return Draft(
        server=_one(sheet, ServerSettings, "server"),
        store=_one(sheet, StoreSettings, "store"),
        forges=_by_kind(sheet, "forges"),
        trackers=_by_kind(sheet, "trackers"),
        projects=sheet.tables(Project, "project"),
        tasks=sheet.tables(Task, "task"),
        rules=sheet.tables(Rule, "rule"),
        fleet=_one(sheet, FleetSettings, "fleet"),
        budget=_one(sheet, BudgetSettings, "budget"),
        publish=_one(sheet, PublishSettings, "publish"),
        board=_one(sheet, BoardSettings, "board"),
    )


def _one(sheet: Sheet, model: type[T], name: str) -> T:
    return sheet.table(model, (name,)) or model()


def _by_kind(sheet: Sheet, name: str) -> dict[str, Settings]:
    """The right ones of `[name.*]`."""
    tables = sheet.document.get(name, {})
    if not isinstance(tables, dict):
        sheet.problem((name,), f"must be written as [{name}.<name>], once for each")
        return {}
    read = {key: _of_its_kind(sheet, name, key) for key in tables}
    return {key: settings for key, settings in read.items() if settings is not None}


def _of_its_kind(sheet: Sheet, name: str, key: str) -> Settings | None:
    path = (name, key)
    raw = sheet.document[name][key]
    if not isinstance(raw, dict):
        sheet.problem(path, f"must be a table, [{name}.<name>]")
        return None
    if not _NAME.fullmatch(key):
        sheet.problem(path, "is part of an address: letters, digits, - and _, at most 64 of them")
    by_kind = cast("ByKind", TABLES[name])
    known = ", ".join(by_kind.modules)
    kind = raw.get("kind")
    if kind is None:
        sheet.problem((*path, "kind"), f"is missing; one of {known}")
    elif kind not in by_kind.modules:
        sheet.problem(
            (*path, "kind"), f"must be one of {known}, not {shown(kind)}{did_you_mean(str(kind), by_kind.modules)}"
        )
    else:
        return sheet.table(by_kind.settings(kind), path)
    return None

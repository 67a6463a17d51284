"""`leadsman config`: is the file right, what may it say, and the same for editors."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

import click

from bot.cli.clicked import Setting, examples, json_option
from bot.config import Config, ConfigErrors, Problem, find
from bot.config.explaining import Key, Table, explain
from bot.config.loading import FILE, open_sheet
from bot.config.schema import json_schema
from bot.config.sheet import Sheet
from bot.config.tables import EXPLAINED
from bot.errors import UsageError
from bot.nearest import did_you_mean


@click.group("config", epilog=examples("leadsman config check", "leadsman config explain publish"))
def command() -> None:
    """Checks and explains leadsman.toml. No network is used; `leadsman doctor` is the same with network."""


@command.command("check", epilog=examples("leadsman --config /etc/leadsman/leadsman.toml config check"))
@json_option
@click.pass_obj
def check(setting: Setting, as_json: bool) -> int:
    """Is the file right? Every problem with its line; exit code 2 where there is one."""
    try:
        config = setting.config()
    except ConfigErrors as wrong:
        if not as_json:
            raise
        _print_checked(find(setting.config_file, os.environ), wrong.problems, ())
        return wrong.code
    if as_json:
        _print_checked(config.source, (), config.warnings)
        return 0
    for warning in config.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(_summary(config))
    return 0


@command.command("explain", epilog=examples("leadsman config explain", "leadsman config explain publish"))
@click.argument("table", required=False)
@json_option
@click.pass_obj
def explained(setting: Setting, table: str | None, as_json: bool) -> None:
    """Every key of TABLE, or of all: its type, default and meaning, what it is now, and where that comes from."""
    sheet, problem = _readable(find(setting.config_file, os.environ))
    if problem is not None:
        print(problem, file=sys.stderr)
    tables = explain(sheet) if table is None else _chosen(sheet, table.strip("[]"))
    print(json.dumps([asdict(one) for one in tables], indent=2) if as_json else "\n\n".join(map(_text, tables)))


@command.command("schema", epilog=examples("leadsman config schema > leadsman.schema.json"))
@json_option
def schema(as_json: bool) -> None:  # noqa: ARG001 - it is for programs anyway
    """The JSON Schema of leadsman.toml, for editors."""
    print(json.dumps(json_schema(), indent=2))


def _summary(config: Config) -> str:
    if config.source is None:
        return f"There is no {FILE}, here or in the configuration folder: everything is at its default."
    counts = [
        f"{len(found)} {name}{'' if len(found) == 1 else 's'}"
        for name, found in (
            ("forge", config.forges),
            ("tracker", config.trackers),
            ("project", config.projects),
            ("task", config.tasks),
            ("rule", config.rules),
        )
    ]
    return f"{config.source} is in order: {', '.join(counts)}."


def _print_checked(source: Path | None, problems: Iterable[Problem], warnings: Iterable[Problem]) -> None:
    found = {"problems": [asdict(one) for one in problems], "warnings": [asdict(one) for one in warnings]}
    print(json.dumps({"file": str(source) if source else None, "ok": not found["problems"], **found}, indent=2))


def _readable(source: Path | None) -> tuple[Sheet, ConfigErrors | None]:
    """The file, or an empty one beside what is wrong with it: who has to correct it needs the explanation most."""
    try:
        return open_sheet(source), None
    except ConfigErrors as problem:
        return open_sheet(None), problem


def _chosen(sheet: Sheet, wanted: str) -> tuple[Table, ...]:
    """`forges` is every forge, `forges.github` the one of that name; `task.verify` is a table within one."""
    top, _, rest = wanted.partition(".")
    tables = explain(sheet, [top]) if top in EXPLAINED else ()
    chosen = tuple(one for one in tables if wanted in (top, one.name.strip("[]")))
    if not chosen:
        chosen = tuple(filter(None, (_within(one, rest) for one in tables if not one.name.startswith(f"[{top}."))))
    if not chosen:
        raise UsageError(
            f'There is no table "{wanted}"{did_you_mean(wanted, EXPLAINED) or "."} Known: {", ".join(EXPLAINED)}.'
        )
    return chosen


def _within(table: Table, name: str) -> Table | None:
    """The keys of `table` that are in the table `name` of it."""
    keys = tuple(key for key in table.keys if re.split(r"[.\[]", key.key)[0] == name)
    return replace(table, keys=keys) if keys else None


def _text(table: Table) -> str:
    return "\n".join([table.name, *(_key_text(key) for key in table.keys)])


def _key_text(key: Key) -> str:
    now = f"= {key.value}  ({key.source})" if key.value else f"({key.source})"
    default = key.default if key.default == "required" else f"default {key.default}"
    meaning = textwrap.fill(key.meaning, 100, initial_indent="      ", subsequent_indent="      ")
    return f"  {key.key} {now}\n{meaning}\n      {key.type}; {default}"

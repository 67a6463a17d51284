"""What the file may say: every key with its type, default and meaning; and what it says now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, get_origin

from pydantic import BaseModel

from bot.config.inline import secrets_in
from bot.config.places import Path
from bot.config.schema import type_name
from bot.config.sentences import table_of
from bot.config.sheet import Sheet
from bot.config.tables import EXPLAINED, TABLES, ByKind, Many, One
from bot.config.values import written
from bot.paths import REPOSITORY_FILE

REQUIRED = "required"
NOTHING = object()


@dataclass(frozen=True, slots=True)
class Key:
    """One key of one table. `type` is for people; `default`, `value` are as the file would write them."""

    key: str
    type: str
    default: str
    meaning: str
    value: str
    source: str
    """`leadsman.toml:12`, "default", or "not set"."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is there, or could be."""

    name: str
    """As the file writes it: `[server]`, `[[task]]`."""
    keys: tuple[Key, ...]


def explain(sheet: Sheet, names: Iterable[str] = tuple(EXPLAINED)) -> tuple[Table, ...]:
    """The tables of `names`, or all of both files, with the values of `sheet`, be they right or wrong."""
    return tuple(table for name in names for table in _explain(sheet, name))


def _explain(sheet: Sheet, name: str) -> Iterator[Table]:
    table = EXPLAINED[name]
    raw = sheet.document.get(name)
    match table:
        case One(model):
            yield _table(sheet, model, (name,), f"[{name}]" if name in TABLES else f"[{name}] of {REPOSITORY_FILE}")
        case Many(model):
            for index in range(len(raw)) if isinstance(raw, list) and raw else [-1]:
                yield _table(sheet, model, (name, index), f"[[{name}]]")
        case ByKind(modules):
            there = raw if isinstance(raw, dict) else {}
            used = {key: str(value.get("kind")) for key, value in there.items() if isinstance(value, dict)}
            for key, kind in used.items():
                if kind in modules:
                    yield _table(sheet, table.settings(kind), (name, key), f"[{name}.{key}]")
            for kind in modules:
                if kind not in used.values():
                    yield _table(sheet, table.settings(kind), (name, ""), f"[{name}.<name>] of kind {kind}")


def _table(sheet: Sheet, model: type[BaseModel], path: Path, title: str) -> Table:
    present = _Present(sheet, frozenset(place for place, _ in secrets_in(sheet.document)))
    return Table(title, tuple(present.keys(model, path)))


@dataclass(frozen=True, slots=True)
class _Present:
    """What the file says now; what is a secret in it is not shown."""

    sheet: Sheet
    secrets: frozenset[Path]

    def keys(self, model: type[BaseModel], path: Path, prefix: str = "") -> Iterator[Key]:
        types = model.model_json_schema()["properties"]
        for name, field in model.model_fields.items():
            key = field.alias or name
            inner = table_of(field.annotation)
            if inner is not None:
                for place, named in self._within((*path, key), key, several=get_origin(field.annotation) is not None):
                    yield from self.keys(inner, place, f"{prefix}{named}.")
                continue
            default = REQUIRED if field.is_required() else written(field.get_default(call_default_factory=True))
            value, source = self._now((*path, key), default)
            yield Key(f"{prefix}{key}", type_name(types[key]), default, field.description or "", value, source)

    def _within(self, path: Path, key: str, *, several: bool) -> Iterator[tuple[Path, str]]:
        """(place, name) of the table there; of each one of several, `[[task.verify]]`."""
        if not several:
            yield path, key
            return
        there = self._at(path)
        count = len(there) if isinstance(there, list) else 0
        for index in range(max(1, count)):
            yield (*path, index), f"{key}[{index}]" if count > 1 else key

    def _at(self, path: Path) -> Any:
        """What the file says there; `NOTHING` where it says nothing."""
        value: Any = self.sheet.document
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return NOTHING
        return value

    def _now(self, path: Path, default: str) -> tuple[str, str]:
        """The key's value at the moment, and where it comes from."""
        value = self._at(path)
        if value is NOTHING:
            return ("", "not set") if default == REQUIRED else (default, "default")
        secret = any(place[: len(path)] == path for place in self.secrets)
        return "***" if secret else written(value), f"{self.sheet.file}:{self.sheet.line(path)}"

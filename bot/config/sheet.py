"""A TOML file on its way into settings: its values, its lines, and what is wrong with it so far."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bot.config.places import Path, places
from bot.config.problems import ConfigErrors, Problem, table_and_key
from bot.config.sentences import alternatives
from bot.config.values import on_one_line
from bot.nearest import did_you_mean

T = TypeVar("T", bound=BaseModel)


class Sheet:
    """Reads tables one by one and gathers problems, so that a person hears of all of them at once.

    `lenient`: unknown keys and tables are warnings; the rest of the file counts.
    """

    def __init__(self, data: bytes, file: str, *, lenient: bool = False) -> None:
        """Raises `ConfigErrors` for what is not TOML."""
        self.file = file
        self.lenient = lenient
        self.problems: list[Problem] = []
        self._wrong: list[Path] = []
        self.warnings: list[Problem] = []
        text = self._text(data)
        try:
            self.document: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise ConfigErrors([self._syntax(problem, text)]) from None
        except RecursionError:
            raise ConfigErrors([Problem(file, None, "", "", "is nested too deeply")]) from None
        self.lines = places(text)

    def line(self, path: Path) -> int | None:
        """Where `path` stands, or the nearest thing above it that does."""
        return next((self.lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.lines), None)

    def problem(self, path: Path, what: str) -> None:
        """The first thing said about a place stands; what follows from it would only be noise."""
        self._wrong.append(path)
        self._add(self.problems, path, what)

    def warning(self, path: Path, what: str) -> None:
        self._add(self.warnings, path, what)

    def table(self, model: type[T], path: Path) -> T | None:
        """The table at `path` as settings; one that is not there has its defaults. None where it is wrong."""
        raw = self._at(path)
        if not isinstance(raw, dict):
            self.problem(path, f"must be a table, like {table_and_key(path)[0]}")
            return None
        return self._validated(model, path, raw)

    def tables(self, model: type[T], name: str) -> dict[int, T]:
        """The right ones of `[[name]]`, by their place in the file from 0."""
        raw = self.document.get(name, [])
        if not isinstance(raw, list) or not all(isinstance(item, dict) for item in raw):
            self.problem((name,), f"must be written as [[{name}]], once for each")
            return {}
        read = ((index, self._validated(model, (name, index), item)) for index, item in enumerate(raw))
        return {index: item for index, item in read if item is not None}

    def only(self, known: Mapping[str, object]) -> None:
        """Says which tables nobody knows."""
        for name, value in self.document.items():
            if name not in known:
                is_table = isinstance(value, dict | list)
                what = ("unknown table" if is_table else "unknown key outside of any table") + did_you_mean(name, known)
                self._odd((name,), what)

    def finish(self) -> None:
        """Puts warnings into the order of the file. Raises `ConfigErrors` where something is wrong."""
        for found in (self.problems, self.warnings):
            found.sort(key=lambda problem: problem.line or 0)
        if self.problems:
            raise ConfigErrors(self.problems)

    def _validated(self, model: type[T], path: Path, raw: dict[str, Any]) -> T | None:
        try:
            return model.model_validate(raw)
        except ValidationError as invalid:
            errors = invalid.errors(include_url=False)
        if self.lenient and all(error["type"] == "extra_forbidden" for error in errors):
            return self._validated(model, path, self._without_unknown(model, path, raw, errors))
        for place, found in _by_place(errors, raw).items():
            what = alternatives(found, model)
            if found[0]["type"] == "extra_forbidden":
                self._odd((*path, *place), what)
            elif place or not self._has_problem_in(path):
                self.problem((*path, *place), what)
        return None

    def _has_problem_in(self, path: Path) -> bool:
        """Is a key of this table wrong? Then what does not fit together in it need not be told."""
        return any(place[: len(path)] == path for place in self._wrong)

    def _without_unknown(
        self, model: type[T], path: Path, raw: dict[str, Any], errors: list[ErrorDetails]
    ) -> dict[str, Any]:
        known = deepcopy(raw)
        for place, found in _by_place(errors, raw).items():
            self.warning((*path, *place), alternatives(found, model))
            above: Any = known
            for step in place[:-1]:
                above = above[step]
            del above[place[-1]]
        return known

    def _odd(self, path: Path, what: str) -> None:
        (self.warning if self.lenient else self.problem)(path, what)

    def _add(self, to: list[Problem], path: Path, what: str) -> None:
        table, key = table_and_key(path)
        if path[:1] == path and not isinstance(self.document.get(str(path[0])), dict | list | None):
            table, key = "", str(path[0])
        line = self.line(path)
        if not any((known.line, known.table, known.key) == (line, table, key) for known in to):
            to.append(Problem(self.file, line, on_one_line(table), on_one_line(key), on_one_line(what)))

    def _at(self, path: Path) -> Any:
        value: Any = self.document
        for step in path:
            value = value.get(step, {})
        return value

    def _text(self, data: bytes) -> str:
        try:
            return data.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as problem:
            line = data.count(b"\n", 0, problem.start) + 1
            raise ConfigErrors([Problem(self.file, line, "", "", "is not UTF-8 text")]) from None

    def _syntax(self, problem: tomllib.TOMLDecodeError, text: str) -> Problem:
        told = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(problem), re.DOTALL)
        if told is None:
            return Problem(self.file, None, "", "", f"is not TOML: {problem}")
        line = int(told[2]) if told[2] else text.count("\n") + 1
        return Problem(self.file, line, "", "", f"is not TOML: {told[1][:1].lower()}{told[1][1:]}")


def _by_place(errors: list[ErrorDetails], raw: object) -> dict[Path, list[ErrorDetails]]:
    """The errors by the place in the file they are about.

    pydantic's own location goes on behind it where a value may be of several types: `("passes", "literal['all']")`.
    """
    by_place: dict[Path, list[ErrorDetails]] = {}
    for error in errors:
        place: Path = ()
        value: Any = raw
        for step in error["loc"]:
            there = step in value if isinstance(value, dict) else isinstance(value, list) and isinstance(step, int)
            if not there and error["type"] != "missing":
                break
            place = (*place, step)
            value = value[step] if there else None
        by_place.setdefault(place, []).append(error)
    return by_place

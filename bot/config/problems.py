"""What is wrong with a configuration file, said with file, line, table, key and the nearest known one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bot.config.places import Path
from bot.errors import UserError


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or in a repository's file only odd. `line` counts from 1; None = of the whole file."""

    file: str
    line: int | None
    table: str
    """As the file writes it, `[server]` or `[[task]]`; empty for what stands in no table."""
    key: str
    what: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:" if self.line else f"{self.file}:"
        subject = " ".join(part for part in (self.table, self.key) if part)
        return f"{where} {subject}: {self.what}" if subject else f"{where} {self.what}"


class ConfigErrors(UserError):
    """A file that is refused whole: its text lists every problem, one a line. Exit code 2."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        end = f"{count}: nothing of this file is used until it is right. `leadsman config explain` tells every key."
        super().__init__("\n".join([*map(str, self.problems), end]), code=2)


def table_and_key(path: Path) -> tuple[str, str]:
    """How people name a path: `("task", 0, "verify", 1, "run")` is `[[task.verify]]` and `run`."""
    if not path:
        return "", ""
    cut = 2 if path[0] in ("forges", "trackers") else 1
    for index, step in enumerate(path):
        if isinstance(step, int) and (index == 1 or isinstance(path[-1 if index + 1 == len(path) else index + 1], str)):
            cut = index + 1
    head, rest = path[:cut], path[cut:]
    name = ".".join(step for step in head if isinstance(step, str))
    table = f"[[{name}]]" if any(isinstance(step, int) for step in head) else f"[{name}]"
    key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)
    return table, key.removeprefix(".")

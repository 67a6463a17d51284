"""What the configuration names and a reload may take away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from bot.errors import Unavailable

T = TypeVar("T")


class Configured(dict[str, T]):
    """The clients of `[<table>.*]`, by name. What is asked of one that a reload took away waits for it to come back."""

    def __init__(self, table: str, clients: Mapping[str, T]) -> None:
        super().__init__(clients)
        self._table = table

    def __missing__(self, name: str) -> T:
        raise Unavailable(f"[{self._table}.{name}] is not in the configuration any more.")

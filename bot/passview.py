"""Who holds the host's CPU passes now, for those who only look."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from bot.cpus import host_size
from bot.pool import PoolUnusable, open_pool

_LABEL = re.compile(r"\blabel=(.*)")
SHOWN = 5


class Passes(NamedTuple):
    """The pool: its size, and of each held pass what its holder wrote. `unusable` says why there is none to ask."""

    size: int
    holders: tuple[str, ...]
    unusable: str = ""

    def __str__(self) -> str:
        """One line: how many are held, and by whom."""
        if self.unusable:
            return f"CPU passes: unavailable, {self.unusable}"
        by = f" by {', '.join([*self.labels, *self.more])}" if self.holders else ""
        return f"CPU passes: {len(self.holders)} of {self.size} held{by}"

    @property
    def labels(self) -> tuple[str, ...]:
        """Whose the first ones are."""
        return tuple(_label(holder) for holder in self.holders[:SHOWN])

    @property
    def more(self) -> tuple[str, ...]:
        """How many others there are, in words; nothing where there are none."""
        return (f"and {len(self.holders) - SHOWN} more",) if len(self.holders) > SHOWN else ()


def passes(environ: Mapping[str, str]) -> Passes:
    """What is held now. Makes nothing that is not there, but for the pool's folder."""
    try:
        pool = open_pool(environ, host_size())
        holders = tuple(line for _, line in pool.holders())
    except PoolUnusable as problem:
        return Passes(0, (), str(problem))
    return Passes(pool.recorded_size() or pool.size, holders)


def _label(holder: str) -> str:
    found = _LABEL.search(holder)
    return found[1] if found and found[1] else "somebody"

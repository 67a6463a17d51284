"""A table: ruled and coloured for a person at a terminal, plain columns in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

SPACE = 3
"""Around a ruled column."""


def show(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints it to stdout. Cells are text as it is: nothing in them is read as markup."""
    if sys.stdout.isatty():
        _ruled(headings, rows)
    else:
        print(plain(headings, rows))


def plain(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns two blanks apart, without blanks at the ends of lines."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _ruled(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    console = Console()
    whole, least = _widths([headings, *rows])
    if sum(least) + SPACE * len(headings) > console.width:
        print(plain(headings, rows))  # a terminal breaks its lines, and the id of a run is not cut off
        return
    columns = [
        Column(heading, overflow="fold", no_wrap=whole[place] == least[place]) for place, heading in enumerate(headings)
    ]
    table = Table(*columns, box=SIMPLE_HEAD, header_style="bold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _widths(lines: Sequence[Sequence[str]]) -> tuple[list[int], list[int]]:
    """Of each column: its longest cell, and its longest word."""
    columns = list(zip(*lines, strict=True))
    whole = [max(map(len, cells)) for cells in columns]
    return whole, [max(len(word) for cell in cells for word in (cell.split() or [""])) for cells in columns]

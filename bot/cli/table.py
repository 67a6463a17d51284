"""A table: ruled and coloured for a person at a terminal, plain columns in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence


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
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings, box=SIMPLE_HEAD, header_style="bold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)

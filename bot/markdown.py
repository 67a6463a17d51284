"""Puts text from outside into Markdown so that it stays text: no markup, no mention, no way out of its place."""

from __future__ import annotations

import re

from bot.invisible import made_visible

_MARKUP = re.compile(r"([\\`*_\[\]|~$])")
_AT_THE_START = re.compile(r"^(\d{0,9})([#+\-=.)])")
"""What makes a heading, a rule or a list of a line that starts with it."""
_RUNS_OF_BACKTICKS = re.compile(r"`+")
_BARS = re.compile(r"(\\*)\|")
_REFERENCE = re.compile(r"(?<=[@#])(?=[\w-])")
_SPACES = re.compile(r"\s+")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_BREAK = "\u200b"
"""Stands behind `@` and `#`: forges look for mentions in the text that was rendered, where a backslash is gone."""


def inline(text: str) -> str:
    """`text` as one line of plain words: nothing in it is markup, a link, HTML, a mention or a reference."""
    words = _SPACES.sub(" ", made_visible(text, keep="\n\r\t")).strip()
    words = _AT_THE_START.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", words))
    return _REFERENCE.sub(_BREAK, words.translate(_ENTITIES))


def code(text: str) -> str:
    """`text` as a code span on one line, whatever backticks it holds. Forges look for no mentions in there."""
    words = _SPACES.sub(" ", made_visible(text, keep="\n\r\t")).strip() or " "
    fence = "`" * (_longest_run(words) + 1)
    room = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{room}{words}{room}{fence}"


def cell(markdown: str) -> str:
    """Markdown of one line for a cell of a table: there a bar ends the cell, even inside of a code span."""
    return _BARS.sub(lambda bar: bar[0] if len(bar[1]) % 2 else f"{bar[1]}\\|", markdown)


def block(text: str, *, language: str = "") -> str:
    """`text` as a fenced code block; the fence is longer than any that `text` holds. `language` is our own word."""
    lines = made_visible(text.replace("\r\n", "\n").replace("\r", "\n"), keep="\n\t").rstrip("\n")
    fence = "`" * max(3, _longest_run(lines) + 1)
    return f"{fence}{language}\n{lines}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _RUNS_OF_BACKTICKS.findall(text)), default=0)

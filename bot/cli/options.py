"""Reads the words of a quick command, in a tenth of the time that a parser takes to be imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from bot.errors import UsageError

COMMON = {"--store": "DIR"}
"""What every command that follows a run takes, before its verb or behind it."""


class Options(NamedTuple):
    """What a command was called with."""

    flags: frozenset[str]
    values: dict[str, str]
    words: tuple[str, ...]
    behind: tuple[str, ...] | None
    """What stood behind `--`, untouched; None where there was none."""

    @property
    def store(self) -> Path:
        """Where the runs are: `--store`, else `runs` in the home."""
        given = self.values.get("--store")
        if given is not None:
            return Path(given).absolute()
        from bot import home

        return home.resolve(None, os.environ) / "runs"

    def seconds(self, name: str) -> float | None:
        """A number of seconds, 0 or more; raises `UsageError` for anything else."""
        text = self.values.get(name)
        if text is None:
            return None
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number < 1e9:
            raise UsageError(f"{name} takes a number of seconds, not {text!r}. For example: `{name} 30`.")
        return number


def read(
    argv: Sequence[str],
    usage: str,
    *,
    flags: Sequence[str] = (),
    values: Sequence[str] = (),
    words: tuple[int, int],
    text: bool = False,
) -> Options | None:
    """Takes a call apart; None where it asked for help, which is then printed. `words`: how few and how many. `text`:
    behind the first word nothing is an option.

    Raises `UsageError`.
    """
    call = f"`{usage.splitlines()[0].removeprefix('Usage: ')}`"
    found: set[str] = set()
    taken: dict[str, str] = {}
    plain: list[str] = []
    behind: tuple[str, ...] | None = None
    rest = iter(argv)
    for word in rest:
        name, has_value, value = word.partition("=")
        if text and plain:
            plain.append(word)
        elif word == "--":
            behind = tuple(rest)
        elif word in ("-h", "--help"):
            sys.stdout.write(usage)
            return None
        elif name in values or name in COMMON:
            taken[name] = value if has_value else next(rest, "")
            if not taken[name]:
                raise UsageError(f"{name} needs a value: {call}.")
        elif word in flags:
            found.add(word)
        elif word.startswith("-") and word != "-":
            raise UsageError(_unknown(word, (*flags, *values, *COMMON), call))
        else:
            plain.append(word)
    if not words[0] <= len(plain) <= words[1]:
        wrong = "A word is missing here" if len(plain) < words[0] else f'"{plain[words[1]]}" is a word too many here'
        raise UsageError(printable(f"{wrong}. It is {call}."))
    return Options(frozenset(found), taken, tuple(plain), behind)


def _unknown(word: str, known: Sequence[str], call: str) -> str:
    from bot.nearest import did_you_mean

    return f"There is no option {word} here{did_you_mean(word, known) or '.'} It is {call}."


def printable(text: object) -> str:
    """`text` for one line of output: control characters, and bytes that are no text, are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def say(text: str, stream: TextIO | None = None) -> None:
    """Prints lines (default: to stdout), also where the terminal has no letter for something in them."""
    stream = stream or sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"  # there may be no output to write to
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)

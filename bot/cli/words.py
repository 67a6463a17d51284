"""The words of a call: what every command takes, the verb, and the verb's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bot.errors import UsageError

_VALUES = {"--home": "DIR", "--config": "FILE"}
_NAMED = {**_VALUES, "--store": "DIR"}
_TEXTS = ("say",)
"""Verbs whose words, from the first one that is no option, are a text: whatever stands there is said."""
_FLAGS = {"-v": "verbose", "--verbose": "verbose", "--version": "version"}


class Words(NamedTuple):
    """A call, taken apart."""

    home: str | None = None
    config: str | None = None
    verbose: bool = False
    version: bool = False
    help: bool = False
    """`--help` before a verb; behind one it is the verb's own."""
    verb: str | None = None
    rest: tuple[str, ...] = ()
    """What is the verb's own; `--json` and `--store DIR` from before the verb come first in it."""


def read(argv: Sequence[str]) -> Words:
    """Takes the options that every command has from before or after the verb; from `--` on everything is the verb's.

    Raises `UsageError`.
    """
    taken: dict[str, str | bool] = {}
    rest: list[str] = []
    verb: str | None = None
    text = False
    words = iter(argv)
    for word in words:
        name, has_value, value = word.partition("=")
        if text:
            rest.append(word)
        elif word == "--":
            rest += [word, *words]
        elif name in _VALUES:
            taken[name[2:]] = _value(name, value if has_value else next(words, ""))
        elif word in _FLAGS:
            taken[_FLAGS[word]] = True
        elif verb is not None or word == "--json":
            rest.append(word)
            text = verb in _TEXTS and not word.startswith("-")
        elif name == "--store":
            rest += [name, _value(name, value if has_value else next(words, ""))]
        elif word in ("-h", "--help"):
            taken["help"] = True
        else:
            verb = _verb(word)
    return Words(**taken, verb=verb, rest=tuple(rest))  # type: ignore[arg-type] # each name has its own kind of value


def _value(name: str, value: str) -> str:
    if not value:
        raise UsageError(f"{name} needs a value: `{name} {_NAMED[name]}`.")
    return value


def _verb(word: str) -> str:
    if word.startswith("-"):
        raise UsageError(f"There is no option {word} before a command. `leadsman --help` lists them.")
    return word

"""A command's words, as a shell would split them and without its expansions, sorted by what the command takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.nearest import nearest
from handlers.misread import Duplicate, MissingValue, Problem, UnclosedQuote, UnknownArgument

_PAIR = re.compile(r"(?:--)?([A-Za-z][A-Za-z0-9_-]*)=(.*)", re.DOTALL)
_ODD_BACKSLASHES = re.compile(r"(?<!\\)(?:\\\\)*\\$")


@dataclass(frozen=True, slots=True)
class Spec:
    """What a command takes: words by their place, then `key=value` (or `--key=value`).

    `more`: any further words, and all behind `--`, are taken as they are. `free`: the whole rest is one text.
    """

    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    more: bool = False
    free: bool = False


@dataclass(frozen=True, slots=True)
class Arguments:
    """`words` stood in front of `--`, `tail` behind it. With a free text `words` is that text, or nothing."""

    words: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    tail: tuple[str, ...] = ()

    def word(self, place: int) -> str | None:
        return self.words[place] if place < len(self.words) else None

    def as_written(self, **values: str) -> str:
        """The arguments as a line that reads as the same again, with other values for some keys."""
        pairs = [f"{key}={shlex.quote(value)}" for key, value in {**self.values, **values}.items()]
        return " ".join(
            [*map(shlex.quote, self.words), *pairs, *(["--", *map(shlex.quote, self.tail)] if self.tail else [])]
        )


def parse(rest: str, spec: Spec) -> Arguments | Problem:
    """Sorts what stands behind a command's name. All but `free` text is split first."""
    words = _split(rest)
    if spec.free:
        # An apostrophe in a sentence is no quote: what can't be split is taken as it stands.
        text = rest.strip(" \t") if words is None else " ".join(words)
        return Arguments((text,) if text else ())
    if words is None:
        return UnclosedQuote()
    ahead, tail = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    if tail and not spec.more:
        return UnknownArgument(tail[0], None)
    return _sorted(ahead, tuple(tail), spec)


def _sorted(ahead: list[str], tail: tuple[str, ...], spec: Spec) -> Arguments | Problem:
    plain: list[str] = []
    values: dict[str, str] = {}
    for word in ahead:
        pair = _PAIR.fullmatch(word)
        key = (pair[1] if pair else word.removeprefix("--")).lower()
        if pair is None and (word == "-" or not word.startswith("-")):
            plain.append(word)
        elif key not in spec.keys:
            return UnknownArgument(pair[1] if pair else word, nearest(key, spec.keys))
        elif key in values:
            return Duplicate(key)
        elif pair is None or not pair[2]:
            return MissingValue(key)
        else:
            values[key] = pair[2]
    if len(plain) < len(spec.needed):
        return MissingValue(spec.needed[len(plain)])
    places = len(spec.needed) + len(spec.optional)
    if len(plain) > places and not spec.more:
        return UnknownArgument(plain[places], nearest(plain[places], spec.keys))
    return Arguments(tuple(plain), values, tail)


def _split(rest: str) -> list[str] | None:
    """The words, or None where a quote stays open."""
    # A backslash at a line's end is Markdown's line break: the reader does not see it.
    text = rest[:-1] if _ODD_BACKSLASHES.search(rest) else rest
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    try:
        return list(lexer)
    except ValueError:
        return None

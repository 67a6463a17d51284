"""Values as the file writes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath


def written(value: object) -> str:
    """A value as TOML writes it, on one line; None, which TOML has no word for, is `unset`."""
    match value:
        case None:
            return "unset"
        case bool():
            return str(value).lower()
        case str() | PurePath():
            return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
        case Mapping():
            return "{" + ", ".join(f"{key} = {written(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(written, value)) + "]"
        case _:
            return str(value)


def shown(value: object) -> str:
    """A wrong value, named or repeated, and not at length."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    text = written(value)
    return text if len(text) <= 60 else f"{text[:56]}..."


def on_one_line(text: str) -> str:
    """The text with everything spelled out that moves a terminal's cursor, or turns the direction of what follows."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)

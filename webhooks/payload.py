"""JSON from outside, taken apart with care: what is missing or of another type is named, never stumbled over."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from bot.model import Sha

Json = dict[str, object]
Kind = TypeVar("Kind")

_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Malformed:
    """A delivery that is not what its source promises: where it is off, for the log and for whoever looks it up."""

    reason: str


class Misshapen(Exception):
    """A payload that is not as its source describes it. Goes no further than the source's `read`."""


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def parse(body: bytes) -> Json:
    """The JSON object that `body` is, in UTF-8. Raises `Misshapen` for other JSON, NaN, endless nesting."""
    try:
        found = _DECODER.decode(body.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise Misshapen(f"not JSON: {type(problem).__name__}") from problem
    if not isinstance(found, dict):
        raise Misshapen(f"a JSON object is needed, not {type(found).__name__}")
    return found


def repository_name(text: object) -> str | None:
    """`text` where it is an `owner/name` that may become part of a path or a URL; else None."""
    if not isinstance(text, str) or _REPOSITORY.fullmatch(text) is None:
        return None
    return None if {".", ".."} & set(text.split("/")) else text


def clean(text: str) -> str:
    """`text` as it can be written anywhere: UTF-8 has no half characters (`\\ud800` in JSON), PostgreSQL no NUL."""
    return _SURROGATES.sub("\ufffd", text).replace("\0", "\ufffd")


class Fields:
    """An object of a payload, and how it was reached, so that what is off can be named (`comment.user.login`)."""

    def __init__(self, data: Json, path: str = "") -> None:
        self._data = data
        self._path = path

    def __contains__(self, name: str) -> bool:
        return self._data.get(name) is not None

    def _get(self, name: str, kind: type[Kind]) -> Kind:
        value = self._data.get(name)
        if not isinstance(value, kind) or type(value) is not kind:  # True would be an int
            found = "missing" if name not in self._data else f"{type(value).__name__}, not {kind.__name__}"
            raise Misshapen(f"{self._path}{name} is {found}")
        return value

    def at(self, name: str) -> Fields:
        return Fields(self._get(name, dict), f"{self._path}{name}.")

    def text(self, name: str) -> str:
        """Any text, without half characters and NULs."""
        return clean(self._get(name, str))

    def word(self, name: str) -> str:
        """A text that names something: not empty, on one line, 255 characters at most."""
        text = self.text(name)
        if not 0 < len(text) <= 255 or not text.isprintable():
            raise Misshapen(f"{self._path}{name} is not a name")
        return text

    def flag(self, name: str) -> bool:
        return self._get(name, bool)

    def number(self, name: str) -> int:
        """A positive number of at most 63 bits: what databases hold as a key."""
        value = self._get(name, int)
        if not 0 < value <= _LARGEST:
            raise Misshapen(f"{self._path}{name} is out of bounds")
        return value

    def repository(self, name: str) -> str:
        found = repository_name(self._data.get(name))
        if found is None:
            raise Misshapen(f"{self._path}{name} is not owner/name")
        return found

    def sha(self, name: str) -> Sha:
        text = self.text(name)
        if _SHA.fullmatch(text) is None:
            raise Misshapen(f"{self._path}{name} is not a full object id")
        return Sha(text)

    def sha_or_none(self, name: str) -> Sha | None:
        """The object id, or None where git's zeros stand for "there is none"."""
        sha = self.sha(name)
        return sha if sha.strip("0") else None

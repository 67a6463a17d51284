"""Writes the domain's values as JSON and reads them back, checked against their types."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

Value = TypeVar("Value")


class Unreadable(Exception):
    """Stored JSON that is not what its type says. Whoever reads it must treat the thing as taken, not as free."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def dump(kind: Any, value: object) -> str:
    """`value`, of type `kind`, as JSON text."""
    return _adapter(kind).dump_json(value, by_alias=True).decode()


def plain(kind: Any, value: object) -> Any:
    """`value`, of type `kind`, as what JSON is made of; texts are not looked at, and may not be fit for UTF-8."""
    return _adapter(kind).dump_python(value, mode="json", by_alias=True)


def load(kind: type[Value], text: str | bytes) -> Value:
    """The value of type `kind` that `text` holds; raises `Unreadable`."""
    return load_any(kind, text)  # type: ignore[no-any-return]


def load_any(kind: Any, text: str | bytes) -> Any:
    """As `load`, for unions and aliases, which are no `type`."""
    try:
        return _adapter(kind).validate_json(text)
    except ValidationError as problem:
        raise Unreadable(str(problem)) from problem

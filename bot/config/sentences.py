"""What pydantic found, in the words of the person who wrote the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from bot.config.values import shown
from bot.nearest import did_you_mean
from bot.settings import IN_WORDS

_WORDS = r"(^|_)(token|secret|password|passwd|api_?key|access_key|private_key)s?"
HOLDS_SECRET = re.compile(f"{_WORDS}$", re.IGNORECASE)
"""Keys that would hold a secret itself: there are none."""
NEAR_SECRET = re.compile(f"{_WORDS}(_env|_file)?$", re.IGNORECASE)
"""Also those that say where one is: what stands behind them by mistake is never repeated."""

_WANTED: Mapping[str, str] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table",
    "mapping_type": "a table",
    "model_type": "a table",
}
_BOUND: Mapping[str, tuple[str, str]] = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("above", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("below", "lt"),
}


def sentence(error: ErrorDetails, model: type[BaseModel]) -> str:
    """What is wrong at the error's place, without the place: `must be a whole number, not "four"`."""
    kind, context = error["type"], error.get("ctx", {})
    but = _but(error)
    match kind:
        case "extra_forbidden":
            what = _unknown(str(error["loc"][-1]), known_keys(model, error["loc"][:-1]))
        case "missing":
            what = f"is missing ({_description(model, error['loc'])})"
        case "value_error":
            what = str(context["error"])
        case "literal_error":
            known = re.findall(r"'([^']*)'", context["expected"])
            what = f"must be {_or(known)}{but}{did_you_mean(str(error['input']), known)}"
        case "string_pattern_mismatch":
            what = f"must be {IN_WORDS[context['pattern']]}{but}"
        case "too_short" | "string_too_short":
            what = "must not be empty"
        case "string_too_long":
            what = f"must be at most {context['max_length']} characters long"
        case _ if kind in _BOUND:
            words, name = _BOUND[kind]
            what = f"must be {words} {context[name]}{but}"
        case _ if kind in _WANTED:
            what = f"must be {_WANTED[kind]}{but}"
        case _:
            what = error["msg"][:1].lower() + error["msg"][1:]
    return what


def alternatives(errors: list[ErrorDetails], model: type[BaseModel]) -> str:
    """One sentence for one value that several types were tried on."""
    if len(errors) == 1:
        return sentence(errors[0], model)
    # A value of the right type that is out of bounds is told its bounds, not the other types it could have had.
    bounds = [error for error in errors if error["type"] in _BOUND]
    if bounds:
        return sentence(bounds[0], model)
    wanted = [
        re.sub(r", (not|did you mean) .*", "", sentence(error, model)).removeprefix("must be ") for error in errors
    ]
    return f"must be {_or(wanted)}{_but(errors[0])}"


def known_keys(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The keys of the table at `path` inside a table of `model`, as the file spells them."""
    inner: type[BaseModel] | None = model
    for step in path:
        if isinstance(step, str) and inner is not None:
            field = _field(inner, step)
            inner = table_of(field.annotation) if field else None
    return [] if inner is None else [field.alias or name for name, field in inner.model_fields.items()]


def table_of(annotation: Any) -> type[BaseModel] | None:
    """The settings class inside an annotation such as `tuple[Check, ...]`, or None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := table_of(part))), None)


def _unknown(key: str, known: list[str]) -> str:
    if not HOLDS_SECRET.search(key):
        return f"unknown key{did_you_mean(key, known)}"
    singular = key.removesuffix("s")
    instead = [name for name in known if name.startswith(singular)] or [f"{singular}_env"]
    return (
        "a secret is never written into this file. Put it into an environment variable, and name that one: "
        f'{instead[0]} = "LEADSMAN_{singular.upper()}"'
    )


def _field(model: type[BaseModel], key: str) -> FieldInfo | None:
    return next((field for name, field in model.model_fields.items() if key == (field.alias or name)), None)


def _description(model: type[BaseModel], path: tuple[int | str, ...]) -> str:
    inner: type[BaseModel] | None = model
    field: FieldInfo | None = None
    for step in path:
        if isinstance(step, str) and inner is not None:
            field = _field(inner, step)
            inner = table_of(field.annotation) if field else None
    return (field and field.description) or "it has no default"


def _but(error: ErrorDetails) -> str:
    """What stands there instead, unless it may be a secret."""
    keys = [step for step in error["loc"] if isinstance(step, str)]
    return "" if any(NEAR_SECRET.search(key) for key in keys) else f", not {shown(error['input'])}"


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"

"""The shape of the file: as a JSON Schema for editors, and a key's type in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bot.config.tables import TABLES, ByKind, Many, One
from bot.config.values import written


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the server's file."""
    models = [model for name in TABLES for model in _models(name)]
    references, definitions = models_json_schema([(model, "validation") for model in models])

    def reference(model: type[BaseModel]) -> Mapping[str, Any]:
        return references[(model, "validation")]

    def schema(table: One | Many | ByKind) -> Mapping[str, Any]:
        match table:
            case One(model):
                return reference(model)
            case Many(model):
                return {"type": "array", "items": reference(model)}
            case ByKind(modules):
                kinds = [reference(table.settings(kind)) for kind in modules]
                return {"type": "object", "additionalProperties": {"oneOf": kinds}}

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "leadsman.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: schema(table) for name, table in TABLES.items()},
        **definitions,
    }


def _models(name: str) -> list[type[BaseModel]]:
    table = TABLES[name]
    return [table.settings(kind) for kind in table.modules] if isinstance(table, ByKind) else [table.settings]


def type_name(schema: Mapping[str, Any]) -> str:
    """The type that the JSON Schema of a key means, in words: `whole number, 1 to 100`."""
    match schema:
        case {"anyOf": list(several)}:
            return " or ".join(type_name(one) for one in several if one.get("type") != "null")
        case {"const": value}:
            return written(value)
        case {"enum": list(values)}:
            return " | ".join(map(written, values))
        case {"type": "array", "items": items}:
            return f"list of {type_name(items)}"
        case {"type": "object", "additionalProperties": items}:
            return f"table of {type_name(items)}"
        case {"type": "integer" | "number" as kind}:
            return f"{'whole number' if kind == 'integer' else 'number'}{_bounds(schema)}"
        case {"type": "boolean"}:
            return "true | false"
        case _:
            return "text"


def _bounds(schema: Mapping[str, Any]) -> str:
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        return f", above {schema['exclusiveMinimum']}" + (f", up to {highest}" if highest is not None else "")
    if lowest is None:
        return ""
    return f", {lowest} to {highest}" if highest is not None else f", from {lowest}"

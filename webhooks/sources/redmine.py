"""Redmine's deliveries: of Redmine 7 and later, signed, and of the older plugin, which signs nothing.

Both mean no more than "ticket N changed": neither says which notes are private. The ticket is read from Redmine.
https://www.redmine.org/projects/redmine/wiki/Webhooks
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256

from bot.model import Ignored, LookAgain
from webhooks.payload import Fields, Json, Malformed, Misshapen, parse

PLUGIN = {"opened": "issue.created", "updated": "issue.updated"}
"""`payload.action` of the plugin -> the event as Redmine names it."""
WANTED = frozenset(PLUGIN.values())


def delivery(headers: Mapping[str, str], body: bytes) -> str:  # noqa: ARG001 (other sources need the headers)
    """Redmine gives none: the same bytes are the same delivery."""
    return sha256(body).hexdigest()


def event(headers: Mapping[str, str], payload: Json) -> str:  # noqa: ARG001
    told = payload.get("type")
    if isinstance(told, str):
        return told
    inner = payload.get("payload")
    action = inner.get("action") if isinstance(inner, dict) else None
    return PLUGIN.get(action, f"issue.{action}") if isinstance(action, str) else ""


def named(delivery: str, event: str) -> dict[str, str]:  # noqa: ARG001
    """It has no headers for them."""
    return {}


def repository(payload: Json) -> str | None:  # noqa: ARG001
    """A ticket's project is no repository; which one it is for, the configuration says."""
    return None


def unwanted(event: str, payload: Json) -> Ignored | None:  # noqa: ARG001
    return None if event in WANTED else Ignored(f"{event[:40]!a} asks nothing of the bot")


def look_at(body: bytes) -> LookAgain | Ignored | Malformed:
    """What one delivery is about, for who trusts it: the ticket, and the entry of its journal that is told of."""
    try:
        payload = parse(body)
        told = event({}, payload)
        if (why := unwanted(told, payload)) is not None:
            return why
        fields = Fields(payload)
        holder = fields.at("data") if "data" in fields else fields.at("payload")
        number = holder.at("issue").number("id")
        if "journal" in holder:
            return LookAgain(number, entry=str(holder.at("journal").number("id")))
        return LookAgain(number, entry="") if told == "issue.created" else Ignored("it names no journal entry")
    except Misshapen as problem:
        return Malformed(str(problem))


def read(headers: Mapping[str, str], body: bytes, *, source: str, at: datetime) -> LookAgain | Ignored | Malformed:  # noqa: ARG001
    try:
        payload = parse(body)
        if (why := unwanted(event(headers, payload), payload)) is not None:
            return why
        fields = Fields(payload)
        holder = fields.at("data") if "data" in fields else fields.at("payload")
        return LookAgain(holder.at("issue").number("id"))
    except Misshapen as problem:
        return Malformed(str(problem))

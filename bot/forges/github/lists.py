"""GitHub's lists as they are, page by page: an object of PyGithub's asks again for what a list leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from github.Requester import Requester

from bot.forges.github.values import GHOST
from bot.model import Actor

Json = dict[str, Any]


def pages(
    requester: Requester, url: str, parameters: Json, condition: dict[str, str] | None = None
) -> Iterator[tuple[dict[str, str], Any]]:
    """Headers and content of each page; content None: it is as it was (only the first one can be)."""
    headers, page = requester.requestJsonAndCheck("GET", url, parameters, condition)
    yield headers, page
    while (following := _next(headers)) is not None:
        headers, page = requester.requestJsonAndCheck("GET", following)
        yield headers, page


def _next(headers: dict[str, str]) -> str | None:
    for link in headers.get("link", "").split(","):
        address, _, rel = link.partition(";")
        if rel.strip() == 'rel="next"':
            return address.strip().removeprefix("<").removesuffix(">")
    return None


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def actor(user: Json | None) -> Actor:
    return GHOST if user is None else Actor(str(user["login"]), f"{user['id']:d}", is_bot=user["type"] == "Bot")

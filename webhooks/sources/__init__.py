"""Who may send deliveries, how to tell them apart, and how each signs.

A new source is one module here and one line in `SOURCES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.model import Event, Ignored, LookAgain
from webhooks.payload import Json, Malformed
from webhooks.signature import Key, verify
from webhooks.sources import github, local, redmine

Headers = Mapping[str, str]
"""A request's headers, names in lower case."""


class Source(Protocol):
    """What a module of this package has. Nothing in it touches the network, a file or a clock."""

    def delivery(self, headers: Headers, body: bytes) -> str:
        """The source's id of this delivery, the same when it is sent again; empty where it gives none."""

    def event(self, headers: Headers, payload: Json) -> str:
        """The name of the event; empty where it gives none."""

    def named(self, delivery: str, event: str) -> dict[str, str]:
        """The headers that say so: for an event that came by another way than the door."""

    def repository(self, payload: Json) -> str | None:
        """`owner/name` of what it is about, where it is about a repository."""

    def unwanted(self, event: str, payload: Json) -> Ignored | None:
        """Why an event of this name (and action) asks nothing of the bot; None where it may."""

    def read(
        self, headers: Headers, body: bytes, *, source: str, at: datetime
    ) -> Event | LookAgain | Ignored | Malformed:
        """What happened. `source` names the table it was sent to, `at` is when it came."""


SOURCES: Mapping[str, Source] = {"github": github, "local": local, "redmine": redmine}
"""kind of a forge's or tracker's table -> module."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How a kind of sender is told by its headers: `families` start them; `signature` is `prefix` and the HMAC."""

    kind: str
    families: tuple[str, ...]
    signature: str
    prefix: str


MARKS = (
    Mark("forgejo", ("x-forgejo-",), "x-forgejo-signature", ""),
    Mark("gitea", ("x-gitea-",), "x-gitea-signature", ""),
    Mark("github", ("x-github-", "x-hub-signature-256"), "x-hub-signature-256", "sha256="),
    Mark("redmine", ("x-redmine-",), "x-redmine-signature-256", "sha256="),
    Mark("local", ("x-leadsman-",), "x-leadsman-signature-256", "sha256="),
)
"""In this order: Forgejo also sends Gitea's and GitHub's headers, Gitea also GitHub's."""

SIGNATURES = frozenset(mark.signature for mark in MARKS)


def detect(headers: Iterable[str]) -> str | None:
    """The kind of sender that these header names give away, known to us or not; None for a stranger."""
    names = tuple(headers)
    for mark in MARKS:
        if any(name.startswith(mark.families) for name in names):
            return mark.kind
    return None


def signs(kind: str, headers: Headers) -> bool:
    """Whether the sender is of `kind` and brings that kind's signature, right or wrong."""
    return detect(headers) == kind and any(mark.kind == kind and mark.signature in headers for mark in MARKS)


def signed_by(kind: str, headers: Headers, body: bytes, keys: Iterable[Key]) -> tuple[Key, ...]:
    """The keys that signed this body as a delivery of `kind`; none = refuse it.

    Every signature that is there must be good: a bad one is never rescued by another header's.
    """
    if not signs(kind, headers):
        return ()
    left = tuple(keys)
    for mark in MARKS:
        if mark.signature in headers:
            left = verify(body, headers[mark.signature], left, prefix=mark.prefix)
    return left

"""HMAC-SHA-256 over the raw bytes of a body: the one proof of who sent a delivery."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from bot.secret import Secret


@dataclass(frozen=True, slots=True)
class Key:
    """A live secret of one source. While secrets rotate there are several.

    `repository`: where given, what it signs counts for that `owner/name` alone.
    """

    secret: Secret
    repository: str | None = None

    def counts_for(self, repository: str | None) -> bool:
        """Names are compared as forges do, without regard to case."""
        if self.repository is None or repository is None:
            return self.repository is None
        return self.repository.casefold() == repository.casefold()


def sign(body: bytes, secret: Secret) -> str:
    """The signature of `body`: 64 lower-case hex digits."""
    return hmac.digest(secret.reveal().encode(), body, "sha256").hex()


def verify(body: bytes, header: str, keys: Iterable[Key], *, prefix: str = "sha256=") -> tuple[Key, ...]:
    """The keys under which `header` is the signature of `body`; none = it is not signed by anyone we know.

    Every key is tried, each in constant time, so that the time taken tells neither how much of a signature was right
    nor which key it was made with. https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    """
    given = header.encode("latin-1", "replace")  # compare_digest refuses text that is not ASCII
    return tuple(key for key in keys if hmac.compare_digest(given, f"{prefix}{sign(body, key.secret)}".encode()))

"""Where a repository is fetched from and pushed to, and what git shows there."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlsplit

PROTOCOLS = frozenset({"file", "http", "https", "ssh"})

_USERINFO = re.compile(r"://[^/\s'\"]*@")


class Revealable(Protocol):
    """A secret: its text comes out only where it is asked for."""

    def reveal(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository elsewhere: a URL without credentials (or the path of a folder), and what opens it.

    ValueError for a URL that carries a credential, that git could read as an option, or whose protocol is not one of
    `PROTOCOLS` (`ext::` runs programs).
    """

    url: str
    username: str = ""
    token: Revealable | None = None

    def __post_init__(self) -> None:
        if not self.url or self.url.startswith("-") or not self.url.isprintable():
            raise ValueError("The URL of a repository must not be empty, begin with '-', or hold control characters.")
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"Repositories are reached by {', '.join(sorted(PROTOCOLS))}, not {self.protocol}.")
        if self.protocol in {"http", "https"} and "@" in urlsplit(self.url).netloc:
            raise ValueError(
                "The URL of a repository must not hold a user name or token: they would end in its config."
            )

    @property
    def protocol(self) -> str:
        """The name git itself gives the transport: the value that `GIT_ALLOW_PROTOCOL` takes."""
        before, colon, after = self.url.partition(":")
        if not colon or "/" in before:
            return "file"
        if after.startswith("//"):
            return before.lower()
        return before if after.startswith(":") else "ssh"

    def config(self) -> tuple[tuple[str, str], ...]:
        """Git settings that show the token at this host alone, for the child's environment."""
        if self.token is None or self.protocol not in {"http", "https"}:
            return ()
        parts = urlsplit(self.url)
        return ((f"http.{parts.scheme}://{parts.netloc}/.extraHeader", f"Authorization: Basic {self._basic()}"),)

    def censor(self, text: str) -> str:
        """`text` without the token in any form it travels in."""
        if self.token is not None and (token := self.token.reveal()):
            for form in (self._basic(), base64.b64encode(token.encode()).decode(), token, quote(token, safe="")):
                text = text.replace(form, "***")
        return text

    def _basic(self) -> str:
        token = self.token.reveal() if self.token is not None else ""
        return base64.b64encode(f"{self.username or 'x-access-token'}:{token}".encode()).decode()


def censor_urls(text: str) -> str:
    """`text` with the user part of every URL blotted out, whoever's it is."""
    return _USERINFO.sub("://***@", text)

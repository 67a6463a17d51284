"""The server: what listens, and where links point."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from bot.settings import Settings, WebAddress

_LISTEN = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9.-]+)):(?P<port>[0-9]{1,5})")


def address_of(listen: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[::1]:port`. Raises `ValueError` with the whole sentence."""
    match = _LISTEN.fullmatch(listen)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f'must be an address and a port, like "127.0.0.1:8780" or "[::1]:8780", not "{listen}"')
    return match["six"] or match["host"], int(match["port"])


def _checked_listen(listen: str) -> str:
    address_of(listen)
    return listen


class ServerSettings(Settings):
    """`[server]`."""

    listen: Annotated[str, AfterValidator(_checked_listen)] = Field(
        default="127.0.0.1:8780", description="address and port of the door; port 0 = any free one"
    )
    public_url: WebAddress | None = Field(default=None, description="used in links; default: http://<listen>")
    keep_deliveries_seconds: int = Field(
        default=30 * 86_400, ge=0, le=315_360_000, description="how long deliveries are kept as they came; 0 = for ever"
    )
    queue_limit: int = Field(
        default=10_000,
        ge=1,
        le=10_000_000,
        description="deliveries that may wait; above it the door answers 503 and keeps nothing",
    )

    @property
    def address(self) -> tuple[str, int]:
        return address_of(self.listen)

    @property
    def url(self) -> str:
        """Where links point to, without a slash at its end."""
        return self.public_url or f"http://{self.listen}"

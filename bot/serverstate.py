"""`status.json` in the home: what the server last said of itself. A note for people and programs: it decides nothing.

Standard library only: commands that must be quick read it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot.statefiles import read_json

if TYPE_CHECKING:
    from typing import Any

NAME = "status.json"


class Configuration(NamedTuple):
    """The server's last reading of its file: when it began (RFC 3339), and why it was not taken up, or empty."""

    read_at: str
    problem: str

    def was_read_after(self, moment: float) -> bool:
        """What was written into the file before that moment (seconds since 1970) was read then."""
        from datetime import datetime

        try:
            return datetime.fromisoformat(self.read_at).timestamp() >= moment
        except ValueError:
            return False


def said(home: Path) -> dict[str, Any] | None:
    """What the server last said; None where it never did, empty where it can't be read."""
    return read_json(home / NAME)


def configuration_of(home: Path) -> Configuration:
    found = (said(home) or {}).get("configuration")
    found = found if isinstance(found, dict) else {}
    return Configuration(str(found.get("read_at", "")), str(found.get("problem", "")))

"""GitHub, on github.com and on a GitHub Enterprise Server, through PyGithub."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bot.forges import Around
from bot.forges.github import settings as tables
from bot.forges.github.settings import Settings
from bot.secret import Secret

if TYPE_CHECKING:
    from bot.forges.github.client import Github

__all__ = ["Settings", "connect", "credentials", "webhook_secrets"]


def connect(name: str, settings: Settings, around: Around) -> Github:
    """The forge of the table `[forges.<name>]`; asks nothing of the network yet.

    Raises `UserError` for a secret that is not there. `close()` ends the connections it has opened.
    """
    from bot.forges.github.access import access_to  # PyGithub costs 0.2 s, and reading a configuration needs none of it
    from bot.forges.github.client import Github

    def clock() -> datetime:
        return datetime.fromtimestamp(around.clock(), UTC)

    return Github(name, settings, access_to(name, settings, environ=around.environ, base=around.base, clock=clock))


def webhook_secrets(name: str, settings: Settings, around: Around) -> tuple[Secret, ...]:
    """The secrets that a delivery may be signed with; none = every delivery is refused. Raises `UserError`."""
    return tables.webhook_secrets(name, settings, environ=around.environ, base=around.base)


def credentials(name: str, settings: Settings, around: Around) -> tuple[Secret, ...]:
    """What the bot asks GitHub with, wherever it is kept: the account's token, or the App's key. Raises `UserError`."""
    token = tables.token(name, settings, environ=around.environ, base=around.base)
    return (token or tables.private_key(name, settings, base=around.base),)

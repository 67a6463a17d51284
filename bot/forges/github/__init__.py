"""GitHub, on github.com and on a GitHub Enterprise Server, through PyGithub."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bot.forges.github.settings import Settings, webhook_secrets

if TYPE_CHECKING:
    from bot.forges.github.client import Github

__all__ = ["Settings", "connect", "webhook_secrets"]


def connect(
    name: str,
    settings: Settings,
    *,
    environ: Mapping[str, str],
    base: Path,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Github:
    """The forge of the table `[forges.<name>]`; asks nothing of the network yet.

    `base` is the folder of the configuration file: the files that hold secrets are relative to it. Raises `UserError`
    for a secret that is not there. `close()` ends the connections it has opened.
    """
    from bot.forges.github.access import access_to  # PyGithub costs 0.2 s, and reading a configuration needs none of it
    from bot.forges.github.client import Github

    return Github(name, settings, access_to(name, settings, environ=environ, base=base, clock=clock))

"""The local forge: all that a forge does, with a folder of bare repositories and the store, and without an account."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bot.forges.local.bares import Bares
from bot.forges.local.forge import Local
from bot.forges.local.people import People
from bot.forges.local.settings import Settings, account, webhook_secrets
from bot.forges.local.threads import Threads
from bot.store.engine import Store

__all__ = ["Local", "People", "Settings", "account", "connect", "webhook_secrets"]


def connect(
    name: str,
    settings: Settings,
    *,
    store: Store,
    base: Path,
    public_url: str,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Local:
    """The forge of the table `[forges.<name>]`.

    `base` is the folder of the configuration file, `public_url` where the server's own pages are (without a slash at
    its end). Nothing is made: a root that is not there holds no repositories.
    """
    return Local(
        name=name,
        settings=settings,
        threads=Threads(store, name, clock),
        bares=Bares((base / settings.root).absolute()),
        public_url=public_url.rstrip("/"),
        owner=account(),
    )

"""The local forge: all that a forge does, with a folder of bare repositories and the store, and without an account."""

from __future__ import annotations

from bot.forges import Around
from bot.forges.local.bares import Bares
from bot.forges.local.forge import Local
from bot.forges.local.people import Act, People
from bot.forges.local.settings import Settings, account, webhook_secrets
from bot.forges.local.threads import Threads
from bot.secret import Secret

__all__ = ["Act", "Local", "People", "Settings", "account", "connect", "credentials", "webhook_secrets"]


def connect(name: str, settings: Settings, around: Around) -> Local:
    """The forge of the table `[forges.<name>]`. Nothing is made: a root that is not there holds no repositories."""
    return Local(
        name=name,
        settings=settings,
        threads=Threads(around.store, name, around.clock),
        bares=Bares((around.base / settings.root).absolute()),
        public_url=around.public_url,
        owner=account(),
    )


def credentials(name: str, settings: Settings, around: Around) -> tuple[Secret, ...]:  # noqa: ARG001
    """A folder asks for none."""
    return ()

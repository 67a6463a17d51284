"""Changes a setting of the store from beside the server, and lets the server look at it at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from bot import home
from bot.cli.clicked import Setting
from bot.errors import Unavailable, UserError
from bot.store.engine import open_store
from bot.wake import ring


@contextmanager
def changing(setting: Setting) -> Iterator[sa.Connection]:
    """One transaction on the configured store. Raises `UserError` where it can't be read or written."""
    folder = home.make(setting.home)
    try:
        store = open_store(setting.config().store, folder)
        try:
            with store.write() as connection:
                yield connection
        finally:
            store.close()
    except Unavailable as problem:
        raise UserError(f"{problem}. `leadsman doctor` says more.") from problem
    ring(folder, "waiting")

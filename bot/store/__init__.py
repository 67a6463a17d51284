"""The store: deliveries as they came, an index of the runs, what is to be said. One SQLite file, or PostgreSQL."""

from __future__ import annotations

from pydantic import Field

from bot.settings import Settings


class StoreSettings(Settings):
    """`[store]`."""

    url: str = Field(
        default="sqlite",
        pattern=r"^(sqlite|postgresql(\+\w+)?://.+)$",
        description='"sqlite" = <home>/leadsman.db, or "postgresql://..."',
    )

"""The store: deliveries as they came, an index of the runs, what is to be said. One SQLite file, or PostgreSQL."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from bot.settings import Settings


def _database(url: str) -> str:
    if not re.fullmatch(r"sqlite|postgresql://.+", url):
        raise ValueError(f'must be "sqlite" or like "postgresql://HOST/NAME", not "{url}"')
    return url


class StoreSettings(Settings):
    """`[store]`."""

    url: Annotated[str, AfterValidator(_database)] = Field(
        default="sqlite",
        description='"sqlite" = <home>/leadsman.db, or "postgresql://..."',
    )

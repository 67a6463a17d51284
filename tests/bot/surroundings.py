"""What a forge's client is given of its surroundings, in tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from bot.forges import Around
from bot.store import StoreSettings
from bot.store.engine import open_store
from tests.world import World


def around(base: Path, *, environ: Mapping[str, str] | None = None, world: World | None = None) -> Around:
    """Everything in one folder; time is the world's, where there is one."""

    def clock() -> float:
        return (world.now() if world else datetime.now(UTC)).timestamp()

    return Around(
        store=open_store(StoreSettings(), base),
        home=base,
        base=base,
        environ=environ or {},
        public_url="http://127.0.0.1",
        clock=clock,
    )

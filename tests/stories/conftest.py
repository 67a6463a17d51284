from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stories.town import FIX, Town
from tests.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path / "world") as world:
        yield world


@pytest.fixture
def town(tmp_path: Path, world: World) -> Iterator[Town]:
    """A town with a task `fix` that makes one commit."""
    town = Town(tmp_path, world)
    town.task("fix", FIX)
    yield town
    town.close()

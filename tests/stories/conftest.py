from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stories.harbour import Harbour
from tests.stories.town import FIX, Town
from tests.world import Repository, World


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


@pytest.fixture
def harbour(tmp_path: Path, world: World) -> Iterator[Harbour]:
    """A town that claims issues, with the same task."""
    harbour = Harbour(tmp_path, world)
    harbour.task("fix", FIX)
    yield harbour
    harbour.close()


@pytest.fixture
def docks(harbour: Harbour) -> Repository:
    """Its repository, in which dana may change labels and assignees, and another bot write."""
    return harbour.repo().allow("dana", "triage").allow("other-bot", "write")

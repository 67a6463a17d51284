"""A place for runs, where nothing outlives its test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.signing import SigningKey, own_key
from tests.bot.harbour import Harbour


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[Harbour]:
    place = Harbour(tmp_path)
    yield place
    place.clear()


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    """A key that reports are signed with."""
    return own_key(tmp_path_factory.mktemp("key"))

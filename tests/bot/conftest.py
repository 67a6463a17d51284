"""A place for runs, where nothing outlives its test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bot.harbour import Harbour


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[Harbour]:
    place = Harbour(tmp_path)
    yield place
    place.clear()

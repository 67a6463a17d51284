"""One function a step: `STEPS[n]` brings a store of schema n to n + 1, with its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlalchemy as sa

STEPS: Mapping[int, Callable[[sa.Connection], None]] = {}

"""One function a step: `STEPS[n]` brings a store of schema n to n + 1, with its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlalchemy as sa


def _resume(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN resume INTEGER")


STEPS: Mapping[int, Callable[[sa.Connection], None]] = {1: _resume}

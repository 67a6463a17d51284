"""Small durable facts, by name: how far something was looked at, what was said already."""

from __future__ import annotations

import sqlalchemy as sa

from bot.store.schema import settings


def get(connection: sa.Connection, name: str) -> str | None:
    return connection.execute(sa.select(settings.c.value).where(settings.c.key == name)).scalar()


def put(connection: sa.Connection, name: str, value: str) -> None:
    drop(connection, name)
    connection.execute(settings.insert().values(key=name, value=value))


def drop(connection: sa.Connection, name: str) -> None:
    connection.execute(settings.delete().where(settings.c.key == name))

"""The hosts that serve this store: each keeps a row of its own, and reads the others' before it starts a run."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from bot.errors import UserError
from bot.store import schema

hosts = schema.hosts.c
runs = schema.runs.c
leases = schema.leases.c

GONE_AFTER = 90.0
"""Seconds without a word after which a host is gone. It speaks with each look at what waits: every 20 s."""

SPEAKS_AFTER = 10.0
"""Seconds after which it speaks again though nothing has changed."""


@dataclass(frozen=True, slots=True)
class HostRow:
    """A host, as it last said of itself."""

    name: str
    slots: int
    load: float | None
    most_load: float
    """Above that it starts nothing."""
    seen_at: float

    def is_live(self, now: float) -> bool:
        return now - self.seen_at <= GONE_AFTER


def known(connection: sa.Connection) -> list[HostRow]:
    """Every host that ever served this store, by name."""
    query = sa.select(hosts.name, hosts.slots, hosts.load, hosts.most_load, hosts.seen_at)
    return [HostRow(*row) for row in connection.execute(query.order_by(hosts.name))]


def speak(connection: sa.Connection, row: HostRow, before: HostRow | None) -> None:
    """Says how the host is now, where that is news. `before`: what it last said."""
    if before is not None:
        same = (before.slots, before.load, before.most_load) == (row.slots, row.load, row.most_load)
        if same and 0 <= row.seen_at - before.seen_at < SPEAKS_AFTER:
            return
    values = {"slots": row.slots, "load": row.load, "most_load": row.most_load, "seen_at": row.seen_at}
    if before is None:
        connection.execute(schema.hosts.insert().values(name=row.name, **values))
    else:
        connection.execute(schema.hosts.update().where(hosts.name == row.name).values(**values))


def join(connection: sa.Connection, row: HostRow, home: str = "") -> None:
    """Makes the host known before it decides anything; what an older Leadsman gave a slot to is its own.

    `home`: the id of its home. Raises `UserError` where another home has that name here: each would take the other's
    runs for its own.
    """
    before = next((one for one in known(connection) if one.name == row.name), None)
    named = connection.execute(sa.select(hosts.home).where(hosts.name == row.name)).scalar() or home
    if named != home:
        raise UserError(
            f"Another home serves this store under the name {row.name} already. Two homes can't share a name: write "
            "another one into the file `host` of this home, alone on its first line, and start it again."
        )
    speak(connection, row, before)
    connection.execute(schema.hosts.update().where(hosts.name == row.name).values(home=home))
    connection.execute(schema.leases.update().where(leases.host == "").values(host=row.name))
    under_way = (runs.host == "") & (runs.phase != "waiting") & runs.closed_at.is_(None)
    connection.execute(schema.runs.update().where(under_way).values(host=row.name))


def leave(connection: sa.Connection, name: str, now: float) -> None:
    """Says that the host takes nothing any more: nobody is to leave a run to it. Its own go on."""
    mine = (hosts.name == name) & (hosts.seen_at > now - GONE_AFTER)
    connection.execute(schema.hosts.update().where(mine).values(seen_at=now - GONE_AFTER - 1))


def is_gone(connection: sa.Connection, name: str, now: float) -> bool:
    """Whether that host has not said a word for so long that nobody waits for it. A run of nobody has no host."""
    if not name:
        return False
    seen = connection.execute(sa.select(hosts.seen_at).where(hosts.name == name)).scalar()
    return seen is None or now - seen > GONE_AFTER

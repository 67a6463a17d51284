"""Events that no delivery brought: kept in the same inbox as those of the door, each under an id of its own.

What comes through the door of a tracker has the SHA-256 of its body for an id, so nobody outside can make one of these.
"""

from __future__ import annotations

import json
from datetime import datetime

from bot import codec
from bot.model import AnyTicket, Event, LookAgain
from webhooks.inbox import Delivery, Kept

_LOOK = "look-"
RETRY = "retry-"
_EVENTS = ("ticket-", "note-", "change-", RETRY)


def told(event: Event) -> Delivery:
    """The event as a delivery. One lane is one ticket."""
    return Delivery(
        source=event.source,
        delivery=event.delivery,
        event=f"{event.subject.kind}.{event.what.kind}",
        headers={},
        body=codec.dump(Event, event).encode(),
        lane=str(event.subject),
    )


def look_again(ref: AnyTicket, since: datetime) -> Delivery:
    """A ticket that could not be read, to be tried again."""
    body = {"number": ref.number, "since": since.isoformat()}
    return Delivery(
        source=ref.tracker,
        delivery=f"{_LOOK}{ref.number}-{int(since.timestamp())}",
        event="ticket.look",
        headers={},
        body=json.dumps(body).encode(),
        lane=str(ref),
    )


def look_at(source: str, number: int, entry: str, again: str = "") -> Delivery:
    """One entry of a ticket's journal ("" = the ticket itself) that somebody names who is trusted. `again` makes it
    another one."""
    return Delivery(
        source=source,
        delivery=f"{_LOOK}{number}-entry-{entry}{again and f'-{again}'}",
        event="ticket.look",
        headers={},
        body=json.dumps({"number": number, "entry": entry}).encode(),
        lane=f"{source}:{number}",
    )


def read(kept: Kept) -> Event | LookAgain | None:
    """What such a delivery says; None for one that came through the door."""
    if kept.entry.delivery.startswith(_EVENTS):
        return codec.load(Event, kept.body)
    if kept.entry.delivery.startswith(_LOOK):
        found = json.loads(kept.body)
        if "entry" in found:
            return LookAgain(int(found["number"]), entry=str(found["entry"]))
        return LookAgain(int(found["number"]), datetime.fromisoformat(found["since"]))
    return None

"""Events that were found by asking a forge take the way of everything that is delivered: through the inbox."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bot import codec
from bot.errors import Unavailable
from bot.model import Commented, Event, Happening, Labeled, Opened
from webhooks import polled
from webhooks.inbox import Delivery, Inbox, Kept, Verdict
from webhooks.payload import clean

EDITED = "Nobody says who edited the comment, nor what it said before: only a new comment counts."


def hand_in(inbox: Inbox, events: Iterable[Event]) -> int:
    """Remembers those that are new, in order; returns how many. An event's `delivery` must be made of what it tells.

    Raises `Unavailable` where the inbox takes no more.
    """
    told = [_as_delivery(event) for event in events]
    known = inbox.known((one.source, one.delivery) for one in told)
    new = [one for one in told if (one.source, one.delivery) not in known]
    for one in new:
        if inbox.remember(one) in (Verdict.FULL, Verdict.AWAY):
            raise Unavailable("The inbox takes nothing more now.")
    return len(new)


def read(kept: Kept) -> Event | None:
    """The event that was handed in; None for a delivery that came through the door: those have headers."""
    return None if kept.headers else codec.load(Event, kept.body)


def _as_delivery(event: Event) -> Delivery:
    """In the lane of its repository, as what the door lets in."""
    what = _clean(event.what)
    edited = isinstance(what, Commented) and what.before == what.text
    told = polled.told(replace(event, what=what))
    return replace(told, lane=str(event.subject.repo), ignored=EDITED if edited else "")


def _clean(what: Happening) -> Happening:
    """Texts as the door lets them in: no half characters, no NULs."""
    match what:
        case Commented():
            before = None if what.before is None else clean(what.before)
            return replace(what, text=clean(what.text), before=before)
        case Opened():
            return replace(what, title=clean(what.title))
        case Labeled():
            return replace(what, label=clean(what.label))
        case _:
            return what

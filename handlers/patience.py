"""Right after an event the forge's API may not know yet what the event is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from bot.errors import Gone, NotYet
from bot.model import Event

YOUNG = timedelta(seconds=60)
AGAIN = timedelta(seconds=2)


@contextmanager
def patience(event: Event, now: datetime) -> Iterator[None]:
    """Turns `Gone` into `NotYet` while the event is young; the delivery is then tried again."""
    try:
        yield
    except Gone as problem:
        # The time is the forge's word: one that lies in the future must not be waited for.
        if abs(now - event.at) < YOUNG:
            raise NotYet(f"Not there yet: {problem}", retry_at=now + AGAIN) from problem
        raise

"""How what happened outside reaches the bot where nobody rings: trackers and forges that are asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bot.config import Config
from bot.dispatch import Hint, Hints
from bot.errors import Unavailable
from bot.journal import Journal
from bot.missed import Missed
from bot.model import Event
from bot.polling import Polling
from bot.store.engine import Store
from bot.trackers.polling import Poll
from bot.wiring.outside import Outside, World, tracker_projects
from webhooks import polled
from webhooks.asked import hand_in
from webhooks.inbox import Delivery, Inbox, Verdict


@dataclass(frozen=True, slots=True)
class News:
    polls: dict[str, Poll]
    """By tracker."""
    missed: Missed
    """Deliveries that a forge could not hand over."""
    polling: Polling
    """Repositories without a webhook."""


def news(
    config: Config, world: World, store: Store, outside: Outside, journal: Journal, *, inbox: Inbox, hints: Hints
) -> News:
    def keep(delivery: Delivery) -> None:
        """Into the inbox, once: what it knows by its id it has had."""
        if any(entry.source == delivery.source for entry in inbox.find(delivery.delivery)):
            return
        verdict = inbox.remember(delivery)
        if verdict in {Verdict.FULL, Verdict.AWAY}:
            raise Unavailable(f"The inbox takes nothing now: {verdict.value}.")
        hints.put(Hint("lane", delivery.lane))

    def take(events: Iterable[Event]) -> int:
        found = list(events)
        new = hand_in(inbox, found)
        for repo in {event.subject.repo for event in found} if new else ():
            hints.put(Hint("lane", str(repo)))
        return new

    polls = {
        name: Poll(
            tracker,
            tracker_projects(config, name),
            store,
            keep=lambda event: keep(polled.told(event)),
            later=lambda ref, since: keep(polled.look_again(ref, since)),
            journal=journal,
            clock=world.clock,
        )
        for name, tracker in outside.systems.items()
    }
    missed = Missed(
        config.projects, outside.forges, config.server.url, store=store, journal=journal, hints=hints, clock=world.clock
    )
    polling = Polling(
        config.projects, outside.forges, missed.is_bare, take, store=store, journal=journal, clock=world.clock
    )
    return News(polls, missed, polling)

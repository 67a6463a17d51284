"""Works deliveries: each lane of the inbox in its order, decided and carried out, tried again or set aside."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from bot.config import Config
from bot.dispatch import Hint, Hints
from bot.errors import Forbidden, Gone, NotYet, Unavailable
from bot.journal import Journal
from bot.model import Event, Ignored, IssueRef, Labeled, LookAgain, PullRef, Pushed
from bot.store import books
from bot.store.engine import Store
from bot.trackers.polling import Poll
from bot.wiring.outside import Outside, kind_of, moment
from bot.wiring.ticketing import run_url
from handlers.carry_out import carry_out
from handlers.decide import decide
from handlers.views import Desk
from webhooks import asked, polled
from webhooks.inbox import Delivery, Entry, Inbox, Kept
from webhooks.payload import Malformed, Misshapen, parse
from webhooks.sources import SOURCES

log = logging.getLogger(__name__)

ACCIDENTS = 5
"""How often a delivery is tried that ends in an error of ours."""

TRIES_IN_ORDER = 9
"""How often the others of its lane wait for a delivery for which the forge does not answer: some nine minutes."""

DELIVERY_SECONDS = 24 * 3600
"""How long a delivery is tried while the forge does not answer; one that is older, and was sent again or replayed, as
often as others wait for it."""


class Lanes:
    """What stands in a lane is worked one after the other; lanes go beside each other."""

    def __init__(
        self,
        config: Config,
        outside: Outside,
        store: Store,
        inbox: Inbox,
        desk: Desk,
        *,
        polls: Mapping[str, Poll],
        hints: Hints,
        journal: Journal,
        patient: bool,
        clock: Callable[[], float],
    ) -> None:
        """`patient`: waits for a right that is missing now."""
        self._config = config
        self._outside = outside
        self._store = store
        self._inbox = inbox
        self._desk = desk
        self._polls = polls
        self._hints = hints
        self._journal = journal
        self._patient = patient
        self._clock = clock

    def work(self, lane: str) -> float | None:
        """Works the first of a lane, if it is due. One at a time: a new configuration counts from the next one on."""
        kept = self._inbox.head(lane)
        if kept is None:
            return None
        wait = kept.entry.due_at - self._clock()
        if wait > 0:
            return wait
        try:
            self.handle(kept)
        except Exception as problem:  # the border: one delivery's accident must not stop its lane
            log.exception("delivery %s can't be worked", kept.entry.delivery)
            self._accident(kept.entry, problem)
        return 0.0

    def _accident(self, entry: Entry, problem: Exception) -> None:
        """An error of ours: tried a few times, then set aside. It comes back when it is redelivered or replayed."""
        why = f"an error of Leadsman's own: {type(problem).__name__}: {problem}"[:500]
        given_up = entry.tries + 1 >= ACCIDENTS
        self._inbox.failed(entry.id, why, None if given_up else self._clock() + 2.0**entry.tries)
        self._journal.say("accident", delivery=entry.delivery, why=why, given_up=given_up)

    def handle(self, kept: Kept) -> None:
        """Decides one delivery and carries that out. Safe to repeat: what was obeyed is not obeyed again."""
        entry = kept.entry
        try:
            event = self._read(kept)
            if isinstance(event, Ignored):
                self._inbox.ignored(entry.id, event.reason)
                return
            came = self._look_again(entry.source, event) if isinstance(event, LookAgain) else self._decide(event)
        except Unavailable as problem:
            self._put_off(entry, problem)
            return
        except Forbidden as problem:
            self._wait_for_the_right(entry, problem)
            return
        except Gone as problem:
            self._inbox.failed(entry.id, str(problem), None)
            return
        if isinstance(came, Ignored):
            self._inbox.done(entry.id, came.reason)
        else:
            self._inbox.done(entry.id)
            for hint in came:
                self._hints.put(hint)
        if isinstance(event, Event) and self._offers(event):
            self._hints.put(Hint("scan"))

    def _offers(self, event: Event) -> bool:
        """Whether it may be the label that a scan waits for: that is said alone, while a ticket's change may come with
        a command. A CI step looks for no other event than its own."""
        on = event.subject
        if not (self._patient and isinstance(on, IssueRef) and isinstance(event.what, Labeled)):
            return False
        return self._outside.trackers[on.tracker].claiming.enabled

    def _wait_for_the_right(self, entry: Entry, problem: Forbidden) -> None:
        """A token that is refused may be renewed: tried for a day, in a lane of its own, where it holds up nobody."""
        now = self._clock()
        if not self._patient or _is_given_up(entry, now):
            self._inbox.failed(entry.id, str(problem), None)
            return
        retry_at = now + min(300.0, 2.0 ** min(entry.tries + 1, 9))
        self._hints.put(Hint("lane", self._inbox.aside(entry, str(problem), retry_at)))
        self._journal.say("forbidden", delivery=entry.delivery, why=str(problem))

    def _look_again(self, source: str, event: LookAgain) -> list[Hint] | Ignored:
        if event.entry is None:
            self._polls[source].look_at(event.number, event.since)
            return []
        found = self._polls[source].look_at_entry(event.number, event.entry)
        return [] if found else Ignored("there is no such entry of a ticket of ours, or it is private, or a bot's own")

    def _read(self, kept: Kept) -> Event | LookAgain | Ignored:
        settings = {**self._config.forges, **self._config.trackers}.get(kept.entry.source)
        if settings is None:
            return Ignored(f"{kept.entry.source} is not configured any more")
        if kept.entry.source in self._outside.systems and (ours := polled.read(kept)) is not None:
            return ours
        if kept.entry.source in self._outside.forges and (found := asked.read(kept)) is not None:
            return found
        source = SOURCES[kind_of(settings)]
        event = source.read(kept.headers, kept.body, source=kept.entry.source, at=moment(kept.entry.received_at))
        return Ignored(event.reason) if isinstance(event, Malformed) else event

    def _decide(self, event: Event) -> list[Hint] | Ignored:
        if isinstance(event.subject, PullRef) and event.head_sha is not None:
            subject, at = str(event.subject), event.at.timestamp()
            before = event.what.before if isinstance(event.what, Pushed) else None
            with self._store.write() as connection:
                books.saw_head(connection, subject, event.head_sha, at=at, now=self._clock(), before=before)
        decision = decide(event, self._desk)
        if isinstance(decision, Ignored):
            self._journal.say("ignored", delivery=event.delivery, why=decision.reason)
            return decision
        url = partial(run_url, self._config)
        return carry_out(decision, event, self._store, self._journal, self._clock, url=url)

    def _put_off(self, entry: Entry, problem: Unavailable) -> None:
        now = self._clock()
        given_up = _is_given_up(entry, now)
        at = problem.retry_at.timestamp() if problem.retry_at else now + min(300.0, 2.0 ** min(entry.tries, 9))
        # A comment that was deleted at once looks like one that is not there yet; and a forge may fail for one pull
        # request alone, for hours: neither must hold up the others.
        in_order = 1 if isinstance(problem, NotYet) else TRIES_IN_ORDER
        if entry.tries >= in_order and not given_up:
            lane = self._inbox.aside(entry, str(problem), at)
            self._hints.put(Hint("lane", lane), after=at - now)
        else:
            self._inbox.failed(entry.id, str(problem), None if given_up else at)
        self._journal.say("delivery_put_off", delivery=entry.delivery, why=str(problem), given_up=given_up)


def _is_given_up(entry: Entry, now: float) -> bool:
    return now - entry.received_at > DELIVERY_SECONDS and entry.tries >= TRIES_IN_ORDER


def delivery_of(source: str, kind: str, delivery: str, event: str, body: bytes) -> Delivery | None:
    """A delivery that came by another way than the door, as the door would have kept it. None: it is no JSON object."""
    try:
        payload = parse(body)
    except Misshapen:
        return None
    sender = SOURCES[kind]
    repository = sender.repository(payload)
    unwanted = sender.unwanted(event, payload)
    return Delivery(
        source=source,
        delivery=delivery,
        event=event,
        headers=sender.named(delivery, event),
        body=body,
        lane=source if repository is None else f"{source}:{repository}",
        ignored=unwanted.reason if unwanted else "",
    )

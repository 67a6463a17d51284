"""The bot of one configuration, whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from bot import road, rundir
from bot.answers import Answers
from bot.config import Config
from bot.dashboard.reading import Reading
from bot.dispatch import Dispatcher, Hint, Work
from bot.errors import Unavailable
from bot.fleetstate import FleetState, counts
from bot.home import called
from bot.hostload import LoadWindow
from bot.journal import Journal
from bot.model import RunId
from bot.passview import Passes, passes
from bot.projects import Project
from bot.signing import own_key
from bot.slots import TOLD, Slots
from bot.store import runs
from bot.store.engine import Store
from bot.store.telling import Telling
from bot.talk import Talks
from bot.timeline import Timeline
from bot.watch import Watcher
from bot.wiring.lanes import Lanes
from bot.wiring.news import news
from bot.wiring.outside import World, moment, reach
from bot.wiring.running import make_road, verified
from bot.wiring.ticketing import run_url, ticketing
from bot.wiring.upkeep import Sweep, boards, merged, on_a_board, publish_boards, spares, tidying
from handlers.carry_out import carry_out
from handlers.desk import Books, Index, RunningDesk
from handlers.files import RepositoryFiles
from handlers.scanning import Scan
from webhooks.inbox import Inbox

THREADS = 16
"""Workers. Each waits most of the time: for git, for a forge, for the disk."""

ANOTHER_SECONDS = 2.0
"""After so long what another host works is looked at again."""

CLAIMS_SECONDS = 60.0
"""How often the trackers are looked through for claims that nobody works any more."""

SCAN_SECONDS = 30.0
"""How often claimable tickets are looked for where the table has no poll_seconds, or 0."""


class Bot:
    """A configuration in force: everything that works deliveries, runs and answers, over one store."""

    def __init__(
        self,
        config: Config,
        world: World,
        store: Store,
        observe: road.Observer | None = None,
        *,
        after: Bot | None = None,
        read_at: float | None = None,
    ) -> None:
        """`after`: the bot that is stopped before this one starts, and may be at something yet. `read_at`: when the
        reading of `config` began; default: now."""
        self.config, self.world, self.store = config, world, store
        self.key = own_key(world.home)
        self.journal = Journal(world.home / "events.jsonl", world.clock)
        self.outside = reach(config, world, store, self.journal)
        self.inbox = Inbox(store, world.clock, limit=config.server.queue_limit)
        self.dispatcher: Dispatcher = Dispatcher(threads=THREADS, at_work=after.dispatcher.at_work if after else None)
        self.watcher = Watcher(lambda run_id: self.dispatcher.put(Hint("run", run_id)))
        self.telling = Telling(store, world.name, self._heard)
        self.load = LoadWindow(world.home, world.environ, world.clock)
        self.slots = self._make_slots()
        self._configuration = _reading_of_configuration(world.clock() if read_at is None else read_at, "")
        self.fleet = FleetState(
            store, world.home, self.slots, configuration=lambda: self._configuration, clock=world.clock
        )
        self.answers = Answers(
            store,
            world.runs,
            Talks(self.outside.forges, self.outside.trackers),
            self.journal,
            host=world.name,
            masking=self.outside.masking,
            patient=world.patient,
            clock=world.clock,
        )
        ground = (config, world, store, self.outside, self.journal)  # what each part below stands on
        self.spares = spares(*ground, hints=self.dispatcher)
        self.tidying = tidying(*ground)
        self.merged = merged(config, world, self.outside, self.journal)
        self.boards = boards(config, world, store, self.outside, load=self.load.p95)
        self.ticketing = ticketing(*ground, answered=self.answers.address)
        self.news = news(*ground, inbox=self.inbox, hints=self.dispatcher)
        self.desk = self._make_desk()
        self.lanes = self._make_lanes()
        self.scan = self._make_scan()
        self.sweep = Sweep(config, world, store, self.inbox, self.dispatcher)
        self.road = make_road(
            *ground,
            ticketing=self.ticketing,
            spares=self.spares,
            key=self.key,
            hints=self.dispatcher,
            watch=self.watcher.watch,
            observe=observe or Timeline(world.runs, world.clock).note,
        )

    # ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _work(self) -> Mapping[str, Work]:
        """Each kind of hint, and who works it."""
        return {
            "lane": self._alone("lane", self.lanes.work),
            "waiting": self.slots.offer,
            "run": self._advance,
            "answer": self._alone("answer", self.answers.settle),
            "sweep": self.sweep.look,
            "tidy": self.tidying.sweep,
            "trash": self.tidying.empty,
            "load": self.load.sample,
            "missed": self._alone("missed", self.news.missed.look),
            "look": self._alone("look", self.news.polling.look),
            "poll": self._alone("poll", self._poll),
            "state": self.fleet.write,
            "spare": self.spares.prepare,
            "spares": self.spares.sweep,
            "board": self._alone("board", lambda _key: publish_boards(self.config, self.boards, self.journal)),
            "merged": self.merged.sweep,
            "claims": self._alone("claims", self._sweep_claims),
            "scan": self._alone("scan", self._scan),
        }

    def _alone(self, kind: str, work: Work) -> Work:
        """What only one host may do at a time, in a store that several share."""

        def one(key: str) -> float | None:
            with self.store.alone(f"{kind} {key}") as mine:
                return work(key) if mine else ANOTHER_SECONDS

        return one

    def _make_slots(self) -> Slots:
        config = self.config
        return Slots(
            self.store,
            config.fleet,
            self.world.runs,
            host=self.world.name,
            home=called(self.world.home).home,
            tell=self.telling.tell,
            parallel={str(project.repo).casefold(): project.max_parallel for project in config.projects},
            load=self.load.p95,
            hints=self.dispatcher,
            journal=self.journal,
            clock=self.world.clock,
            cycle_ends=self.world.cycle_ends,
            run_limit=config.budget.run_cap_seconds,
        )

    def _make_desk(self) -> RunningDesk:
        world = self.world
        return RunningDesk(
            config=self.config,
            forges=self.outside.forges,
            trackers=self.outside.trackers,
            files=RepositoryFiles(self.config, self.outside.forges, self.store, self.journal),
            runs=Index(
                self.store,
                world.runs,
                self.outside.masking,
                host=world.name,
                counts=lambda connection: counts(connection, self.slots),
                passes=self.passes,
            ),
            memory=Books(self.store),
            verify=lambda run_id: verified(world, self.outside, self.key, run_id),
            clock=world.clock,
            new_run_id=lambda: RunId(rundir.new_run_id(moment(world.clock()), os.urandom(3))),
        )

    def _make_lanes(self) -> Lanes:
        return Lanes(
            self.config,
            self.outside,
            self.store,
            self.inbox,
            self.desk,
            polls=self.news.polls,
            hints=self.dispatcher,
            journal=self.journal,
            patient=self.world.patient,
            clock=self.world.clock,
        )

    def _make_scan(self) -> Scan:
        return Scan(
            self.desk,
            self.outside.trackers,
            self.config.projects,
            room=self._room,
            carry=lambda decision, event: carry_out(
                decision, event, self.store, self.journal, self.world.clock, url=partial(run_url, self.config)
            ),
            clears=self.ticketing.sweep.clears,
            journal=self.journal,
        )

    def passes(self) -> Passes:
        """Who holds the host's CPU passes now."""
        return passes(self.world.environ)

    def view(self, notices: Callable[[], tuple[str, ...]]) -> Reading:
        """What the pages show."""
        return Reading(
            self.store,
            self.world.runs,
            self.outside.forges,
            public_url=self.config.server.url,
            trackers=self.outside.trackers,
            masking=self.outside.masking,
            notices=notices,
            passes=lambda: str(self.passes()),
        )

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def join(self) -> None:
        """Takes its place among the hosts of the store. Raises `Unavailable`, and `UserError` where that is taken."""
        self.slots.join()

    def start(self) -> None:
        """Begins to work, once it has joined; what a server that was killed left lying is found by the first sweep."""
        self.telling.start()
        with suppress(Unavailable):  # it is written again with whatever happens
            self.fleet.write()
        self.watcher.start()
        self.dispatcher.start(self._work())
        for kind in ("sweep", "tidy", "spares", "merged", "load"):
            self.dispatcher.put(Hint(kind))
        if on_a_board(self.config):
            self.dispatcher.put(Hint("board"))
        if self._claims_tickets():
            self.dispatcher.put(Hint("claims"))
        if self.world.patient:
            self._look_around()

    def _look_around(self) -> None:
        """What only a server does: a CI step works its own event, and looks for no other."""
        self.dispatcher.put(Hint("missed"))
        for name in self.outside.systems:
            self.dispatcher.put(Hint("poll", name))
        if self._claims_tickets():
            self.dispatcher.put(Hint("scan"))

    def _claims_tickets(self) -> bool:
        return any(tracker.claiming.enabled for tracker in self.outside.trackers.values())

    def stop(self, timeout: float = 10.0) -> None:
        """Ends working. Runs go on: they are not ours to end, and whoever starts next takes up where they are."""
        self.telling.stop()
        self.dispatcher.stop(timeout)
        self.watcher.stop()
        self.slots.leave()

    def say_configuration_is_wrong(self, problem: str, read_at: float) -> None:
        """The file was read anew, from `read_at` on, and not taken up: this bot stays in force."""
        self._configuration = _reading_of_configuration(read_at, problem)
        self.dispatcher.put(Hint("state"))

    # ── other hosts of the same store ────────────────────────────────────────────────────────────────────────────

    def _advance(self, run_id: str) -> float | None:
        if self._is_far(run_id):
            self.telling.tell("run", run_id)
            return None
        return self.road.advance(run_id)

    def _is_far(self, run_id: str) -> bool:
        with self.store.read() as connection:
            row = runs.get(connection, run_id)
        return row is not None and row.host not in ("", self.world.name)

    def _heard(self, kind: str, key: str) -> None:
        """What another host tells is looked at and not told on, so that no two tell each other for good."""
        match kind:
            case "waiting":
                self.dispatcher.put(Hint(kind, TOLD))
            case "run" if not self._is_far(key):
                self.dispatcher.put(Hint(kind, key))
            case "sweep":
                self.dispatcher.put(Hint(kind))

    # ── trackers, by the clock ───────────────────────────────────────────────────────────────────────────────────

    def _poll(self, name: str) -> float:
        self.news.polls[name].look()
        return float(getattr(self.config.trackers[name], "poll_seconds", 30))

    def _sweep_claims(self, _key: str) -> float:
        self.ticketing.sweep.sweep()
        return CLAIMS_SECONDS

    def _scan(self, anew: str) -> float | None:
        for hint in self.scan.look(anew=anew):
            self.dispatcher.put(hint)
        if anew:
            return None  # that was asked for once
        tables = {**self.config.forges, **self.config.trackers}
        return min(
            (_every(tables[name]) for name, one in self.outside.trackers.items() if one.claiming.enabled),
            default=SCAN_SECONDS,
        )

    def _room(self, project: Project) -> int:
        """How many more runs may wait or go on: no more tickets are taken than can be worked."""
        with self.store.read() as connection:
            rows, cap = runs.open_runs(connection), self.slots.cap(connection)
        here = sum(1 for row in rows if row.repo.casefold() == str(project.repo).casefold())
        return min(cap - len(rows), project.max_parallel - here)


def _reading_of_configuration(at: float, problem: str) -> dict[str, str]:
    return {"read_at": moment(at).isoformat(), "problem": problem}


def _every(settings: object) -> float:
    return float(getattr(settings, "poll_seconds", 0)) or SCAN_SECONDS

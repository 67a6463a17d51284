"""Puts the parts together. This is the one file that knows everyone; only the command line imports it."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from bot import answers, landing, recheck, road, rundir
from bot.board import Boards, Host
from bot.claimbook import ClaimBook
from bot.claims import Claims
from bot.claimsweep import ClaimSweep
from bot.config import Config
from bot.configured import Configured
from bot.dashboard.reading import Reading
from bot.dispatch import Dispatcher, Hint
from bot.errors import Forbidden, Gone, NotYet, Unavailable, UserError
from bot.fleet import RepoMap
from bot.fleetstate import FleetState, counts
from bot.forges import FORGES, Around, Forge
from bot.hostload import LoadWindow, host_load
from bot.issuelabels import IssueLabels
from bot.journal import Journal
from bot.leaving import Leaving
from bot.masking import Masking
from bot.merged import Merged
from bot.missed import Missed
from bot.model import Event, Ignored, LookAgain, PullRef, Repo, RunId
from bot.passview import Passes, passes
from bot.polling import Polling
from bot.projects import Project
from bot.reporter import Reporter
from bot.reports import Report
from bot.repositories import Repositories
from bot.secret import Secret
from bot.signing import own_key
from bot.slots import Slots
from bot.spares import Spares
from bot.store import books, runs
from bot.store.engine import Store
from bot.talk import Talks
from bot.tickets import Tickets
from bot.tidying import Tidying
from bot.timeline import Timeline
from bot.trackers import TRACKERS, Tracker
from bot.trackers.polling import Poll
from bot.verification import Verification
from bot.watch import Watcher
from bot.worksite import Worksite
from gitops.git import Identity
from gitops.mirror import Mirror
from handlers.carry_out import carry_out
from handlers.decide import decide
from handlers.desk import Books, Index, RunningDesk
from handlers.files import RepositoryFiles
from handlers.scanning import Scan
from webhooks import asked, polled
from webhooks.asked import hand_in
from webhooks.inbox import Delivery, Entry, Inbox, Kept, Verdict
from webhooks.payload import Malformed, Misshapen, parse
from webhooks.receiver import Table
from webhooks.signature import Key
from webhooks.sources import SOURCES

log = logging.getLogger(__name__)

THREADS = 16
"""Workers. Each waits most of the time: for git, for a forge, for the disk."""

VERTICAL = "leadsman"
"""What claims call this kind of bot, before its host's name."""

CLAIMS_SECONDS = 60.0
"""How often the trackers are looked through for claims that nobody works any more."""

SWEEP_SECONDS = 20.0
"""How often the store is looked through for what a lost hint left lying."""

ACCIDENTS = 5
"""How often a delivery is tried that ends in an error of ours."""

DELIVERY_SECONDS = 24 * 3600
"""How long a delivery is tried while the forge does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What comes in from outside: where things are kept, the environment, time."""

    home: Path
    environ: Mapping[str, str]
    clock: Callable[[], float] = time.time
    patient: bool = True
    """A server waits for a right that is missing now; a CI step says that it is, and ends."""
    cycle_ends: float | None = None
    """When a command that ends by itself wants to be done, by `clock`; None: it has all the time."""

    @property
    def runs(self) -> Path:
        return self.home / "runs"


class Bot:
    """A configuration in force: everything that works deliveries, runs and answers, over one store."""

    def __init__(self, config: Config, world: World, store: Store, observe: road.Observer | None = None) -> None:
        self.config = config
        self.world = world
        self.store = store
        self.clock = world.clock
        self.key = own_key(world.home)
        self.journal = Journal(world.home / "events.jsonl", world.clock)
        surroundings = around(config, world, store)
        self.forges = connect(config, surroundings)
        self.trackers = connect_trackers(config, surroundings)
        self.tables = tables(config, surroundings)
        self.masking = Masking(secrets_of(config, world, self.tables, surroundings))
        self.repositories = Repositories(world.home / "mirrors", self.forges)
        self.inbox = Inbox(store, world.clock, limit=config.server.queue_limit)
        self.tidying = Tidying(
            self.repositories,
            store,
            (world.home / "worktrees", world.home / "checkouts"),
            [project.repo for project in config.projects],
            world.runs,
            journal=self.journal,
        )
        self._swept = False
        self.merged = Merged(
            self.repositories, world.runs, [project.repo for project in config.projects], journal=self.journal
        )
        self.load = LoadWindow(world.home, world.environ, world.clock)
        self.dispatcher = Dispatcher(
            {
                "lane": self._work_lane,
                "waiting": self._offer,
                "run": self._advance,
                "answer": self._settle,
                "sweep": self._sweep,
                "tidy": self.tidying.sweep,
                "trash": self.tidying.empty,
                "load": self.load.sample,
                "missed": self._ask_for_missed,
                "look": self._look,
                "state": self._say_state,
                "spare": self._prepare_spare,
                "spares": self._sweep_spares,
                "board": self._publish_boards,
                "merged": self.merged.sweep,
                "poll": self._poll,
                "claims": self._sweep_claims,
                "scan": self._scan,
            },
            threads=THREADS,
        )
        self.spares = Spares(
            world.home / "spares",
            config.fleet.spares,
            [project.repo for project in config.projects],
            self.repositories,
            store,
            hints=self.dispatcher,
            journal=self.journal,
            clock=world.clock,
        )
        self.watcher = Watcher(lambda run_id: self.dispatcher.put(Hint("run", run_id)))
        self.desk = self._make_desk()
        self.slots = Slots(
            store,
            config.fleet,
            world.runs,
            parallel={str(project.repo).casefold(): project.max_parallel for project in config.projects},
            load=self.load.p95,
            hints=self.dispatcher,
            journal=self.journal,
            clock=world.clock,
            cycle_ends=world.cycle_ends,
            run_limit=config.budget.run_cap_seconds,
        )
        self.boards = boards(config, world, store, self.repositories, self.masking, load=self.load.p95)
        self.fleet = FleetState(
            store, world.home, self.slots, cap=config.fleet.cap, configuration=lambda: self._configuration
        )
        self._configuration = reading_of_configuration(world.clock(), "")
        self.answers = answers.Answers(
            store,
            world.runs,
            Talks(self.forges, self.trackers),
            self.journal,
            masking=self.masking,
            patient=world.patient,
            clock=world.clock,
        )
        self.claim_book = ClaimBook(store, self.journal, world.clock)
        self.claims = Claims(
            self.repositories,
            store,
            self.claim_book,
            identity_of(config),
            host=socket.gethostname(),
            vertical=VERTICAL,
            clock=world.clock,
        )
        self.tickets = Tickets(
            self.trackers,
            IssueLabels(self.forges, claim_labels(config), self.journal),
            self.claim_book,
            by=f"{VERTICAL}@{socket.gethostname()}",
            is_ours=self._knows_run,
            url=self._run_url,
            clock=world.clock,
        )
        self.claim_sweep = ClaimSweep(
            self.trackers,
            {name: tracker_projects(config, name) for name in self.trackers},
            self.claims,
            store,
            self.claim_book,
            limit=max((row.total_s for row in config.budget.rows()), default=0),
            clock=world.clock,
        )
        self.scan = Scan(
            self.desk,
            self.trackers,
            config.projects,
            room=self._room,
            carry=lambda decision, event: carry_out(decision, event, store, self.journal, world.clock),
            journal=self.journal,
        )
        self.polls = {
            name: Poll(
                tracker,
                tracker_projects(config, name),
                store,
                keep=lambda event: self._keep(polled.told(event)),
                later=lambda ref, since: self._keep(polled.look_again(ref, since)),
                journal=self.journal,
                clock=world.clock,
            )
            for name, tracker in self.trackers.items()
        }
        self.missed = Missed(
            config.projects,
            self.forges,
            config.server.url,
            store=store,
            journal=self.journal,
            hints=self.dispatcher,
            clock=world.clock,
        )
        self.polling = Polling(
            config.projects,
            self.forges,
            self.missed.is_bare,
            self._take,
            store=store,
            journal=self.journal,
            clock=world.clock,
        )
        self.timeline = Timeline(world.runs, world.clock)
        self.road = self._make_road(observe or self.timeline.note)

    # ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _make_desk(self) -> RunningDesk:
        return RunningDesk(
            config=self.config,
            forges=self.forges,
            trackers=self.trackers,
            files=RepositoryFiles(self.config, self.forges, self.store, self.journal),
            runs=Index(
                self.store,
                self.world.runs,
                self.masking,
                counts=lambda connection: counts(connection, self.slots),
                passes=self.passes,
            ),
            memory=Books(self.store),
            verify=self._verified,
            clock=self.clock,
            new_run_id=lambda: RunId(rundir.new_run_id(moment(self.clock()), os.urandom(3))),
        )

    def passes(self) -> Passes:
        """Who holds the host's CPU passes now."""
        return passes(self.world.environ)

    def _run_url(self, run_id: RunId) -> str:
        return f"{self.config.server.url}/runs/{run_id}"

    def _knows_run(self, run_id: str) -> bool:
        with self.store.read() as connection:
            return runs.get(connection, run_id) is not None

    def _make_road(self, observe: road.Observer) -> road.Road:
        config, world = self.config, self.world
        identity = identity_of(config)
        repositories = self.repositories
        claims = self.claims
        reporter = Reporter(
            repositories,
            self.masking,
            self.key,
            host=socket.gethostname(),
            links=self._run_url,
            load=host_load,
            clock=self.clock,
        )
        return road.Road(
            store=self.store,
            runs_dir=world.runs,
            repositories=repositories,
            claims=claims,
            worksite=Worksite(
                repositories,
                world.home / "worktrees",
                identity,
                trackers=self.trackers,
                environ=world.environ,
                load=host_load,
                clock=self.clock,
                keep_failed=config.fleet.keep_failed_worktrees,
                spare=self.spares.take,
            ),
            verification=Verification(repositories, world.home / "checkouts", world.environ, masking=self.masking),
            landing=landing.Landing(repositories, claims, identity),
            tickets=self.tickets,
            identity=identity,
            journal=self.journal,
            hints=self.dispatcher,
            watch=self.watcher.watch,
            write_report=reporter.write,
            leave=Leaving(repositories, identity, self.journal).leave,
            observe=observe,
            clock=self.clock,
        )

    def view(self, notices: Callable[[], tuple[str, ...]]) -> Reading:
        """What the pages show."""
        return Reading(
            self.store,
            self.world.runs,
            self.forges,
            public_url=self.config.server.url,
            notices=notices,
            passes=lambda: str(self.passes()),
        )

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Begins to work; what a server that was killed left lying is found by the first sweep."""
        self.fleet.write()
        self.watcher.start()
        self.dispatcher.start()
        self.dispatcher.put(Hint("sweep"))
        self.dispatcher.put(Hint("tidy"))
        self.dispatcher.put(Hint("spares"))
        self.dispatcher.put(Hint("merged"))
        if on_a_board(self.config):
            self.dispatcher.put(Hint("board"))
        self.dispatcher.put(Hint("load"))
        if self.trackers:
            self.dispatcher.put(Hint("claims"))
        if self.world.patient:
            self._look_around()

    def _look_around(self) -> None:
        """What only a server does: a CI step works its own event, and looks for no other."""
        self.dispatcher.put(Hint("missed"))
        for name in self.trackers:
            self.dispatcher.put(Hint("poll", name))
        if self.trackers:
            self.dispatcher.put(Hint("scan"))

    def stop(self, timeout: float = 10.0) -> None:
        """Ends working. Runs go on: they are not ours to end, and whoever starts next takes up where they are."""
        self.dispatcher.stop(timeout)
        self.watcher.stop()

    def say_configuration_is_wrong(self, problem: str) -> None:
        """The file was read anew and not taken up: this bot stays in force."""
        self._configuration = reading_of_configuration(self.clock(), problem)
        self.dispatcher.put(Hint("state"))

    def wake_lane(self, lane: str) -> None:
        self.dispatcher.put(Hint("lane", lane))

    # ── work ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sweep(self, _key: str) -> float:
        before = self.clock() if self._swept else None  # the first one looks at everything
        self._swept = True
        with self.store.read() as connection:
            open_runs = [row.run_id for row in runs.open_runs(connection) if self._is_due(row, before)]
            due = answers.due(connection, before)
        for lane in self.inbox.lanes():
            self.dispatcher.put(Hint("lane", lane))
        self.dispatcher.put(Hint("waiting"))
        for run_id in open_runs:
            self.dispatcher.put(Hint("run", run_id))
        for key in due:
            self.dispatcher.put(Hint("answer", key))
        if self.config.server.keep_deliveries_seconds:
            self.inbox.purge(self.clock() - self.config.server.keep_deliveries_seconds)
        return SWEEP_SECONDS

    def _is_due(self, row: runs.Row, before: float | None) -> bool:
        """Whether there may be something to do for a run of which nobody told any news."""
        if row.phase == "waiting" and row.cancel is None:
            return not (self.world.runs / row.run_id / "intent.json").exists()  # it is offered a slot, not advanced
        return before is None or row.due_at <= before

    def _verified(self, run_id: RunId) -> list[recheck.Finding]:
        def mirror(report: Report) -> Mirror:
            return self.repositories.mirror(Repo(report.repository.forge, report.repository.name))

        return recheck.of_run(self.world.runs / run_id, self.key.public, mirror)

    def _publish_boards(self, _key: str) -> float | None:
        """After each run, and by the clock; what can't be published now is tried at the next occasion."""
        for project in on_a_board(self.config):
            try:
                commit = self.boards.publish(project.repo)
            except (Unavailable, Gone, Forbidden, UserError) as problem:
                self.journal.say("no_board", repo=str(project.repo), why=str(problem))
            else:
                self.journal.say("board", repo=str(project.repo), commit=commit)
        return float(self.config.board.every_seconds) or None

    def _prepare_spare(self, repo: str) -> None:
        self.spares.prepare(repo)

    def _sweep_spares(self, key: str) -> float:
        return self.spares.sweep(key)

    def _say_state(self, key: str) -> None:
        self.fleet.write(key)

    def _poll(self, name: str) -> float:
        self.polls[name].look()
        return float(getattr(self.config.trackers[name], "poll_seconds", 30))

    def _sweep_claims(self, _key: str) -> float:
        self.claim_sweep.sweep()
        return CLAIMS_SECONDS

    def _scan(self, anew: str) -> float | None:
        for hint in self.scan.look(anew=anew):
            self.dispatcher.put(hint)
        if anew:
            return None  # that was asked for once
        return float(min(getattr(settings, "poll_seconds", 30) for settings in self.config.trackers.values()))

    def _room(self, project: Project) -> int:
        """How many more runs may wait or go on: no more tickets are taken than can be worked."""
        with self.store.read() as connection:
            rows = runs.open_runs(connection)
        here = sum(1 for row in rows if row.repo.casefold() == str(project.repo).casefold())
        return min(self.config.fleet.cap - len(rows), project.max_parallel - here)

    def _keep(self, delivery: Delivery) -> None:
        """Into the inbox, once: what it knows by its id it has had."""
        if any(entry.source == delivery.source for entry in self.inbox.find(delivery.delivery)):
            return
        verdict = self.inbox.remember(delivery)
        if verdict in {Verdict.FULL, Verdict.AWAY}:
            raise Unavailable(f"The inbox takes nothing now: {verdict.value}.")
        self.dispatcher.put(Hint("lane", delivery.lane))

    def _offer(self, key: str) -> float | None:
        return self.slots.offer(key)

    def _advance(self, run_id: str) -> float | None:
        return self.road.advance(run_id)

    def _settle(self, key: str) -> float | None:
        return self.answers.settle(key)

    def _ask_for_missed(self, key: str) -> float:
        return self.missed.look(key)

    def _look(self, project: str) -> float | None:
        return self.polling.look(project)

    def _take(self, events: Iterable[Event]) -> int:
        found = list(events)
        new = hand_in(self.inbox, found)
        for repo in {event.subject.repo for event in found} if new else ():
            self.dispatcher.put(Hint("lane", str(repo)))
        return new

    def _work_lane(self, lane: str) -> float | None:
        while (kept := self.inbox.head(lane)) is not None:
            wait = kept.entry.due_at - self.clock()
            if wait > 0:
                return wait
            try:
                self.handle(kept)
            except Exception as problem:  # the border: one delivery's accident must not stop its lane
                log.exception("delivery %s can't be worked", kept.entry.delivery)
                self._accident(kept.entry, problem)
        return None

    def _accident(self, entry: Entry, problem: Exception) -> None:
        """An error of ours: tried a few times, then set aside. It comes back when it is redelivered or replayed."""
        why = f"an error of Leadsman's own: {type(problem).__name__}: {problem}"[:500]
        given_up = entry.tries + 1 >= ACCIDENTS
        self.inbox.failed(entry.id, why, None if given_up else self.clock() + 2.0**entry.tries)
        self.journal.say("accident", delivery=entry.delivery, why=why, given_up=given_up)

    def handle(self, kept: Kept) -> None:
        """Decides one delivery and carries that out. Safe to repeat: what was obeyed is not obeyed again."""
        entry = kept.entry
        try:
            event = self._read(kept)
            if isinstance(event, Ignored):
                self.inbox.ignored(entry.id, event.reason)
                return
            hints = self._look_again(entry, event) if isinstance(event, LookAgain) else self._decide(event)
        except Unavailable as problem:
            self._put_off(entry, problem)
            return
        except Forbidden as problem:
            self._wait_for_the_right(entry, problem)
            return
        except Gone as problem:
            self.inbox.failed(entry.id, str(problem), None)
            return
        self.inbox.done(entry.id)
        for hint in hints:
            self.dispatcher.put(hint)

    def _wait_for_the_right(self, entry: Entry, problem: Forbidden) -> None:
        """A token that is refused may be renewed: tried for a day, in a lane of its own, where it holds up nobody."""
        now = self.clock()
        if not self.world.patient or now - entry.received_at > DELIVERY_SECONDS:
            self.inbox.failed(entry.id, str(problem), None)
            return
        retry_at = now + min(300.0, 2.0 ** min(entry.tries + 1, 9))
        self.dispatcher.put(Hint("lane", self.inbox.aside(entry, str(problem), retry_at)))
        self.journal.say("forbidden", delivery=entry.delivery, why=str(problem))

    def _look_again(self, entry: Entry, event: LookAgain) -> list[Hint]:
        self.polls[entry.source].look_at(event.number, event.since)
        return []

    def _read(self, kept: Kept) -> Event | LookAgain | Ignored:
        settings = {**self.config.forges, **self.config.trackers}.get(kept.entry.source)
        if settings is None:
            return Ignored(f"{kept.entry.source} is not configured any more")
        if kept.entry.source in self.trackers and (ours := polled.read(kept)) is not None:
            return ours
        if kept.entry.source in self.forges and (found := asked.read(kept)) is not None:
            return found
        source = SOURCES[kind_of(settings)]
        event = source.read(kept.headers, kept.body, source=kept.entry.source, at=moment(kept.entry.received_at))
        return Ignored(event.reason) if isinstance(event, Malformed) else event

    def _decide(self, event: Event) -> list[Hint]:
        if isinstance(event.subject, PullRef) and event.head_sha is not None:
            with self.store.write() as connection:
                at = event.at.timestamp()
                books.saw_head(connection, str(event.subject), event.head_sha, at=at, now=self.clock())
        decision = decide(event, self.desk)
        if isinstance(decision, Ignored):
            self.journal.say("ignored", delivery=event.delivery, why=decision.reason)
            return []
        return carry_out(decision, event, self.store, self.journal, self.clock)

    def _put_off(self, entry: Entry, problem: Unavailable) -> None:
        now = self.clock()
        given_up = now - entry.received_at > DELIVERY_SECONDS
        at = problem.retry_at.timestamp() if problem.retry_at else now + min(300.0, 2.0 ** min(entry.tries, 9))
        if isinstance(problem, NotYet) and entry.tries:
            # A comment that was deleted at once looks like one that is not there yet: it must not hold up the others.
            lane = self.inbox.aside(entry, str(problem), at)
            self.dispatcher.put(Hint("lane", lane), after=at - now)
        else:
            self.inbox.failed(entry.id, str(problem), None if given_up else at)
        self.journal.say("delivery_put_off", delivery=entry.delivery, why=str(problem), given_up=given_up)


def reading_of_configuration(at: float, problem: str) -> dict[str, str]:
    return {"read_at": moment(at).isoformat(), "problem": problem}


def on_a_board(config: Config) -> list[Project]:
    """The projects whose repository has a board."""
    wished = config.board.projects
    return [project for project in config.projects if "*" in wished or project.name in wished]


def boards(
    config: Config,
    world: World,
    store: Store,
    repositories: Repositories,
    masking: Masking,
    *,
    load: Callable[[], tuple[float | None, int]],
) -> Boards:
    def host() -> Host:
        p95, cpus = load()
        return Host(config.fleet.slots, None if p95 is None else round(p95, 2), cpus)

    return Boards(
        repositories,
        store,
        world.runs,
        config.board,
        config.publish,
        identity=identity_of(config),
        masking=masking,
        host=host,
        clock=world.clock,
    )


def identity_of(config: Config) -> Identity:
    """In whose name the bot commits, and with which key it signs."""
    key = config.publish.sign_key_file
    return Identity(*config.publish.identity, signing_key=None if key is None else (config.base / key).absolute())


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def kind_of(settings: object) -> str:
    return str(getattr(settings, "kind", ""))


def around(config: Config, world: World, store: Store) -> Around:
    return Around(
        store=store,
        home=world.home,
        base=config.base,
        environ=world.environ,
        public_url=config.server.url,
        clock=world.clock,
    )


def connect(config: Config, surroundings: Around) -> dict[str, Forge]:
    """A client for each configured forge."""
    found = {
        name: import_module(FORGES[kind_of(settings)]).connect(name, settings, surroundings)
        for name, settings in config.forges.items()
    }
    return Configured("forges", found)


def connect_trackers(config: Config, surroundings: Around) -> dict[str, Tracker]:
    """A client for each configured tracker, and the projects of it that are ours."""
    found = {}
    for name, settings in config.trackers.items():
        projects = tracker_projects(config, name)
        found[name] = import_module(TRACKERS[kind_of(settings)]).connect(
            name, settings, projects, surroundings, repo_map(config)
        )
    return Configured("trackers", found)


def claim_labels(config: Config) -> dict[str, str]:
    """By forge, the label of an issue that a run works."""
    named = {name: getattr(settings, "claim_label", None) for name, settings in config.forges.items()}
    return {name: label for name, label in named.items() if label}


def repo_map(config: Config) -> RepoMap:
    """`[fleet.repo_map]`: each repository in it is one of a project's."""
    repos = {project.repository: project.repo for project in config.projects}
    return RepoMap({key: repos[name] for key, name in config.fleet.repo_map.items()})


def tracker_projects(config: Config, name: str) -> dict[str, Repo]:
    """The tracker's identifiers of our projects, and the repository of each."""
    return {p.tracker_project: p.repo for p in config.projects if p.tracker == name and p.tracker_project}


def tables(config: Config, surroundings: Around) -> dict[str, Table]:
    """Who may deliver: by the last part of the address, with the secrets that are live now."""
    found = {}
    for name, settings in config.forges.items():
        kind = kind_of(settings)
        secrets = import_module(FORGES[kind]).webhook_secrets(name, settings, surroundings)
        found[name] = Table(kind, tuple(Key(secret) for secret in secrets))
    for name, settings in config.trackers.items():
        module = import_module(TRACKERS[kind_of(settings)])
        keys = tuple(Key(secret) for secret in module.webhook_secrets(name, settings, surroundings))
        found[name] = Table(kind_of(settings), keys, module.webhook_token(name, settings, surroundings))
    return found


def secrets_of(config: Config, world: World, senders: Mapping[str, Table], surroundings: Around) -> list[Secret]:
    """Everything that must never be shown."""
    signing = [key.secret for table in senders.values() for key in table.keys]
    signing += [table.token for table in senders.values() if table.token is not None]
    for name, settings in config.trackers.items():
        signing.append(import_module(TRACKERS[kind_of(settings)]).api_key(name, settings, surroundings))
    named = [Secret(world.environ[name]) for name in config.secret_names if world.environ.get(name)]
    return [*signing, *named]


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

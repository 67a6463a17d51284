"""The desk of a running bot: the forge as it is now, the bot's books, and what may run where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from bot.config import Config
from bot.fleetstate import Counts
from bot.forges import Forge
from bot.handoff import starts
from bot.liveness import is_over, reading
from bot.logs import masked_tail
from bot.masking import Masking
from bot.model import AnyTicket, Limit, PullRef, Repo, RunId, Sha, Subject, Thread, TicketRef
from bot.passview import Passes
from bot.projects import Project
from bot.recheck import Finding
from bot.rundir import RunDir, read_json
from bot.store import books, runs
from bot.store.engine import Store
from bot.talk import Talk, Talks
from bot.tasks import Task
from bot.trackers import Ticket, Tracker
from handlers.files import RepositoryFiles
from handlers.views import HoldView, HostView, KnownTask, PlacedRule, RunView, TaskList

RECENT = 5
LINE_BYTES = 400


class Books:
    """What was decided before, in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def held(self, subject: Subject) -> HoldView | None:
        with self._store.read() as connection:
            for key in (str(subject), str(subject.repo)):
                if (found := books.hold_on(connection, key)) is not None:
                    return HoldView(*found)
        return None

    def approved(self, repo: Repo, sha: Sha) -> bool:
        with self._store.read() as connection:
            return books.approved(connection, str(repo), sha)

    def already_obeyed(self, repo: Repo, comment_id: str, line: str, occurrence: int) -> bool:
        with self._store.read() as connection:
            return books.obeyed(connection, str(repo), comment_id, line, occurrence)

    def head_seen(self, pull: PullRef, at: datetime, live: Sha) -> Sha | None:
        with self._store.read() as connection:
            head = books.head_before(connection, str(pull), at.timestamp(), live)
        return Sha(head) if head else live


class Index:
    """The runs, as the index shows them."""

    def __init__(
        self,
        store: Store,
        runs_dir: Path,
        masking: Masking,
        *,
        host: str,
        counts: Callable[[sa.Connection], Counts],
        passes: Callable[[], Passes],
    ) -> None:
        self._store = store
        self._runs_dir = runs_dir
        self._masking = masking
        self._host = host
        self._counts = counts
        self._passes = passes

    def host(self) -> HostView:
        with self._store.read() as connection:
            now = self._counts(connection)
        return HostView(
            slots=now.slots,
            held=now.held,
            peak=now.peak,
            pending=now.pending,
            dispatched=now.dispatched,
            reports=now.reports,
            paused_by=now.paused_by,
            passes=self._passes(),
        )

    def open_on(self, subject: Subject) -> Sequence[RunView]:
        with self._store.read() as connection:
            return [self._view(connection, row) for row in runs.open_runs(connection, subject=str(subject))]

    def recent_on(self, subject: Subject) -> Sequence[RunView]:
        with self._store.read() as connection:
            known = runs.recent(connection, subject=str(subject), limit=RECENT)
            return [self._view(connection, row) for row in known]

    def find(self, subject: Subject, prefix: str) -> Sequence[RunView]:
        with self._store.read() as connection:
            known = runs.recent(connection, subject=str(subject), limit=1000)
            return [self._view(connection, row) for row in known if row.run_id.startswith(prefix)]

    def log_tail(self, run_id: RunId, lines: int) -> Sequence[str]:
        run = RunDir(self._runs_dir / run_id)
        grows = not is_over(reading(run.path))
        return masked_tail(run.worker_log, lines * LINE_BYTES, self._masking, grows=grows).splitlines()[-lines:]

    def _view(self, connection: sa.Connection, row: runs.Row) -> RunView:
        intent = runs.intent(connection, row.run_id)
        if intent is None:
            raise LookupError(row.run_id)
        run = RunDir(self._runs_dir / row.run_id)
        status = read_json(run.status) or {}
        return RunView(
            intent,
            row.phase,
            row.reason,
            runs.position(connection, row),
            row.closed_at is None,
            pid=status.get("pid") if status.get("state") == "running" else None,
            starts=starts(read_json(run.spec) or {}),
            host="" if row.host == self._host else row.host,
        )


class RunningDesk:
    """`handlers.views.Desk` over the store and the forges."""

    def __init__(
        self,
        *,
        config: Config,
        forges: Mapping[str, Forge],
        trackers: Mapping[str, Tracker],
        files: RepositoryFiles,
        runs: Index,
        memory: Books,
        verify: Callable[[RunId], Sequence[Finding]],
        clock: Callable[[], float],
        new_run_id: Callable[[], RunId],
    ) -> None:
        self._config = config
        self._forges = forges
        self._trackers = trackers
        self._talks = Talks(forges, trackers)
        self._files = files
        self.runs = runs
        self.memory = memory
        self._verify = verify
        self._clock = clock
        self._new_run_id = new_run_id

    def forge(self, repo: Repo) -> Forge:
        return self._forges[repo.forge]

    def talk(self, on: Thread) -> Talk:
        return self._talks.about(on)

    def ticket(self, ref: AnyTicket) -> Ticket:
        return self._trackers[ref.tracker].ticket(ref)

    def bot_names(self, on: Thread) -> Collection[str]:
        login = self.talk(on).me().login
        return {"leadsman", login, login.removesuffix("[bot]")}

    def allowed_bots(self, on: Subject) -> Collection[str]:
        config = self._config
        table = config.trackers[on.tracker] if isinstance(on, TicketRef) else config.forges[on.repo.forge]
        return getattr(table, "allowed_bots", ())

    def project_of(self, repo: Repo) -> Project | None:
        return self._config.project_of(repo)

    def tasks(self, project: Project) -> TaskList:
        """The server's tasks for the project come first; the repository's own may not take their names."""
        standing = self._files.of(project.repo)
        own = standing.file
        served, publish = "leadsman.toml", own.publish if own is not None else self._config.publish
        known = {
            task.name: KnownTask(task, served, publish)
            for task in self._config.tasks
            if "*" in task.projects or project.name in task.projects
        }
        placed = [PlacedRule(rule, f"{served} [[rule]] {n}") for n, rule in enumerate(self._config.rules, 1)]
        if own is not None:
            known |= {task.name: KnownTask(task, own.origin, publish) for task in own.tasks if task.name not in known}
            placed += [PlacedRule(rule, f"{own.origin} [[rule]] {n}") for n, rule in enumerate(own.rules, 1)]
        return TaskList(known, placed, standing.warnings, standing.wrong)

    def limit_for(self, task: Task, difficulty: str | None) -> Limit:
        return self._config.budget.limit_for(task, difficulty)

    def changed_between(self, repo: Repo, before: Sha, after: Sha) -> Collection[str] | None:
        return self._forges[repo.forge].changed_between(repo, before, after)

    def verified(self, run: RunView) -> Sequence[Finding]:
        """By the bot's own key and mirror, and the logs in the run's directory."""
        return self._verify(run.run_id)

    def new_run_id(self) -> RunId:
        return self._new_run_id()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

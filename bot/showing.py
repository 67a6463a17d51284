"""What the pages show, read from the store, the run directories and the local forges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bot.config import Config
from bot.dashboard.timeline import steps
from bot.dashboard.views import (
    Board,
    DeliveryLine,
    Fact,
    Mood,
    Remark,
    RepoPage,
    RunLine,
    RunPage,
    ThreadLine,
    ThreadPage,
)
from bot.errors import Gone
from bot.forges import Forge
from bot.forges.local.forge import Local
from bot.forges.local.threads import Thread
from bot.model import BranchRef, Intent, IssueRef, PullRef, Repo, Sha
from bot.slots import is_paused
from bot.store import runs
from bot.store.engine import Store

_MOODS: Mapping[str, Mood] = {"published": "good", "unchanged": "good", "failed": "bad", "lost": "bad"}
COMMIT_BYTES = 200_000
RECENT = 50


class StoreView:
    """`bot.dashboard.views.View`."""

    def __init__(
        self,
        config: Config,
        store: Store,
        runs_dir: Path,
        forges: Mapping[str, Forge],
        *,
        deliveries: Callable[[], Sequence[DeliveryLine]],
        notices: Callable[[], tuple[str, ...]],
    ) -> None:
        self._config = config
        self._store = store
        self._runs_dir = runs_dir
        self._forges = forges
        self.deliveries = deliveries
        self._notices = notices

    @property
    def public_url(self) -> str:
        return self._config.server.url

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def board(self) -> Board:
        with self._store.read() as connection:
            opened = [self._line(row) for row in runs.open_runs(connection)]
            recent = [self._line(row) for row in runs.recent(connection, limit=RECENT) if row.closed_at is not None]
            paused = is_paused(connection)
        notices = (*self._notices(), *(("New runs are paused.",) if paused else ()))
        return Board(
            live=tuple(line for line in opened if line.mood != "waiting"),
            waiting=tuple(line for line in opened if line.mood == "waiting"),
            recent=tuple(recent),
            notices=notices,
        )

    def run(self, run_id: str) -> RunPage | None:
        with self._store.read() as connection:
            row = runs.get(connection, run_id)
            intent = runs.intent(connection, run_id)
        if row is None or intent is None:
            return None
        folder = self._runs_dir / run_id
        there = folder if folder.is_dir() else None
        line = self._line(row)
        return RunPage(
            line=line,
            steps=steps(folder, line.created_at, is_open=line.is_open) if there else (),
            facts=self._facts(row, intent),
            folder=there,
        )

    def _line(self, row: runs.Row) -> RunLine:
        return RunLine(
            id=row.run_id,
            task=row.task,
            project=row.project,
            subject=row.subject,
            subject_url=self._subject_url(row.subject),
            asked_by=row.asked_by,
            phase=row.phase,
            reason=row.reason,
            mood=_mood(row),
            created_at=_time(row.created_at),
            closed_at=_time(row.closed_at) if row.closed_at is not None else None,
        )

    def _subject_url(self, subject: str) -> str:
        forge, _, rest = subject.partition(":")
        name, hash_, number = rest.partition("#")
        local = self._forges.get(forge)
        if not hash_ or not isinstance(local, Local):
            return ""
        return local.thread_url(PullRef(Repo(forge, name), int(number)))

    def _facts(self, row: runs.Row, intent: Intent) -> tuple[Fact, ...]:
        repo = intent.event.subject.repo
        forge = self._forges.get(repo.forge)
        url = forge.commit_url(repo, intent.head) if forge else ""
        facts = [
            Fact("subject", row.subject, self._subject_url(row.subject)),
            Fact("asked by", row.asked_by),
            Fact("commit", intent.head, url),
            Fact("because", intent.head_why),
            Fact("task from", intent.trusted_from),
            Fact("limit", f"{intent.limit.seconds} s, {intent.limit.origin}"),
        ]
        if row.outdated:
            facts.append(Fact("outdated by", row.outdated))
        if row.cancel:
            facts.append(Fact("cancelled by", row.cancel))
        return tuple(facts)

    # ── local forges ─────────────────────────────────────────────────────────────────────────────────────────────

    def repositories(self) -> Sequence[str]:
        return [name for local in self._locals() for name in local.bares.names()]

    def repository(self, repo: str) -> RepoPage | None:
        found = self._find(repo)
        if found is None:
            return None
        local, place = found
        return RepoPage(
            repo=repo,
            place=place,
            default_branch=local.bares.default_branch(repo),
            branches=tuple((name, str(sha)) for name, sha in local.bares.branches(repo).items()),
            threads=tuple(_thread_line(thread) for thread in local.threads.listing(repo)),
        )

    def thread(self, repo: str, number: int) -> ThreadPage | None:
        found = self._find(repo)
        if found is None:
            return None
        local, _ = found
        try:
            thread = local.threads.thread(repo, number)
            head = local.pull(thread.ref).head_sha if isinstance(thread.ref, PullRef) else Sha("")
        except Gone:
            return None
        with self._store.read() as connection:
            lines = [self._line(row) for row in runs.recent(connection, subject=str(thread.ref))]
        return ThreadPage(
            line=_thread_line(thread),
            body=thread.body,
            remarks=tuple(self._remarks(local, thread.ref)),
            runs=tuple(lines),
            head_ref=thread.head_ref,
            base_ref=thread.base_ref,
            head_sha=head,
        )

    def commit(self, repo: str, sha: str) -> str | None:
        found = self._find(repo)
        if found is None:
            return None
        local, _ = found
        return local.bares.shown(repo, Sha(sha), COMMIT_BYTES)

    def _remarks(self, local: Local, on: PullRef | IssueRef | BranchRef) -> Sequence[Remark]:
        if isinstance(on, BranchRef):
            return []
        return [
            Remark(
                id=said.id,
                author=said.author,
                body=said.body,
                at=said.created_at,
                edited=said.updated_at != said.created_at,
                reactions=said.reactions,
            )
            for said in local.threads.conversation(on.repo.name, on.number)
        ]

    def _locals(self) -> Sequence[Local]:
        return [forge for forge in self._forges.values() if isinstance(forge, Local)]

    def _find(self, repo: str) -> tuple[Local, str] | None:
        for local in self._locals():
            try:
                return local, str(local.bares.path(repo))
            except Gone:
                continue
        return None


def _mood(row: runs.Row) -> Mood:
    if row.closed_at is None:
        return "waiting" if row.phase == "waiting" else "live"
    return _MOODS.get(row.reason, "quiet")


def _thread_line(thread: Thread) -> ThreadLine:
    return ThreadLine(
        repo=thread.repo.name,
        number=thread.number,
        kind=thread.kind,
        title=thread.title,
        author=thread.author,
        state=thread.state,
        labels=thread.labels,
        at=thread.at,
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

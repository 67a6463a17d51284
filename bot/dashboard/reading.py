"""What the pages show, read from the store, the directories of the runs, and the local forges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import sqlalchemy as sa

from bot.ages import Ages
from bot.codec import Unreadable
from bot.dashboard.prose import line as shown
from bot.dashboard.standing import standing
from bot.dashboard.timeline import steps
from bot.dashboard.views import (
    Board,
    DeliveryLine,
    Fact,
    Remark,
    RepoPage,
    RunLine,
    RunPage,
    ThreadLine,
    ThreadPage,
)
from bot.errors import Gone
from bot.forges import Forge
from bot.forges.local import Local
from bot.forges.local.threads import Said, Thread
from bot.masking import Masking
from bot.model import (
    BranchRef,
    Command,
    Commented,
    Happening,
    Intent,
    Outcome,
    Published,
    PullRef,
    Repo,
    RuleFired,
    Sha,
    TicketRef,
    Updated,
)
from bot.slots import paused as paused_by
from bot.store import hosts, runs, schema
from bot.store.engine import Store
from bot.trackers import Tracker

RECENT = 50
DELIVERIES = 200
COMMIT_LIMIT = 300_000
"""Characters of a commit's text and changes that its page shows."""


class Reading:
    """The pages' view (`bot.dashboard.views.View`) of this server."""

    def __init__(
        self,
        store: Store,
        runs_dir: Path,
        forges: Mapping[str, Forge],
        *,
        public_url: str,
        trackers: Mapping[str, Tracker] = MappingProxyType({}),
        masking: Masking,
        notices: Callable[[], Sequence[str]] = lambda: (),
        passes: Callable[[], str] = lambda: "",
    ) -> None:
        self._store = store
        self._runs_dir = runs_dir
        self._forges = forges
        self._trackers = trackers
        self._notices = notices
        self._passes = passes
        self.public_url = public_url
        self.masking = masking

    def board(self) -> Board:
        with self._store.read() as connection:
            unfinished = [self._line(connection, row) for row in runs.open_runs(connection)]
            ended = [self._line(connection, row) for row in _ended(connection)]
            paused = ("New runs are paused.",) if paused_by(connection) else ()
        return Board(
            live=tuple(line for line in unfinished if line.mood == "live"),
            waiting=tuple(line for line in unfinished if line.mood == "waiting"),
            recent=tuple(ended),
            notices=tuple(shown(notice) for notice in (*paused, *self._notices())),
            passes=shown(self._passes()),
        )

    def run(self, run_id: str) -> RunPage | None:
        with self._store.read() as connection:
            row = runs.get(connection, run_id)
            if row is None:
                return None
            line = self._line(connection, row)
            intent = runs.intent(connection, run_id)
        folder = self._runs_dir / row.run_id
        is_here = folder.is_dir()
        return RunPage(
            line=line,
            steps=steps(folder, line.created_at, is_open=line.is_open) if is_here else (),
            facts=self._facts(intent, self._outcome(row)) if intent else (),
            folder=folder if is_here else None,
        )

    def deliveries(self) -> Sequence[DeliveryLine]:
        table = schema.deliveries.c
        columns = (
            table.id,
            table.source,
            table.delivery,
            table.event,
            table.lane,
            table.received_at,
            table.state,
            table.tries,
            table.note,
        )
        query = sa.select(*columns).order_by(table.id.desc()).limit(DELIVERIES)
        with self._store.read() as connection:
            rows = connection.execute(query).all()
        return [
            DeliveryLine(
                id=row.id,
                source=shown(row.source),
                delivery=shown(row.delivery),
                event=shown(row.event),
                lane=shown(row.lane),
                received_at=_time(row.received_at),
                state=row.state,
                tries=row.tries,
                note=shown(row.note),
            )
            for row in rows
        ]

    def repositories(self) -> Sequence[str]:
        return sorted({name for forge in self._locals() for name in forge.bares.names()})

    def repository(self, repo: str) -> RepoPage | None:
        forge = self._local(repo)
        if forge is None:
            return None
        return RepoPage(
            repo=repo,
            place=str(forge.bares.path(repo)),
            default_branch=shown(forge.bares.default_branch(repo)),
            branches=tuple((shown(name), sha) for name, sha in forge.bares.branches(repo).items()),
            threads=tuple(_thread_line(thread) for thread in forge.threads.listing(repo)),
        )

    def thread(self, repo: str, number: int) -> ThreadPage | None:
        forge = self._local(repo)
        if forge is None:
            return None
        try:
            thread = forge.threads.thread(repo, number)
            head = ""
            if isinstance(thread.ref, PullRef):
                thread, head = forge.settled(thread.ref)
        except Gone:
            return None
        with self._store.read() as connection:
            rows = runs.recent(connection, subject=str(thread.ref), limit=20)
            lines = tuple(self._line(connection, row) for row in rows)
        return ThreadPage(
            line=_thread_line(thread),
            body=thread.body,
            remarks=tuple(_remark(said) for said in forge.threads.conversation(repo, number)),
            runs=lines,
            head_ref=shown(thread.head_ref),
            base_ref=shown(thread.base_ref),
            head_sha=head,
        )

    def commit(self, repo: str, sha: str) -> str | None:
        forge = self._local(repo)
        if forge is None:
            return None
        return forge.bares.shown(repo, Sha(sha), COMMIT_LIMIT)

    def _locals(self) -> list[Local]:
        return [forge for forge in self._forges.values() if isinstance(forge, Local)]

    def _local(self, repo: str) -> Local | None:
        """The first local forge that has the repository."""
        for forge in self._locals():
            try:
                forge.bare(Repo(forge.name, repo))
            except Gone:
                continue
            return forge
        return None

    def _line(self, connection: sa.Connection, row: runs.Row) -> RunLine:
        phase, reason, mood = standing(row, self._outcome(row))
        intent = runs.intent(connection, row.run_id)
        several = len(hosts.known(connection)) > 1
        return RunLine(
            id=row.run_id,
            task=row.task,
            project=row.project,
            subject=shown(row.subject),
            subject_url=self._asked_at(intent) if intent else "",
            asked_by=shown(row.asked_by),
            phase=phase,
            reason=shown(self.masking(reason)),
            mood=mood,
            created_at=_time(row.created_at),
            closed_at=None if row.closed_at is None else _time(row.closed_at),
            host=shown(row.host) if several else "",
        )

    def _outcome(self, row: runs.Row) -> Outcome | None:
        try:
            ended = Ages(self._runs_dir / row.run_id).ended
        except (Unreadable, OSError):
            return None
        return ended.outcome if ended else None

    def _asked_at(self, intent: Intent) -> str:
        """Where a person asked for it: the comment or note, else the thread, else the branch."""
        event = intent.event
        if isinstance(event.subject, TicketRef):
            return _in_journal(self._trackers.get(event.subject.tracker), event.subject, event.what)
        forge = self._forges.get(event.subject.repo.forge)
        if forge is None:
            return ""
        if isinstance(event.subject, BranchRef):
            return forge.branch_url(event.subject.repo, event.subject.ref.removeprefix("refs/heads/"))
        if isinstance(event.what, Commented):
            return forge.comment_url(event.subject, event.what.comment_id)
        return forge.comment_url(event.subject, "").partition("#")[0]

    def _facts(self, intent: Intent, outcome: Outcome | None) -> tuple[Fact, ...]:
        repo = intent.event.subject.repo
        forge = self._forges.get(repo.forge)
        match intent.reason:
            case Command(line):
                asked = line
            case RuleFired(on, place):
                asked = f"{place} (on {on})"
        facts = [
            Fact("asked with", shown(self.masking(asked))),
            Fact("project", intent.project),
            Fact("starts at", intent.head[:12], forge.commit_url(repo, intent.head) if forge else ""),
            Fact("because it is", shown(intent.head_why)),
            Fact("task from", shown(intent.trusted_from)),
            Fact("limit", f"{intent.limit.seconds} s, {intent.limit.turns} turns ({intent.limit.origin})"),
        ]
        if isinstance(outcome, Published):
            branch = outcome.ref.removeprefix("refs/heads/")
            facts += [
                Fact("published", outcome.tip[:12], forge.commit_url(repo, outcome.tip) if forge else ""),
                Fact("on", shown(branch), forge.branch_url(repo, branch) if forge else ""),
            ]
        return tuple(facts)


def _in_journal(tracker: Tracker | None, ref: TicketRef, what: Happening) -> str:
    """The address of the journal entry that asked, else of the ticket; empty for a tracker that a reload took away."""
    match what:
        case Commented(comment_id=entry) | Updated(note_id=entry):
            return tracker.comment_url(ref, entry) if tracker is not None else ""
        case _:
            return tracker.ticket_url(ref) if tracker is not None else ""


def _ended(connection: sa.Connection) -> Sequence[runs.Row]:
    return [row for row in runs.recent(connection, limit=RECENT) if row.closed_at is not None]


def _thread_line(thread: Thread) -> ThreadLine:
    return ThreadLine(
        repo=thread.repo.name,
        number=thread.number,
        kind=thread.kind,
        title=shown(thread.title),
        author=shown(thread.author),
        state=thread.state,
        labels=tuple(shown(label) for label in thread.labels),
        at=thread.at,
    )


def _remark(said: Said) -> Remark:
    return Remark(
        id=said.id,
        author=shown(said.author),
        body=said.body,
        at=said.created_at,
        edited=said.updated_at > said.created_at,
        reactions=said.reactions,
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

"""Runs in every state, as the store and their directories hold them, for the pages to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import Flask
from flask.testing import FlaskClient

from bot.ages import Ages, Ended
from bot.dashboard import pages
from bot.dashboard.reading import Reading
from bot.journal import append_line
from bot.masking import Masking
from bot.model import (
    Actor,
    Command,
    Commented,
    Event,
    Intent,
    Limit,
    Outcome,
    PullRef,
    Repo,
    RunId,
    Sha,
)
from bot.secret import Secret
from bot.store import runs
from bot.tasks import Task
from tests.bot.local_bench import Bench

SECRET = "hunter2-hunter2"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HEAD = Sha("1234567890" * 4)
STEPS = ("claim", "prepare", "start", "follow", "check", "publish", "give_back", "report", "close")


@dataclass
class Pages:
    """The pages over a store, and the hand that fills it."""

    bench: Bench
    client: FlaskClient
    runs_dir: Path
    count: int = 0

    def run(
        self,
        *,
        task: str = "test",
        by: str = "alice",
        line: str = "/run test",
        number: int = 1,
        ago: timedelta = timedelta(minutes=5),
    ) -> RunId:
        """A run that was asked for and waits."""
        self.count += 1
        at = NOW - ago
        run_id = RunId(f"{at:%Y%m%d-%H%M%S}-{self.count:06x}")
        who = Actor(by, by)
        event = Event(
            source="local",
            delivery=str(self.count),
            subject=PullRef(Repo("local", "acme/shop"), number),
            actor=who,
            what=Commented(str(self.count), who, line, None),
            head_sha=HEAD,
            at=at,
        )
        intent = Intent(
            run_id=run_id,
            event=event,
            ordinal=0,
            reason=Command(line),
            project="shop",
            task=Task(name=task, run=("true",)),
            args=(),
            head=HEAD,
            head_why=f"the head of #{number} when the bot acted",
            base_ref="main",
            trusted_from="leadsman.toml",
            limit=Limit(1800, 20, "difficulty medium"),
            answer=f"a{self.count}",
            at=at,
        )
        with self.bench.store.write() as connection:
            assert runs.add(connection, intent) is None
        self.note(run_id, reason="no_free_slot: all 4 slots are taken; the next free one is offered to it")
        (self.runs_dir / run_id).mkdir()
        return run_id

    def note(self, run_id: RunId, **values: object) -> None:
        with self.bench.store.write() as connection:
            runs.note(connection, run_id, **values)

    def reach(self, run_id: RunId, step: str, *, every: timedelta = timedelta(seconds=20)) -> Path:
        """Takes the run along its road until `step` is done."""
        folder = self.runs_dir / run_id
        at = datetime.strptime(run_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
        for done in STEPS[: STEPS.index(step) + 1]:
            at += every
            append_line(folder / "timeline.jsonl", {"step": done, "at": at.timestamp()})
        self.note(run_id, phase=step, reason="")
        return folder

    def end(self, run_id: RunId, outcome: Outcome, *, took: timedelta = timedelta(minutes=3)) -> Path:
        folder = self.reach(run_id, "close", every=took / 9)
        at = datetime.strptime(run_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC) + took
        Ages(folder).write("ended", Ended(outcome, at))
        self.note(run_id, closed_at=at.timestamp(), reason=outcome.kind)
        return folder

    def get(self, path: str, status: int = 200) -> str:
        """The page's HTML; the status must be `status`."""
        answer = self.client.get(path)
        assert answer.status_code == status, answer.text
        return answer.text


def pages_of(bench: Bench, notices: Sequence[str] = ()) -> Pages:
    """The pages of a server that has nothing but the local forge of `bench`."""
    runs_dir = bench.folder / "runs"
    runs_dir.mkdir()
    reading = Reading(
        bench.store,
        runs_dir,
        {"local": bench.forge},
        public_url="https://leadsman.example.org",
        masking=Masking([Secret(SECRET)]),
        notices=lambda: notices,
    )
    return Pages(bench, application(reading).test_client(), runs_dir)


def application(reading: Reading) -> Flask:
    app = Flask("pages", static_folder=None)
    app.register_blueprint(pages(lambda: reading, clock=lambda: NOW))
    return app

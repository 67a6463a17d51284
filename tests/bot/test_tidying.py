"""What nobody holds is put away; what a run makes while that goes on is not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bot.journal import Journal
from bot.model import Repo
from bot.repositories import Repositories
from bot.statefiles import discard_drafts
from bot.store import StoreSettings, schema
from bot.store.engine import Store, open_store
from bot.tidying import Tidying
from gitops import locks
from gitops.credentials import Remote
from gitops.git import Git
from gitops.mirror import Mirror

SHOP = Repo("local", "acme/shop")


@dataclass(frozen=True)
class Busy(Mirror):
    """A mirror whose lock somebody else has first, and does this meanwhile, once each."""

    meanwhile: list[Callable[[], None]]

    @contextmanager
    def locked(self, timeout: float = locks.SECONDS) -> Iterator[Git]:
        while self.meanwhile:
            self.meanwhile.pop()()
        with super().locked(timeout) as git:
            yield git


class Mirrors:
    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror

    def known_mirror(self, repo: Repo) -> Mirror:
        assert repo == SHOP
        return self.mirror


def begins(store: Store, run_id: str, *, closed: bool = False) -> None:
    texts = dict.fromkeys(("project", "repo", "subject", "task", "asked_by", "answer", "head", "intent"), "x")
    with store.write() as connection:
        row = {"run_id": run_id, "phase": "check", "created_at": 1.0, "due_at": 1.0, **texts}
        connection.execute(schema.runs.insert().values(**row, closed_at=2.0 if closed else None))


def test_what_a_killed_writer_left_of_a_state_file_goes_when_it_is_old(tmp_path: Path) -> None:
    old, fresh, others = ".status.json.17.a5196aea", ".status.json.17.00000000", [".hidden", "status.json", ".a.b.c"]
    for name in (old, fresh, *others):
        (tmp_path / name).touch()
    for name in (old, *others):
        os.utime(tmp_path / name, (0, 0))
    discard_drafts(tmp_path, older=3600)
    assert sorted([fresh, *others]) == sorted(path.name for path in tmp_path.iterdir())


def test_what_runs_make_while_a_sweep_waits_for_its_lock_stays(tmp_path: Path) -> None:
    worktrees, checkouts, runs_dir = (tmp_path / name for name in ("worktrees", "checkouts", "runs"))
    store = open_store(StoreSettings(), tmp_path)
    begins(store, "checked")
    begins(store, "ended", closed=True)
    for path in (worktrees / "ended", worktrees / "never-was", checkouts / "ended" / "tip", runs_dir / "unindexed"):
        path.mkdir(parents=True)
    (worktrees / "unindexed").mkdir()

    def meanwhile() -> None:
        begins(store, "begun")
        for path in (worktrees / "begun", checkouts / "checked" / "tip-1"):
            path.mkdir(parents=True)

    mirror = Busy(tmp_path / "mirrors" / "shop.git", Remote("/nowhere"), [])
    mirror.ensure()
    mirror.meanwhile.append(meanwhile)
    journal = Journal(tmp_path / "events.jsonl", lambda: 1.0)
    repositories = cast("Repositories", Mirrors(mirror))
    Tidying(repositories, store, (worktrees, checkouts), [SHOP], runs_dir, journal=journal).sweep()
    left = {str(path.relative_to(tmp_path)) for folder in (worktrees, checkouts) for path in folder.rglob("*")}
    assert {"worktrees/begun", "worktrees/unindexed", "checkouts/checked", "checkouts/checked/tip-1"} == left
    assert 3 == (tmp_path / "events.jsonl").read_text().count('"event": "swept"')

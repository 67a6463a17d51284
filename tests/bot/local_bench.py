"""A local forge in a temporary folder, and a person's clone of one of its repositories."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bot.forges import Around
from bot.forges.local import Local, People, Settings, connect
from bot.model import IssueRef, PullRef, Repo, Sha
from bot.store import StoreSettings
from bot.store.engine import Store, open_store

REPO = "acme/shop"
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class Ticks:
    """A clock that goes on by a second each time it is read."""

    def __init__(self) -> None:
        self.now = START.timestamp()

    def __call__(self) -> float:
        self.now += 1
        return self.now


def around(folder: Path, store: Store, environ: Mapping[str, str] | None = None) -> Around:
    """Everything is in `folder`, and every reading of the clock is a second later."""
    return Around(
        store=store,
        home=folder,
        base=folder,
        environ=environ or {},
        public_url="http://127.0.0.1:8780",
        clock=Ticks(),
    )


@dataclass
class Clone:
    """A person's working copy."""

    path: Path

    def git(self, *args: str) -> str:
        who = ("-c", "user.name=Alice", "-c", "user.email=alice@localhost", "-c", "commit.gpgSign=false")
        done = subprocess.run(
            ("git", *who, *args), cwd=self.path, check=True, capture_output=True, text=True, timeout=90
        )
        return done.stdout.strip()

    def commit(self, branch: str, path: str, text: str) -> Sha:
        """Commits `text` at `path` onto the branch, made from main where it is new, and pushes it."""
        known = self.git("branch", "--list", branch)
        self.git("switch", "--quiet", *(() if known else ("--create",)), branch)
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"Changes {path}")
        self.git("push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{branch}")
        tip = Sha(self.git("rev-parse", "HEAD"))
        self.git("switch", "--quiet", "main")
        return tip


@dataclass
class Bench:
    """Everything a test needs: the forge, its people, and the store behind both."""

    forge: Local
    people: People
    store: Store
    folder: Path

    repo = Repo("local", REPO)

    def clone(self, name: str = "clone") -> Clone:
        target = self.folder / name
        subprocess.run(
            ("git", "clone", "--quiet", self.forge.git(self.repo).url, str(target)),
            check=True, capture_output=True, timeout=90,
        )  # fmt: skip
        return Clone(target)

    def pull(self, number: int) -> PullRef:
        return PullRef(self.repo, number)

    def issue(self, number: int) -> IssueRef:
        return IssueRef(self.repo, number)


def bench(folder: Path, users: dict[str, str] | None = None) -> Bench:
    """A forge called `local` with the repository acme/shop, in which alice may write and rita may read."""
    settings = Settings.model_validate({"kind": "local", "users": users or {"alice": "write", "rita": "read"}})
    store = open_store(StoreSettings(), folder)
    surroundings = around(folder, store)
    forge = connect("local", settings, surroundings)
    people = People(forge, clock=surroundings.clock)
    people.make_repository(REPO, source=None, author="alice")
    return Bench(forge, people, store, folder)

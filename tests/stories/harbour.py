"""A town whose issues are claimed in public: label, assignee, and notes among the comments."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from bot import epoch
from bot.wake import ring
from tests.stories.town import REPOSITORY, Town
from tests.world import World

CLAIMS = """
claim_enabled = true
claim_status = "at work"
claimable_status = "bot"
"""
LINE = 'kind = "github"\n'


class Harbour(Town):
    """`as_` is the bot's account: bots that share no store may share one, or not."""

    def __init__(
        self, folder: Path, world: World, *, as_: str = "leadsman-bot", claims: str = CLAIMS, **about: int
    ) -> None:
        super().__init__(folder, world, **about)
        self.bot = world.user(as_)
        self.config = self.config.replace(LINE, LINE + claims, 1)

    def ring(self, kind: str, key: str = "") -> None:
        assert ring(self.home, kind, key)

    def tells(self, *deliveries: Any) -> None:
        for delivery in deliveries:
            posted = self.deliver(delivery)
            assert posted.status == 202, posted

    def leadsman(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of the operator's, beside the server or without one."""
        config = self.folder / "leadsman.toml"
        config.write_text(self.config)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "HOME": str(self.folder / "nobody"),
            "BOT_TOKEN": self.bot.token,
            "HOOK_SECRET": self.world.secret,
            "LEADSMAN_POOL_DIR": str(self.folder / "pool"),
        }
        argv = [Path(sys.executable).with_name("leadsman"), "--home", str(self.home), "--config", str(config), *words]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=90, check=False)

    # what can be seen

    def notes(self, issue: Any, start: str = "") -> list[str]:
        """The notes of the protocol that stand there, whoever wrote them."""
        starts = ("claimed by", "claim released", "# REPORT -", "conceded to")
        with self.world.lock:
            bodies = [one.body for one in issue.comments]
        return [body for body in bodies if body.startswith(starts) and body.startswith(start)]

    def note(self, issue: Any, start: str) -> str:
        return self.until(f"a note {start!r}", lambda: next(iter(self.notes(issue, start)), None))

    def shown(self, issue: Any) -> tuple[list[str], list[str]]:
        """Its labels, and whom it is assigned to."""
        with self.world.lock:
            return [label.name for label in issue.labels], [person.login for person in issue.assignees]

    def polled(self) -> bool:
        with sqlite3.connect(self.home / "leadsman.db") as connection:
            return connection.execute("select 1 from settings where key like 'poll:%'").fetchone() is not None

    def works(self, count: int = 1) -> list[Path]:
        """The runs whose command was started, once there are so many."""
        return self.until(
            f"{count} at work",
            lambda: found if len(found := [r for r in self.runs() if (r / "status.json").exists()]) >= count else None,
        )

    def hold(self, name: str = "hold") -> Path:
        """A task that goes on until the file is there, and commits something."""
        go = self.folder / "go"
        self.task(name, ["sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done; echo x > done.txt"])
        return go

    def another_claims(self, issue: Any, run: str, *, who: str = "other-bot") -> None:
        """The claim of a bot that shares nothing with ours."""
        issue.comment(who, epoch.claim_note("leadsman@elsewhere", "2026-01-01T00:00:00Z", run, "http://elsewhere/x"))
        issue.label("at work", by=who)
        issue.assign(who, by=who)

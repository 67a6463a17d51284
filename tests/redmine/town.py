"""A town with a Redmine beside its GitHub: projects whose tickets come from there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.redmine.site import Site
from tests.stories.town import Town
from tests.world import Repository, World

TRACKER = """
[trackers.work]
kind = "redmine"
url = "{url}"
api_key_env = "REDMINE_KEY"
webhook_secret_env = ["TICKET_SECRET"]
webhook_token_env = "TICKET_TOKEN"
claim_enabled = {enabled}
poll_seconds = 5
formatting = "{formatting}"
run_link_field = "Run"
"""

TOKEN = "0123456789abcdef0123456789abcdef"


class TicketTown(Town):
    """`as_` is the bot's user on the site."""

    def __init__(
        self,
        folder: Path,
        world: World,
        site: Site,
        *,
        as_: str = "bot",
        slots: int = 4,
        enabled: bool = True,
        formatting: str = "markdown",
    ) -> None:
        super().__init__(folder, world, slots=slots)
        self.site = site
        self.variables = {
            "REDMINE_KEY": site.facts["keys"][as_],
            "TICKET_SECRET": "tickets are signed with this",
            "TICKET_TOKEN": TOKEN,
        }
        self.config += TRACKER.format(url=site.url, enabled=str(enabled).lower(), formatting=formatting)

    def shop(self, **project: Any) -> Repository:
        return self.repo(tracker="work", tracker_project="demo", **project)

    def start(self, *, crash: str = "") -> None:
        super().start(crash=crash)
        self.until("the site was polled", lambda: "polled:work:demo" in self.settings())

    def settings(self) -> dict[str, str]:
        with closing(sqlite3.connect(self.home / "leadsman.db")) as connection:
            return dict(connection.execute("select key, value from settings"))

    def poll(self) -> None:
        """Now, not at its next time."""
        from bot.wake import ring

        assert ring(self.home, "poll", "work")

    def ring(self, kind: str, key: str = "") -> None:
        from bot.wake import ring

        assert ring(self.home, kind, key)

    def note(self, number: int, word: str) -> str:
        """The ticket's note that holds `word`, once it is there."""
        return self.until(
            f"a note with {word!r} on ticket {number}",
            lambda: next((note for note in self.site.notes(number) if word in note), None),
        )

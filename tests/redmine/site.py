"""The tests' Redmine, as people and bots use it. `up.sh` brings it up."""

from __future__ import annotations

import fcntl
import html
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from bot.fleet import RepoMap
from bot.model import Repo, TicketRef
from bot.secret import Secret
from bot.trackers.redmine import Settings
from bot.trackers.redmine.client import Redmine
from bot.trackers.redmine.door import Door

UP = Path(__file__).with_name("up.sh")
REPO = Repo("github", "acme/shop")


@contextmanager
def alone() -> Iterator[None]:
    """Keeps other sessions of tests on this machine waiting: there is one instance, and each test resets it."""
    with Path("/tmp/leadsman-redmine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Site:
    """One running Redmine. Calls of people go straight to its API, past the bot's own client."""

    def __init__(self, instance: str, environment: Mapping[str, str] | None = None) -> None:
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(environment or {})}
        self.facts: dict[str, Any] = json.loads(Path(f"/var/lib/redmine/{instance}/data/facts.json").read_text())
        self.url: str = self.facts["url"]

    def up(self, *words: str) -> None:
        subprocess.run([UP, *words], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def sql(self, text: str) -> None:
        self.up("sql", text)

    def call(self, who: str, method: str, path: str, body: object = None) -> requests.Response:
        key = {"X-Redmine-API-Key": self.facts["keys"][who]} if who else {}
        return requests.request(method, f"{self.url}/{path}", json=body, headers=key, timeout=60)

    def ticket(self, subject: str = "Mend it", *, who: str = "dana", **fields: Any) -> int:
        """Files a ticket; `status`, `priority` and `category` by name."""
        issue: dict[str, Any] = {"project_id": self.facts["projects"]["demo"], "subject": subject, **self._ids(fields)}
        answer = self.call(who, "post", "issues.json", {"issue": issue})
        assert answer.status_code == 201, answer.text
        return int(answer.json()["issue"]["id"])

    def change(self, number: int, *, who: str = "dana", **fields: Any) -> None:
        answer = self.call(who, "put", f"issues/{number}.json", {"issue": self._ids(fields)})
        assert answer.status_code == 204, answer.text

    def _ids(self, fields: dict[str, Any]) -> dict[str, Any]:
        tables = {"status": "statuses", "priority": "priorities", "category": "categories", "assigned_to": "users"}
        return {
            f"{name}_id" if name in tables else name: self.facts[tables[name]][value] if name in tables else value
            for name, value in fields.items()
        }

    def seen(self, number: int) -> dict[str, Any]:
        answer = self.call("admin", "get", f"issues/{number}.json?include=journals")
        issue: dict[str, Any] = answer.json()["issue"]
        return issue

    def status(self, number: int) -> str:
        return str(self.seen(number)["status"]["name"])

    def notes(self, number: int) -> list[str]:
        journals: Sequence[Mapping[str, Any]] = self.seen(number)["journals"]
        return [str(journal["notes"]) for journal in journals if journal["notes"]]

    def page(self, number: int, who: str = "dana") -> str:
        """The ticket's page as a browser shows it."""
        with requests.Session() as session:
            form = session.get(f"{self.url}/login", timeout=60).text
            token = html.unescape(re.findall(r'name="authenticity_token" value="([^"]+)"', form)[0])
            words = {"username": who, "password": f"password of {who}", "authenticity_token": token}
            session.post(f"{self.url}/login", data=words, timeout=60)
            return session.get(f"{self.url}/issues/{number}", timeout=60).text

    def formatting(self, name: str) -> None:
        """How it reads notes from now on: `textile`, `common_mark`."""
        self.sql(
            f"UPDATE settings SET value = '{name}', updated_on = datetime('now', '+1 second') "
            "WHERE name = 'text_formatting'"
        )

    def age(self, number: int, seconds: int) -> None:
        """Makes the ticket, and all that stands in its journal, so much older."""
        for table, where in (("issues", f"id = {number}"), ("journals", f"journalized_id = {number}")):
            self.sql(
                f"UPDATE {table} SET created_on = datetime(created_on, '-{seconds} seconds'), "
                f"updated_on = datetime(updated_on, '-{seconds} seconds') WHERE {where}"
                if table == "issues"
                else f"UPDATE {table} SET created_on = datetime(created_on, '-{seconds} seconds') WHERE {where}"
            )

    def ref(self, number: int) -> TicketRef:
        return TicketRef(REPO, "work", number)


def client(site: Site, who: str = "bot", *, key: str | None = None, url: str | None = None, **settings: Any) -> Redmine:
    """The bot's own client, as a user of the site."""
    table = Settings(
        **{
            "kind": "redmine",
            "url": url or site.url,
            "api_key_env": "KEY",
            "claim_enabled": True,
            "formatting": "markdown",
            **settings,
        }
    )
    projects = {"demo": REPO, "secret": Repo("github", "acme/secret")}
    return Redmine("work", table, projects, Door(table, Secret(key or site.facts["keys"][who]), lambda: 0.0), RepoMap())

"""What the commands of the local forge share: which forge is meant, and how the bot hears of what a person did."""

from __future__ import annotations

import http.client
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import click

from bot import home
from bot.cli.clicked import Setting
from bot.config import Config
from bot.errors import Gone, Unavailable, UserError
from bot.forges import Around
from bot.forges import local as kind
from bot.forges.local import Local, People, account
from bot.forges.local.bares import is_name
from bot.home import Holder
from bot.model import Event, Repo
from bot.store.engine import open_store
from bot.wake import ring
from webhooks.inbox import Delivery, Inbox, Verdict
from webhooks.sources import local as source

POST_SECONDS = 10.0
_SUBJECT = re.compile(r"(.+)#([0-9]{1,9})")

as_option = click.option(
    "--as", "author", metavar="USER", default=account, show_default="your account", help="Who does it."
)


@dataclass(frozen=True, slots=True)
class Told:
    """Where the news of an act went: to a server's door, or into the store; `note` says so to people."""

    to: Literal["server", "store"]
    note: str
    server: bool = True
    """Whether there is a server to work it now."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A pull request or issue that a person named."""

    forge: Local
    people: People
    repo: str
    number: int

    def __str__(self) -> str:
        return f"{self.repo}#{self.number}"


class Desk:
    """The local forges of a configuration, and the way to the bot that serves them."""

    def __init__(self, config: Config, around: Around) -> None:
        self.config = config
        self.around = around
        self._tables = {name: one for name, one in config.forges.items() if isinstance(one, kind.Settings)}
        self.forges: Mapping[str, Local] = {
            name: kind.connect(name, settings, around) for name, settings in self._tables.items()
        }
        if not self.forges:
            raise UserError(
                f"{config.source or 'leadsman.toml'} has no local forge. Add one:\n\n"
                '[forges.local]\nkind = "local"\nroot = "repositories"',
                code=2,
            )

    def forge(self, text: str) -> tuple[Local, str]:
        """The forge and the name of the repository that `text` means: `acme/shop`, or `<forge>:acme/shop`."""
        named, colon, repo = text.rpartition(":")
        if not is_name(repo):
            raise UserError(f"{text!r} is no repository. A repository is named like acme/shop.", code=2)
        if colon and named not in self.forges:
            raise UserError(f"There is no local forge {named}. There is: {', '.join(self.forges)}.", code=2)
        if colon:
            return self.forges[named], repo
        having = [forge for forge in self.forges.values() if _has(forge, repo)]
        if len(having) > 1 or (not having and len(self.forges) > 1):
            among = having or list(self.forges.values())
            raise UserError(f"Which forge? {' or '.join(f'{forge.name}:{repo}' for forge in among)}.", code=2)
        return having[0] if having else next(iter(self.forges.values())), repo

    def people(self, forge: Local) -> People:
        return People(forge, clock=self.around.clock)

    def subject(self, text: str) -> Subject:
        match = _SUBJECT.fullmatch(text)
        if match is None:
            raise UserError(f"{text!r} is no pull request or issue. One is named like acme/shop#7.", code=2)
        forge, repo = self.forge(match[1])
        return Subject(forge, self.people(forge), repo, int(match[2]))

    def tell(self, forge: Local, events: Iterable[Event]) -> Told:
        """Delivers what happened, signed, to the server of this home; or keeps it in the store, for the next one."""
        holder = home.held_by(self.around.home)
        secret = kind.webhook_secrets(forge.name, self._tables[forge.name], self.around)[0]
        told = Told("store", "No server runs here: it is kept for the next `leadsman serve`.", server=False)
        for event in events:
            headers, body = source.write(event, secret)
            refusal = "" if holder is None else _offered(holder, forge.name, headers, body)
            if holder is not None and not refusal:
                told = Told("server", f"The server at {holder.address} has it.")
                continue
            self._keep(event, headers, body)
            if holder is not None:
                where = f"at {holder.address}" if holder.address else f"with pid {holder.pid}"
                told = Told("store", f"The server {where} did not take it ({refusal}): it is in its queue.")
        return told

    def _keep(self, event: Event, headers: Mapping[str, str], body: bytes) -> None:
        lane = f"{event.source}:{event.subject.repo.name}"
        names = {name.lower(): text for name, text in headers.items()}
        name = source.event(names, {})
        unwanted = source.unwanted(name, {})
        delivery = Delivery(
            source=event.source,
            delivery=event.delivery,
            event=name,
            headers=names,
            body=body,
            lane=lane,
            ignored=unwanted.reason if unwanted else "",
        )
        inbox = Inbox(self.around.store, self.around.clock, limit=self.config.server.queue_limit)
        verdict = inbox.remember(delivery)
        if verdict not in {Verdict.ACCEPTED, Verdict.DUPLICATE}:  # a server that was killed may have it, and not say so
            raise Unavailable(f"It is written down, but the bot can't be told: its queue says `{verdict.value}`.")
        ring(self.around.home, "lane", lane)

    def advice(self, forge: Local, repo: str) -> str:
        """What keeps the bot from answering in this repository, and how to change it; or nothing."""
        if self.config.project_of(Repo(forge.name, repo)) is not None:
            return ""
        return (
            f"The bot does not answer in {repo} yet: it is in no project of {self.config.source}. Add one:\n\n"
            f'[[project]]\nname = "{repo.partition("/")[2]}"\nforge = "{forge.name}"\nrepository = "{repo}"'
        )


@contextmanager
def desk(setting: Setting) -> Iterator[Desk]:
    """The desk of this home, its store open."""
    config = setting.config()
    folder = home.make(setting.home)
    store = open_store(config.store, folder)
    try:
        yield Desk(
            config,
            Around(
                store=store,
                home=folder,
                base=config.base,
                environ=os.environ,
                public_url=_public_url(config, folder),
                clock=time.time,
            ),
        )
    finally:
        store.close()


def _public_url(config: Config, folder: Path) -> str:
    """Where the pages are: as configured, else where the server really listens (its port may be any free one)."""
    holder = home.held_by(folder)
    if config.server.public_url is None and holder is not None and holder.address:
        return holder.address
    return config.server.url


def _has(forge: Local, repo: str) -> bool:
    try:
        forge.bares.path(repo)
    except Gone:
        return False
    return True


def _offered(holder: Holder, forge: str, headers: Mapping[str, str], body: bytes) -> str:
    """As `_post`, to whoever holds the home: it may have no door, or none yet."""
    return _post(f"{holder.address}/webhooks/{forge}", headers, body) if holder.address else "it does not listen"


def _post(url: str, headers: Mapping[str, str], body: bytes) -> str:
    """Posts it; an empty text once it is taken, else why it was not."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=POST_SECONDS)
    try:
        connection.request("POST", parts.path, body, dict(headers))
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException) as problem:
        return str(problem) or type(problem).__name__
    finally:
        connection.close()
    return "" if answer.status in {200, 202} else f"{answer.status} {answer.reason}"

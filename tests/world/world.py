"""One stateful GitHub on loopback: people, repositories, real git, real HTTP, signed deliveries.

with World(tmp_path) as world:
    repo = world.repo("acme/shop", files={"README.md": "hello"}).allow("alice", "write")
    pull = repo.pull(head="topic", files={"new.txt": "x"}, author="alice")
    said = pull.comment("alice", "/run fix")
    world.deliver(said, to="http://127.0.0.1:8780/webhooks/github")
"""

from __future__ import annotations

import fnmatch
import functools
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Self

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.world.calls import Allowance
from tests.world.deliveries import Delivery
from tests.world.exchange import API, Request
from tests.world.faults import Faults
from tests.world.gitrepo import Files
from tests.world.repository import Repository
from tests.world.server import Server
from tests.world.shapes import Shapes
from tests.world.state import App, Attempt, Hook, Installation, User, Viewer


@dataclass(frozen=True, slots=True)
class Posted:
    """What a receiver answered to a delivery."""

    status: int
    body: str


class World:
    """`url` is the web and git, `api_url` the REST API; `clock` may be set to move time."""

    def __init__(self, folder: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.git_root = folder / "git"
        self.clock = clock
        self.lock = threading.RLock()
        self.closing = threading.Event()
        self.faults = Faults()
        self.requests: list[Request] = []
        self.errors: list[BaseException | None] = []
        """What went wrong in the world itself: a test that leaves one behind fails when the world closes."""
        self.outbox: list[Delivery] = []
        self.secret = secrets.token_hex(16)
        self.users: dict[str, User] = {}
        self.repositories: dict[str, Repository] = {}
        self.apps: dict[str, App] = {}
        self.installations: dict[int, Installation] = {}
        self.token_life = timedelta(hours=1)
        self._installation_tokens: dict[str, tuple[Viewer, datetime]] = {}
        self._revoked: set[str] = set()
        self._allowances: dict[str, Allowance] = {}
        self._ids = count(1001)
        self._event_ids = count(7)
        self._later: list[threading.Thread] = []
        self._server = Server(self)
        self._port = self._server.port
        self.url = f"http://127.0.0.1:{self._port}"
        self.api_url = self.url + API
        self.shapes = Shapes(self.api_url, self.url)
        self.ghost = self.user("ghost")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self.errors:
            raise AssertionError(f"The world itself failed: {self.errors!r}") from self.errors[0]

    def close(self) -> None:
        self.closing.set()
        self.down()
        for thread in self._later:
            thread.join(5)

    def now(self) -> datetime:
        return self.clock()

    def new_id(self) -> int:
        return next(self._ids)

    def new_event_id(self) -> int:
        return next(self._event_ids)

    # people and repositories

    def user(self, login: str, *, type: str = "User") -> User:  # noqa: A002 - GitHub's own word
        """The account, made when there is none. Its `token` is a personal access token."""
        with self.lock:
            if login not in self.users:
                token = f"ghp_{secrets.token_hex(18)}"
                self.users[login] = User(self.new_id(), login, type, token, self.now())
            return self.users[login]

    def person(self, who: str | User) -> User:
        return who if isinstance(who, User) else self.user(who)

    def rename(self, who: str | User, login: str) -> None:
        """The account has a new login; the old one is free for anybody to take."""
        with self.lock:
            user = self.person(who)
            del self.users[user.login]
            user.login = login
            self.users[login] = user

    def repo(self, name: str, *, files: Files | None = None, private: bool = False) -> Repository:
        """`owner/name`, with one commit on its default branch; an owner that is new is an organization."""
        with self.lock:
            owner, _, short = name.partition("/")
            repo = Repository(
                self, self.users.get(owner) or self.user(owner, type="Organization"), short, private=private
            )
            self.repositories[name] = repo
            repo.commit(files or {"README.md": f"# {short}\n"}, by=owner, message="First commit")
            return repo

    def app(self, slug: str, **permissions: str) -> App:
        """A GitHub App with a key of its own. It may write contents and comments where not said otherwise."""
        with self.lock:
            key = _key(slug)
            usual = {"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write"}
            app = App(
                id=self.new_id(),
                slug=slug,
                name=slug.title(),
                owner=self.user(f"{slug}-makers", type="Organization"),
                bot=self.user(f"{slug}[bot]", type="Bot"),
                private_key=_pem(key),
                public_key=key.public_key().public_bytes(*_PUBLIC).decode(),
                created_at=self.now(),
                permissions=usual | permissions,
            )
            self.apps[str(app.id)] = app
            return app

    def install(self, app: App, *repos: Repository) -> Installation:
        """One installation, on repositories of one owner."""
        with self.lock:
            names = {repo.full_name for repo in repos}
            one = Installation(self.new_id(), app, repos[0].owner, names, self.now())
            self.installations[one.id] = one
            return one

    def installation_of(self, repo: Repository) -> Installation | None:
        return next((one for one in self.installations.values() if repo.full_name in one.repositories), None)

    # tokens and rights

    def viewer(self, token: str) -> Viewer | None:
        """Whose token it is; None for one that is unknown, revoked or has run out."""
        with self.lock:
            if token in self._revoked:
                return None
            if token in self._installation_tokens:
                viewer, expires_at = self._installation_tokens[token]
                return viewer if self.now() < expires_at else None
            return next((Viewer(user) for user in self.users.values() if user.token == token), None)

    def revoke(self, token: str) -> None:
        self._revoked.add(token)

    def renew(self, token: str) -> None:
        self._revoked.discard(token)

    def installation_token(self, one: Installation, names: frozenset[str]) -> tuple[str, datetime]:
        token, expires_at = f"ghs_{secrets.token_hex(18)}", self.now() + self.token_life
        self._installation_tokens[token] = (Viewer(one.app.bot, one, names), expires_at)
        one.tokens_made += 1
        return token, expires_at

    def reachable(self, name: str, viewer: Viewer | None) -> Repository | None:
        """The repository, where the viewer may know of it."""
        with self.lock:
            known = self.repositories.items()
            repo = next((repo for spelled, repo in known if spelled.casefold() == name.casefold()), None)
            return repo if repo is not None and self.may(repo, viewer, "pull") else None

    def may(self, repo: Repository, viewer: Viewer | None, what: str) -> bool:
        if viewer is None or viewer.installation is None:
            return repo.may(viewer.user if viewer else None, what)
        if viewer.repositories is None or repo.full_name not in viewer.repositories:
            return what == "pull" and not repo.private
        return what in ("pull", "triage") or (
            what == "push" and viewer.installation.app.permissions["contents"] == "write"
        )

    def allowance(self, key: str) -> Allowance:
        """Of calls; `key` is the viewer's."""
        limit = 60 if key == "127.0.0.1" else 5000
        return self._allowances.setdefault(key, Allowance(limit, self.now() + timedelta(hours=1)))

    def exhaust(self, who: User | Installation, *, seconds: float) -> datetime:
        """No calls are left, for so many seconds; returns when they are again."""
        viewer = Viewer(who) if isinstance(who, User) else Viewer(who.app.bot, who)
        with self.lock:
            allowance = self.allowance(viewer.key)
            allowance.used, allowance.resets_at = allowance.limit, self.now() + timedelta(seconds=seconds)
            return allowance.resets_at

    # what goes wrong, on order

    def fail_next(
        self,
        pattern: str,
        status: int,
        *,
        times: int | None = 1,
        headers: dict[str, str] | None = None,
        body: Any = None,
    ) -> None:
        """The next requests that fit (`POST /repos/*/comments`, or a path alone) are answered so; None: all of them."""
        answer = {"message": "It was ordered to fail."} if body is None else body
        self.faults.order(pattern, status=status, times=times, headers=headers or {}, body=answer)

    def slow(self, pattern: str, seconds: float, *, times: int | None = None) -> None:
        self.faults.order(pattern, seconds=seconds, times=times)

    def heal(self) -> None:
        self.faults.heal()

    def down(self) -> None:
        """Nothing listens any more, and open connections are cut."""
        self._server.stop()

    def up(self) -> None:
        self._server = Server(self, self._port)

    # what can be looked at

    def asked(self, pattern: str) -> list[Request]:
        """The requests so far that fit (`GET /repos/*`, or a path alone)."""
        method, _, path = pattern.rpartition(" ")
        return [one for one in self.requests if method in ("", one.method) and fnmatch.fnmatchcase(one.path, path)]

    def told(self, event: str, action: str | None = None, *, number: int | None = None) -> Delivery:
        """The newest delivery of that kind."""
        for delivery in reversed(self.outbox):
            thread = delivery.payload.get("pull_request") or delivery.payload.get("issue") or {}
            if delivery.event == event and action in (None, delivery.action) and number in (None, thread.get("number")):
                return delivery
        raise LookupError(f"The world has told of no {event} {action or ''} {number or ''}")

    def deliver(self, delivery: Delivery, *, to: str) -> Posted:
        """Posts it as GitHub does; posted again, it is a redelivery. GitHub gives up after ten seconds."""
        answer = requests.post(to, data=delivery.body, headers=delivery.headers, timeout=60, allow_redirects=False)
        return Posted(answer.status_code, answer.text)

    def send(self, delivery: Delivery) -> list[Attempt]:
        """Delivers it to the webhooks that are there for it: the repository's and the App's. One try each."""
        with self.lock:
            repo = self.repositories[delivery.payload["repository"]["full_name"]]
            app = installation.app if (installation := self.installation_of(repo)) else None
            hooks = [hook for hook in (*repo.hooks, app and app.hook) if hook is not None and hook.active]
        return [self.attempt(hook, delivery, repo.id) for hook in hooks]

    def attempt(self, hook: Hook, delivery: Delivery, repository_id: int, *, again: bool = False) -> Attempt:
        """One try, noted with the webhook. What can't be reached counts as 502."""
        try:
            posted = self.deliver(delivery.signed(hook.secret or self.secret), to=hook.url)
            code, status = posted.status, "OK" if posted.status < 300 else f"Invalid HTTP Response: {posted.status}"
        except requests.RequestException:
            code, status = 502, "failed to connect to host"
        with self.lock:
            made = Attempt(self.new_id(), delivery, repository_id, self.now(), again, code, status)
            hook.attempts.append(made)
            return made

    def later(self, work: Callable[[], object]) -> None:
        """Does something after the answer that is being given."""
        thread = threading.Thread(target=work, daemon=True)
        self._later.append(thread)
        thread.start()

    def hook(self, app: App, url: str, *, secret: str | None = None) -> Hook:
        """The App's webhook."""
        with self.lock:
            app.hook = Hook(self.new_id(), url, ["*"], secret, True, self.now())
            return app.hook


_PUBLIC = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@functools.cache
def _key(slug: str) -> rsa.RSAPrivateKey:
    """Made once for all worlds: it takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _pem(key: rsa.RSAPrivateKey) -> str:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()

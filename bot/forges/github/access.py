"""The ways into GitHub: an account's token, or a GitHub App's key that gives tokens for an hour."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from github import Auth
from github.Repository import Repository

from bot.errors import Forbidden, Gone, UserError
from bot.forges.github import settings as configured
from bot.forges.github import values
from bot.forges.github.door import Credential, Door
from bot.forges.github.pace import Pace
from bot.forges.github.settings import Settings
from bot.model import Actor, Repo
from bot.secret import Secret

Clock = Callable[[], datetime]

_REPOSITORY = re.compile(r"[A-Za-z0-9_-]+/(?!\.{1,2}$)[A-Za-z0-9_.-]+")

_LEAST_LEFT = timedelta(minutes=10)
"""What a token still lives when it is handed out: a push that begins with it must end with it."""

_YOUNG = timedelta(minutes=1)
"""A refused token that is no older is not to blame for the refusal."""


class Access(Protocol):
    """What the client needs of a way in; raises as the forge's calls do."""

    clock: Clock
    is_app: bool

    @property
    def own(self) -> Door:
        """Speaks for the account, or for the App itself, about no repository."""

    def door(self, repo: Repo) -> Door: ...

    def secret(self, repo: Repo) -> Secret:
        """The token that git is given for this repository."""

    def me(self) -> Actor: ...
    def close(self) -> None: ...


@contextmanager
def there(access: Access, repo: Repo, what: str, *, writes: bool = False) -> Iterator[Repository]:
    """The repository, unread, for one call that `what` names."""
    if not _REPOSITORY.fullmatch(repo.name):
        raise Gone(f"{repo.name!r} is no name of a repository on GitHub.")
    with access.door(repo).client(f"{what} of {repo.name}", writes=writes) as client:
        yield client.get_repo(repo.name)


def access_to(name: str, settings: Settings, *, environ: Mapping[str, str], base: Path, clock: Clock) -> Access:
    """The way in that `[forges.<name>]` gives. Raises `UserError` for a secret that is missing or no key."""
    secret = configured.token(name, settings, environ=environ, base=base)
    if secret is not None:
        return TokenAccess(settings, secret, clock)
    key = configured.private_key(name, settings, base=base)
    if not _is_rsa(key):
        raise UserError(
            f"[forges.{name}] private_key_file: {settings.private_key_file} holds no RSA private key in PEM form. "
            "Download the key from the App's settings."
        )
    return AppAccess(settings, settings.app_id or 0, key, clock)


def _is_rsa(key: Secret) -> bool:
    try:
        return isinstance(load_pem_private_key(key.reveal().encode(), password=None), RSAPrivateKey)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False


class TokenAccess:
    """One account's token, for everything."""

    is_app = False

    def __init__(self, settings: Settings, secret: Secret, clock: Clock) -> None:
        self.clock = clock
        pace = Pace(settings.write_pause_seconds, clock)
        self._credential = Credential(Auth.Token(secret.reveal()), secret, pace)
        self.own = Door(settings, clock, lambda: self._credential)

    def door(self, repo: Repo) -> Door:  # noqa: ARG002 - one token for all of them
        return self.own

    def secret(self, repo: Repo) -> Secret:  # noqa: ARG002
        return self._credential.secret

    def me(self) -> Actor:
        with self.own.client("the bot's own account") as client:
            return values.actor(client.get_user())

    def close(self) -> None:
        self.own.close()


class AppAccess:
    """A GitHub App: signed with its key it asks for tokens, each for one repository, and renews them before they end.

    https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app
    """

    is_app = True

    def __init__(self, settings: Settings, app_id: int, key: Secret, clock: Clock) -> None:
        self._settings = settings
        self.clock = clock
        signed = Credential(Auth.AppAuth(app_id, key.reveal()), key, self._pace())
        self.own = Door(settings, clock, lambda: signed)
        self._lock = threading.Lock()
        self._paces: dict[int, Pace] = {}
        self._installed: dict[str, Installed] = {}

    def _pace(self) -> Pace:
        return Pace(self._settings.write_pause_seconds, self.clock)

    def pace_of(self, installation: int) -> Pace:
        """GitHub counts by installation."""
        with self._lock:
            return self._paces.setdefault(installation, self._pace())

    def _on(self, repo: Repo) -> Installed:
        with self._lock:
            if repo.name not in self._installed:
                self._installed[repo.name] = Installed(self, self._settings, repo.name, self.clock)
            return self._installed[repo.name]

    def door(self, repo: Repo) -> Door:
        return self._on(repo).door

    def secret(self, repo: Repo) -> Secret:
        return self._on(repo).credential().secret

    def me(self) -> Actor:
        """The App's bot account. It is read with the token of any installation: an App's key reads only the App."""
        with self.own.client("the App itself") as client:
            _, app = client.requester.requestJsonAndCheck("GET", "/app")
            _, installations = client.requester.requestJsonAndCheck("GET", "/app/installations", {"per_page": 100})
            login = f"{app['slug']}[bot]"
            numbers = [
                int(one["id"]) for one in installations if one.get("suspended_at") is None
            ]  # those give no token
        if not numbers:
            lacks = "suspended wherever it is installed" if installations else "installed nowhere"
            raise Forbidden(f"The App {login} is {lacks}. It has to be installed on the repositories it should serve.")
        lent = self.lend(numbers[0], {})
        door = Door(self._settings, self.clock, lambda: lent.credential)
        try:
            with door.client(f"the account {login}") as client:
                return values.actor(client.get_user(login))
        finally:
            door.close()

    def lend(self, installation: int, scope: dict[str, object]) -> Lent:
        """A new token of an installation, for the `repositories` of the scope or for all it has."""
        with self.own.client("a token of the App") as client:
            path = f"/app/installations/{installation}/access_tokens"
            _, made = client.requester.requestJsonAndCheck("POST", path, input=scope)
            secret, ends = Secret(str(made["token"])), datetime.fromisoformat(str(made["expires_at"]))
        credential = Credential(Auth.Token(secret.reveal()), secret, self.pace_of(installation))
        return Lent(credential, self.clock(), ends)

    def close(self) -> None:
        for door in (self.own, *(one.door for one in list(self._installed.values()))):
            door.close()


@dataclass(frozen=True, slots=True)
class Lent:
    """An installation's token."""

    credential: Credential
    made_at: datetime
    expires_at: datetime


class Installed:
    """The App on one repository: its installation there, and the token for it."""

    def __init__(self, app: AppAccess, settings: Settings, repo: str, clock: Clock) -> None:
        self._app = app
        self._repo = repo
        self._clock = clock
        self._lock = threading.Lock()
        self._installation: int | None = None
        self._lent: Lent | None = None
        self.door = Door(settings, clock, self.credential, self._renew)

    def credential(self) -> Credential:
        """Of a token that lives for a while; many threads at once ask for one."""
        with self._lock:
            if self._lent is None or self._clock() > self._lent.expires_at - _LEAST_LEFT:
                self._lent = self._borrow()
            return self._lent.credential

    def _borrow(self) -> Lent:
        if self._installation is None:
            self._installation = self._find()
        try:
            return self._app.lend(self._installation, {"repositories": [self._repo.partition("/")[2]]})
        except (Gone, Forbidden):
            self._installation = None  # it may have been removed and installed again, under another number
            raise

    def _find(self) -> int:
        with self._app.own.client(f"the App's installation on {self._repo}") as client:
            path = f"/repos/{quote(self._repo)}/installation"
            _, found = client.requester.requestJsonAndCheck("GET", path)
            return int(found["id"])

    def _renew(self, refused: Credential) -> bool:
        """A token has the rights that the App had when it was made: an older one may lack what it was given since."""
        with self._lock:
            if self._lent is None or self._lent.credential is not refused:
                return True
            old = self._clock() - self._lent.made_at > _YOUNG
            self._lent = None
            return old

"""PyGithub under one credential, for many threads: the one place where GitHub is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version

import github
from github import Auth

from bot.errors import Forbidden, Unavailable
from bot.forges.github.failures import translated
from bot.forges.github.pace import Pace
from bot.forges.github.settings import Settings
from bot.secret import Secret


@dataclass(frozen=True, slots=True)
class Credential:
    """A token, as PyGithub and as git take it, and the limits that it shares."""

    auth: Auth.Auth
    secret: Secret
    pace: Pace


class Door:
    """PyGithub clients, kept to be used again.

    A client serves one thread at a time: PyGithub keeps the request it is about to send in the connection object, so
    that two threads with one client would send each other's.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime],
        credential: Callable[[], Credential],
        renew: Callable[[Credential], bool] = lambda _: False,
    ) -> None:
        """`renew`: drops a refused credential, and says whether the next one may fare better."""
        self._settings = settings
        self._clock = clock
        self._credential = credential
        self._renew = renew
        self._lock = threading.Lock()
        self._idle: list[tuple[Credential, github.Github]] = []

    @contextmanager
    def client(self, what: str, *, writes: bool = False) -> Iterator[github.Github]:
        """A client for one call, named by `what` in errors; raises `Gone`, `Forbidden` and `Unavailable` only."""
        credential = self._credential()
        credential.pace.enter(writes=writes)
        client = self._take(credential)
        try:
            with translated(what, credential.pace, self._clock):
                yield client
        except Forbidden as refused:
            if self._renew(credential):
                raise Unavailable(f"{refused} The next try has a fresh token.") from refused
            raise
        finally:
            with self._lock:
                self._idle.append((credential, client))

    def _take(self, credential: Credential) -> github.Github:
        with self._lock:
            kept = [client for known, client in self._idle if known is credential]
            outdated = [client for known, client in self._idle if known is not credential]
            client = kept.pop() if kept else None
            self._idle = [(credential, one) for one in kept]
        for one in outdated:
            one.close()
        return client or self._new(credential)

    def _new(self, credential: Credential) -> github.Github:
        return github.Github(
            auth=credential.auth,
            base_url=self._settings.api_url,
            timeout=self._settings.timeout_seconds,
            user_agent=f"leadsman/{version('leadsman')}",
            per_page=100,
            retry=None,  # a call that failed is the queue's to try again: nobody sleeps in here
            seconds_between_requests=0,
            seconds_between_writes=0,  # `Pace` counts over all clients of a token, PyGithub over one
            lazy=True,  # `get_repo` and its like only make a URL; what is read of them is asked for then
        )

    def close(self) -> None:
        """Ends the connections that no call is using."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, client in idle:
            client.close()

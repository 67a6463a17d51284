"""python-redmine with a deadline, and what Redmine's failures mean in our own words."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.cookiejar import DefaultCookiePolicy
from importlib.metadata import version
from typing import Any

import redminelib
import requests
from redminelib import exceptions
from requests.adapters import HTTPAdapter

from bot.errors import Forbidden, Gone, Unavailable
from bot.secret import Secret
from bot.trackers.redmine.settings import Settings

Json = dict[str, Any]
CONNECTIONS = 16
LATER = timedelta(seconds=60)


class Stale(Unavailable):
    """Another write of the same ticket came at the same time: nothing was written, and once more is right."""


class KeyRefused(Unavailable):
    """The bot's own key does not count now. It says nothing of the ticket, and is renewed sooner or later: what is owed
    there waits for it."""


class _Deadline(HTTPAdapter):
    """python-redmine gives no time-out to a request, and has no way to be told one."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        super().__init__(pool_maxsize=CONNECTIONS)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        options["timeout"] = self._seconds
        return super().send(request, **options)


class Door:
    """The one place where a Redmine is asked. Calls raise `Gone`, `Forbidden` or `Unavailable` only. Thread-safe."""

    def __init__(self, settings: Settings, key: Secret, clock: Callable[[], float]) -> None:
        self._url = settings.url
        self._clock = clock
        agent = {"User-Agent": f"leadsman/{version('leadsman')}"}
        # A redirect would take the key along to wherever it leads.
        redmine = redminelib.Redmine(self._url, key=key.reveal(), requests={"headers": agent, "max_redirects": 0})
        self._engine = redmine.engine
        self._engine.session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        for scheme in ("http://", "https://"):
            self._engine.session.mount(scheme, _Deadline(settings.timeout_seconds))

    def get(self, path: str, what: str, **query: object) -> Json:
        """The JSON object at `<path>.json`; `what` names it in errors."""
        with self._translated(what):
            answer = self._engine.request("get", f"{self._url}/{path}.json", params=query)
        if not isinstance(answer, dict):
            raise Unavailable(f"Redmine's answer for {what} is no JSON object.")
        return answer

    def put(self, path: str, what: str, body: Mapping[str, object]) -> None:
        with self._translated(what):
            self._engine.request("put", f"{self._url}/{path}.json", data=dict(body))

    def upload(self, name: str, content: bytes) -> str:
        """The token of a file that is Redmine's from now on."""
        with self._translated(f"the file {name}"):
            answer = self._engine.request(
                "post",
                f"{self._url}/uploads.json",
                params={"filename": name},
                headers={"Content-Type": "application/octet-stream"},
                data=content,
            )
            return str(answer["upload"]["token"])

    def public(self, path: str) -> str | None:
        """A page as anybody may read it; None where it is not shown to everybody."""
        try:
            with requests.Session() as session:
                session.mount("http", _Deadline(10))
                answer = session.get(f"{self._url}/{path}", allow_redirects=False)
        except requests.RequestException:
            return None
        return answer.text if answer.status_code == 200 else None

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except exceptions.ResourceNotFoundError as error:
            raise Gone(f"Redmine has no {what}.") from error
        except exceptions.AuthError as error:
            raise KeyRefused(f"Redmine refused the API key for {what} (401).") from error
        except exceptions.ForbiddenError as error:
            raise Forbidden(f"Redmine refused {what} (403): a right is missing, or the project is closed.") from error
        except exceptions.RequestEntityTooLargeError as error:
            raise Forbidden(f"Redmine, or a proxy before it, refused {what} (413): it is too large.") from error
        except (exceptions.ValidationError, exceptions.ConflictError) as error:
            raise self._refused(what, str(error) if isinstance(error, exceptions.ValidationError) else "") from error
        except exceptions.UnknownError as error:
            raise self._unknown(what, error.status_code) from error
        except exceptions.BaseRedmineError as error:
            raise Unavailable(f"Redmine failed at {what}: {type(error).__name__}.") from error
        except requests.RequestException as error:
            raise Unavailable(f"Redmine can't be reached for {what} ({type(error).__name__}).") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # a proxy's page in place of an answer
            raise Unavailable(f"The answer for {what} is not Redmine's ({type(error).__name__}).") from error

    def _refused(self, what: str, messages: str) -> Exception:
        """A 422 without a message is a write that came second; the messages of others are in the user's language."""
        if messages:
            return Forbidden(f"Redmine refused {what}: {' '.join(messages.split())[:300]}")
        # Spread, so that those who collided do not meet again.
        at = datetime.fromtimestamp(self._clock() + 1 + random.uniform(0, 2), UTC)  # noqa: S311
        return Stale(f"{what} was changed at the same moment.", retry_at=at)

    def _unknown(self, what: str, status: int) -> Exception:
        text = f"Redmine answered {status} for {what}."
        if status == 429:
            return Unavailable(text, retry_at=datetime.fromtimestamp(self._clock(), UTC) + LATER)
        if status == 410:
            return Gone(text)
        return Unavailable(text) if status >= 500 or status in (408, 425) else Forbidden(text)

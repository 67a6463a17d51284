"""What GitHub's failures, and PyGithub's, mean in our own words: `Gone`, `Forbidden` or `Unavailable`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import github
import requests

from bot.errors import Forbidden, Gone, Unavailable
from bot.forges.github.pace import Pace

_LONGEST_WAIT = timedelta(days=1)

_NOT_AS_DOCUMENTED = (
    github.BadAttributeException,
    AssertionError,
    AttributeError,
    KeyError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""PyGithub does not check what it is given: an answer that is not GitHub's (a proxy's page, a redirect to another
host) shows as whatever fails first."""


@contextmanager
def translated(what: str, pace: Pace, clock: Callable[[], datetime]) -> Iterator[None]:
    """Runs a call and the reading of its answer; `what` names the call in the text of what it may raise."""
    try:
        yield
    except github.GithubException as error:
        raise _meaning(error, what, pace, clock()) from error
    except requests.RequestException as error:
        raise Unavailable(f"GitHub can't be reached for {what} ({type(error).__name__}).") from error
    except _NOT_AS_DOCUMENTED as error:
        raise Unavailable(f"The answer for {what} is not what GitHub documents ({type(error).__name__}).") from error
    pace.worked()


def _meaning(error: github.GithubException, what: str, pace: Pace, now: datetime) -> Exception:
    """https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api"""
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    text = f"GitHub answered {error.status} for {what}: {_message(error)}"
    if _limited(error.status, headers, _message(error)):
        return Unavailable(text, retry_at=pace.refused(_until(headers, now)))
    if error.status in (404, 409, 410, 451):  # 409: a repository without a commit; 451: taken down
        return Gone(text)
    if error.status >= 500 or error.status in (408, 425):
        return Unavailable(text, retry_at=_until(headers, now))
    return Forbidden(text)


def _message(error: github.GithubException) -> str:
    data = error.data
    message = data.get("message") if isinstance(data, Mapping) else None
    details = data.get("errors") if isinstance(data, Mapping) else None
    text = f"{message or 'no reason given'}" + (f" {details}" if details else "")
    return " ".join(text.split())[:300]


def _limited(status: int, headers: Mapping[str, str], message: str) -> bool:
    """https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit"""
    if status == 429:
        return True
    words = message.lower()
    if status == 403:
        spent = "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
        return spent or "rate limit" in words or "abuse detection" in words
    return status == 422 and "submitted too quickly" in words


def _until(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """When to ask again: Retry-After first, else the reset of a spent allowance."""
    try:
        if "retry-after" in headers:
            until = _retry_after(headers["retry-after"], now)
        elif headers.get("x-ratelimit-remaining") == "0" and "x-ratelimit-reset" in headers:
            # A whole second, and nobody says whether it is reset at its beginning or its end.
            until = datetime.fromtimestamp(float(headers["x-ratelimit-reset"]) + 1, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return min(until, now + _LONGEST_WAIT)


def _retry_after(value: str, now: datetime) -> datetime:
    """Seconds, or a date."""
    if value.isdecimal():
        return now + timedelta(seconds=int(value))
    at = parsedate_to_datetime(value)
    return at if at.tzinfo else at.replace(tzinfo=UTC)

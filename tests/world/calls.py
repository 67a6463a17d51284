"""One call of the REST API: who asks, for what, and the refusals that GitHub answers with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

from tests.world.exchange import API, Answer, Request

if TYPE_CHECKING:
    from tests.world.repository import Repository
    from tests.world.state import App, User, Viewer
    from tests.world.threads import Issue, Pull
    from tests.world.world import World


class Refuse(Exception):
    """An answer that is no success. `errors` are what a 422 lists."""

    def __init__(self, status: int, message: str, errors: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors

    def answer(self) -> Answer:
        body: dict[str, Any] = {"message": self.message, "documentation_url": "https://docs.github.com/rest"}
        body["status"] = str(self.status)
        if self.errors is not None:
            body["errors"] = self.errors
        return Answer(self.status, body)


def not_found() -> Refuse:
    return Refuse(404, "Not Found")


def invalid(resource: str, name: str, code: str = "invalid") -> Refuse:
    return Refuse(422, "Validation Failed", [{"resource": resource, "field": name, "code": code}])


@dataclass(slots=True)
class Call:
    world: World
    request: Request
    viewer: Viewer | None = None
    app: App | None = None
    args: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What its rate limit is counted by."""
        if self.app is not None:
            return f"app {self.app.id}"
        return "127.0.0.1" if self.viewer is None else self.viewer.key

    @property
    def query(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(self.request.query).items()}

    @property
    def body(self) -> dict[str, Any]:
        try:
            body = self.request.json
        except ValueError:
            raise Refuse(400, "Problems parsing JSON") from None
        return body if isinstance(body, dict) else {}

    def text(self, resource: str, name: str) -> str:
        """A field of the body that must be there."""
        value = self.body.get(name)
        if not isinstance(value, str) or not value:
            raise invalid(resource, name, "missing_field")
        return value

    @property
    def user(self) -> User:
        if self.viewer is None:
            raise Refuse(401, "Requires authentication")
        return self.viewer.user

    def number(self, name: str) -> int:
        if not self.args[name].isascii() or not self.args[name].isdigit():
            raise not_found()
        return int(self.args[name])

    @property
    def repo(self) -> Repository:
        """What the viewer may not see does not exist."""
        repo = self.world.reachable(f"{self.args['owner']}/{self.args['repo']}", self.viewer)
        if repo is None:
            raise not_found()
        return repo

    def needs(self, what: str) -> Repository:
        """The repository, where the viewer may do that (pull, triage, push, maintain, admin)."""
        repo = self.repo
        if not self.world.may(repo, self.viewer, what):
            mine = self.viewer is not None and self.viewer.installation is not None
            raise Refuse(
                403, "Resource not accessible by integration" if mine else f"Must have {what} rights to Repository."
            )
        return repo

    def issue(self) -> Issue:
        thread = self.repo.threads.get(self.number("issue_number"))
        if thread is None:
            raise not_found()
        if not self.repo.has_issues:
            raise Refuse(410, "Issues has been disabled in this repository.")
        return thread

    def pull(self) -> Pull:
        for pull in self.repo.pulls():
            if pull.number == self.number("pull_number"):
                return pull
        raise not_found()

    def page(self, items: list[Any], wrap: str | None = None) -> Answer:
        """One page of a list, with the links to the others.

        https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api
        """
        size = min(int(self.query.get("per_page", "30")), 100)
        page = int(self.query.get("page", "1"))
        last = max(1, -(-len(items) // size))
        shown = items[(page - 1) * size : page * size]
        numbers = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        if page >= last:
            del numbers["next"], numbers["last"]
        if page == 1:
            del numbers["prev"], numbers["first"]
        base = f"{self.world.url}{API}{self.request.path}"
        links = (f'<{base}?{urlencode(self.query | {"page": n})}>; rel="{rel}"' for rel, n in numbers.items())
        headers = {"Link": ", ".join(links)} if numbers else {}
        return Answer(200, {"total_count": len(items), wrap: shown} if wrap else shown, headers)


@dataclass(slots=True)
class Allowance:
    """How many calls somebody has left until it starts afresh.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """

    limit: int
    resets_at: datetime
    used: int = 0

    def use(self, now: datetime) -> bool:
        if now >= self.resets_at:
            self.used, self.resets_at = 0, now + timedelta(hours=1)
        if self.used >= self.limit:
            return False
        self.used += 1
        return True

    @property
    def figures(self) -> dict[str, int]:
        left = self.limit - self.used
        return {"limit": self.limit, "remaining": left, "used": self.used, "reset": int(self.resets_at.timestamp())}

    def headers(self) -> dict[str, str]:
        shown = {f"X-RateLimit-{name.capitalize()}": str(value) for name, value in self.figures.items()}
        return shown | {"X-RateLimit-Resource": "core"}

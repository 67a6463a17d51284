"""Every answer of the simulated GitHub is one that GitHub's published description allows."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
import requests

from tests.world import App, Pull, Repository, World
from tests.world.published import openapi
from tests.world.rest import CALLS

Json = dict[str, Any]


class Client:
    """Plain HTTP, as one account or installation."""

    def __init__(self, world: World, token: str | None, kind: str = "token") -> None:
        self._base = world.api_url
        self._headers = {"Authorization": f"{kind} {token}"} if token else {}

    def __call__(self, call: str, body: Any = None, **headers: str) -> requests.Response:
        method, _, path = call.partition(" ")
        url = f"{self._base}{path}"
        return requests.request(method, url, json=body, headers=self._headers | headers, timeout=60)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as world:
        yield world


@pytest.fixture
def shop(world: World) -> Repository:
    return world.repo("acme/shop", files={"a/b.txt": "one\n", "c.txt": "two\n"}).allow("alice", "admin")


@pytest.fixture
def pull(shop: Repository) -> Pull:
    return shop.pull(head="topic", files={"a/b.txt": None, "d.txt": "one\n"}, author="alice", title="Move it")


@pytest.fixture
def alice(world: World) -> Client:
    return Client(world, world.user("alice").token)


def signed(app: App, *, life: int = 540, key: str | None = None, **claims: Any) -> str:
    now = int(time.time())
    return jwt.encode(
        {"iat": now - 60, "exp": now + life, "iss": str(app.id)} | claims, key or app.private_key, "RS256"
    )


def tour(world: World, shop: Repository, pull: Pull) -> None:
    """Makes each call that there is, as whoever may."""
    alice = Client(world, world.user("alice").token)
    app = world.app("leadsman")
    one = world.install(app, shop)
    key = Client(world, signed(app), "Bearer")
    R, sha = "/repos/acme/shop", shop.sha()  # noqa: N806 - as in the table of calls
    world.hook(app, "http://127.0.0.1:1/app")
    hook = shop.hook("http://127.0.0.1:1/hook", secret="s")
    told = pull.comment("bob", "/run fix")
    said, (missed, missed_too) = told.comment, world.send(told)
    assert said is not None
    shop.issue("Plain", author="bob", labels=("bug",)).label("bot", by="alice")
    token = key(f"POST /app/installations/{one.id}/access_tokens", {"repositories": ["shop"]}).json()["token"]
    bot = Client(world, token)
    blob = alice(f"GET {R}/contents/c.txt").json()["sha"]
    run = bot(f"POST {R}/check-runs", {"name": "leadsman", "head_sha": sha, "status": "in_progress"}).json()["id"]
    shop.commit({"x": "y"}, branch="run")
    for call in (
        "GET /rate_limit", "GET /user", "GET /users/bob", f"GET {R}",
        f"GET {R}/collaborators/bob/permission", f"GET {R}/hooks",
        f"GET {R}/hooks/{hook.id}/deliveries", f"GET {R}/issues/comments?sort=updated&since=2020-01-01T00:00:00Z",
        f"GET {R}/issues/events", f"GET {R}/activity?ref=refs/heads/topic", f"GET {R}/rules/branches/main",
        f"GET {R}/branches", f"GET {R}/branches/topic", f"GET {R}/git/ref/heads/topic", f"GET {R}/git/blobs/{blob}",
        f"GET {R}/contents/a", f"GET {R}/commits/{sha}", f"GET {R}/commits/main", f"GET {R}/commits/{sha}/check-runs",
        f"GET {R}/pulls", f"GET {R}/compare/main...topic", f"GET {R}/pulls/1", f"GET {R}/pulls/1/files",
        f"GET {R}/issues?state=all",
        f"GET {R}/issues/1", f"GET {R}/issues/2", f"GET {R}/issues/1/comments", f"GET {R}/issues/comments/{said.id}",
    ):  # fmt: skip
        assert 200 == alice(call).status_code, call
    shop.rules["main"] = ("pull_request", "non_fast_forward")
    new_hook = {"name": "web", "config": {"url": "https://bot.example/hook", "secret": "s"}, "events": ["push"]}
    answers: list[tuple[str, Json | None, int]] = [
        (f"POST {R}/hooks", new_hook, 201),
        (f"POST {R}/hooks/{hook.id}/deliveries/{missed.id}/attempts", None, 202),
        (f"POST {R}/statuses/{sha}", {"state": "success", "context": "leadsman"}, 201),
        (f"GET {R}/commits/{sha}/status", None, 200),
        (f"POST {R}/pulls", {"title": "From the bot", "head": "run", "base": "main"}, 201),
        (f"POST {R}/issues", {"title": "New", "labels": ["bug"]}, 201),
        (f"PATCH {R}/issues/2", {"state": "closed"}, 200),
        (f"POST {R}/issues/1/labels", {"labels": ["bot", "a b"]}, 200),
        (f"DELETE {R}/issues/1/labels/a%20b", None, 200),
        (f"POST {R}/issues/1/assignees", {"assignees": ["alice", "nobody"]}, 201),
        (f"DELETE {R}/issues/1/assignees", {"assignees": ["alice"]}, 200),
        (f"GET {R}/issues/1/timeline", None, 200),
        (f"GET {R}/issues?labels=bot", None, 200),
        (f"POST {R}/issues/1/comments", {"body": "hello"}, 201),
        (f"PATCH {R}/issues/comments/{said.id}", {"body": "edited"}, 200),
        (f"POST {R}/issues/comments/{said.id}/reactions", {"content": "eyes"}, 201),
        (f"POST {R}/issues/comments/{said.id}/reactions", {"content": "eyes"}, 200),
        (f"GET {R}/issues/comments/{said.id}/reactions", None, 200),
        (f"DELETE {R}/issues/comments/{said.id}", None, 204),
    ]
    for call, body, status in answers:
        assert status == alice(call, body).status_code, call
    output = {"title": "Done", "summary": "All well"}
    assert 200 == bot(f"PATCH {R}/check-runs/{run}", {"conclusion": "success", "output": output}).status_code
    for path in ("/app", "/app/installations", f"{R}/installation", "/app/hook/config", "/app/hook/deliveries"):
        assert 200 == key(f"GET {path}").status_code
    assert 202 == key(f"POST /app/hook/deliveries/{missed_too.id}/attempts").status_code


@pytest.mark.needs("npm")
def test_every_answer_is_as_github_describes_it(world: World, shop: Repository, pull: Pull) -> None:
    tour(world, shop, pull)
    made = {f"{request.method} {request.template}" for request in world.requests}
    assert set(CALLS) == made
    assert [] == [problem for request in world.requests for problem in openapi().problems(request)]


@pytest.mark.needs("npm")
def test_the_description_notices_what_is_missing(world: World, shop: Repository, pull: Pull) -> None:
    tour(world, shop, pull)
    judged = 0
    for request in world.requests:
        if request.template in (
            "/repos/{owner}/{repo}/pulls/{pull_number}",
            "/repos/{owner}/{repo}/issues/comments/{comment_id}",
        ):
            for name in ("id", "user", "created_at", "html_url"):
                spoiled = copy.copy(request)
                if request.answer:
                    spoiled.answer = {key: value for key, value in request.answer.items() if key != name}
                    assert openapi().problems(spoiled), (request.template, name)
                    judged += 1
    assert judged >= 12


@pytest.mark.needs("npm")
def test_refusals_are_as_github_describes_them(world: World, shop: Repository, pull: Pull, alice: Client) -> None:
    R = "/repos/acme/shop"  # noqa: N806
    shop.commit({"x": "y"}, branch="same")
    world.repo("acme/secret", private=True)
    reader, nobody = Client(world, world.user("bob").token), Client(world, None)
    new = {"title": "t", "base": "main"}
    for client, call, body, status in (
        (alice, f"POST {R}/pulls", new | {"head": "none"}, 422),
        (alice, f"POST {R}/pulls", new | {"head": "topic"}, 422),
        (alice, f"POST {R}/pulls", new | {"head": "main"}, 422),
        (alice, f"POST {R}/pulls", new | {"head": "same", "base": "none"}, 422),
        (alice, f"POST {R}/issues/1/comments", {"body": "x" * 65_537}, 422),
        (alice, f"POST {R}/issues/1/comments", {"body": ""}, 422),
        (alice, f"POST {R}/issues/99/comments", {"body": "x"}, 404),
        (alice, f"GET {R}/issues/0", None, 404),
        (alice, f"GET {R}/pulls/2", None, 404),
        (alice, f"GET {R}/contents/none", None, 404),
        (alice, f"GET {R}/contents/c.txt?ref=none", None, 404),
        (alice, f"GET {R}/git/ref/heads/top", None, 404),
        (alice, f"GET {R}/branches/none", None, 404),
        (alice, f"GET {R}/collaborators/nobody/permission", None, 404),
        (alice, f"POST {R}/statuses/{'1' * 40}", {"state": "success"}, 422),
        (alice, f"POST {R}/check-runs", {"name": "x", "head_sha": shop.sha()}, 403),
        (alice, "GET /repos/acme/secret", None, 404),
        (reader, f"GET {R}/hooks", None, 404),
        (reader, f"GET {R}/collaborators/bob/permission", None, 403),
        (reader, f"POST {R}/statuses/{shop.sha()}", {"state": "success"}, 403),
        (reader, f"POST {R}/issues/1/labels", {"labels": ["x"]}, 403),
        (nobody, f"POST {R}/issues/1/comments", {"body": "x"}, 401),
        (nobody, "GET /user", None, 401),
        (Client(world, "ghp_wrong"), f"GET {R}", None, 401),
    ):  # fmt: skip
        assert status == client(call, body).status_code, call
        request = world.requests[-1]
        if request.template is not None:  # a token that is no good is refused before the call is looked at
            assert [] == openapi().problems(request)


def test_lists_come_in_pages_with_links_to_the_others(world: World, pull: Pull, alice: Client) -> None:
    for n in range(7):
        pull.comment("alice", str(n))
    first = alice("GET /repos/acme/shop/issues/1/comments?per_page=3")
    assert {"next", "last"} == set(first.links)
    assert first.links["next"]["url"].startswith(world.api_url)
    last = requests.get(first.links["last"]["url"], timeout=60)
    assert (["6"], {"prev", "first"}) == ([one["body"] for one in last.json()], set(last.links))
    assert {} == alice("GET /repos/acme/shop/issues/1/comments").links


def test_an_answer_that_has_not_changed_is_not_sent_again(pull: Pull, alice: Client) -> None:
    etag = alice("GET /repos/acme/shop/pulls/1").headers["ETag"]
    again = {"If-None-Match": etag}
    assert (304, b"") == ((same := alice("GET /repos/acme/shop/pulls/1", **again)).status_code, same.content)
    pull.push({"e.txt": "new"})
    assert 200 == alice("GET /repos/acme/shop/pulls/1", **again).status_code


def test_times_are_whole_seconds(world: World, shop: Repository, pull: Pull, alice: Client) -> None:
    pull.comment("bob", "hi")
    alice("GET /repos/acme/shop/pulls/1")
    alice("GET /repos/acme/shop/issues/1/comments")
    times = [value for request in world.requests for key, value in _leaves(request.answer) if key.endswith("_at")]
    assert len(times) > 10
    assert all(value is None or (len(value) == 20 and value.endswith("Z")) for value in times)


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _leaves(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one, key)
    else:
        yield key, value


def test_each_account_has_an_allowance_that_is_counted_down(world: World, shop: Repository, alice: Client) -> None:
    left = [int(alice("GET /user").headers["X-RateLimit-Remaining"]) for _ in range(3)]
    assert [4999, 4998, 4997] == left
    resets_at = world.exhaust(world.user("alice"), seconds=60)
    spent = alice("GET /user")
    assert (403, "0", str(int(resets_at.timestamp()))) == (
        spent.status_code,
        spent.headers["X-RateLimit-Remaining"],
        spent.headers["X-RateLimit-Reset"],
    )
    assert 200 == Client(world, world.user("bob").token)("GET /user").status_code


def test_an_app_is_known_by_its_signature_alone(world: World, shop: Repository) -> None:
    app, other = world.app("leadsman"), world.app("other")
    world.install(app, shop)

    def status(token: str) -> int:
        return Client(world, token, "Bearer")("GET /app").status_code

    assert 200 == status(signed(app))
    assert 401 == status(signed(app, key=other.private_key))
    assert 401 == status(signed(app, life=1200))
    assert 401 == status(signed(app, life=-120))
    assert 404 == status(signed(app, iss="7"))
    none = jwt.encode({"iss": str(app.id), "iat": 1, "exp": 9**10}, "", algorithm="none")
    assert 401 == status(none)
    assert 401 == status("a.b.c")


def test_an_installation_token_reaches_its_repositories_only(world: World, shop: Repository) -> None:
    secret = world.repo("acme/secret", private=True)
    app = world.app("leadsman")
    one = world.install(app, shop, secret)
    key = Client(world, signed(app), "Bearer")
    token = key(f"POST /app/installations/{one.id}/access_tokens", {"repositories": ["shop"]}).json()["token"]
    bot = Client(world, token)
    assert [200, 404] == [bot(f"GET /repos/acme/{name}").status_code for name in ("shop", "secret")]
    assert 422 == key(f"POST /app/installations/{one.id}/access_tokens", {"repositories": ["none"]}).status_code

"""What the simulated GitHub sends: the published examples' fields, bytes that arrive as signed, one id for ever."""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.world import Delivery, Pull, Repository, World
from tests.world.deliveries import ping
from tests.world.published import examples


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as world:
        yield world


@pytest.fixture
def shop(world: World) -> Repository:
    return world.repo("acme/shop").allow("alice", "write")


@pytest.fixture
def pull(shop: Repository) -> Pull:
    return shop.pull(head="topic", files={"a.txt": "one\n"}, author="alice")


def life(world: World, shop: Repository, pull: Pull) -> list[Delivery]:
    """One delivery of each kind."""
    issue = shop.issue("Broken", author="bob")
    said = issue.comment("bob", "hello")
    shop.hook("http://127.0.0.1:1/hook", secret="hush")
    shop.delete_branch("topic2", by="alice") if shop.commit({"b": "c"}, branch="topic2") else None
    return [
        ping(shop),
        issue.opened,
        issue.label("bug", by="alice"),
        issue.unlabel("bug", by="alice"),
        issue.assign("alice", by="bob"),
        issue.unassign("alice", by="bob"),
        said,
        issue.edit(said, "hello again"),
        issue.delete(said),
        pull.opened,
        pull.label("bot", by="alice"),
        pull.push({"a.txt": "two\n"}),
        pull.close(by="alice"),
        world.told("push"),
    ]


def fields(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """(place, JSON type) of every value; all elements of a list stand at one place."""
    yield place, {bool: "boolean", int: "number", float: "number", str: "text", type(None): "null"}.get(type(value), "")
    if isinstance(value, dict):
        for key, one in value.items():
            yield from fields(one, f"{place}/{key}")
    elif isinstance(value, list):
        for one in value:
            yield from fields(one, f"{place}/*")


def expected_fields(payloads: list[Any]) -> dict[str, set[str]]:
    """Places that all examples of one kind have, with the types that stand there in any of them."""
    found = [list(fields(payload)) for payload in payloads]
    always = set.intersection(*({place for place, _ in one} for one in found))
    types: dict[str, set[str]] = {}
    for one in found:
        for place, kind in one:
            types.setdefault(place, set()).add(kind)
    return {place: types[place] for place in always}


# Lists that may be empty, what only some accounts have, and what GitHub has stopped sending since these were taken.
NOT_ALWAYS = ("/*", "/assignee/", "/performed_via_github_app", "/milestone/", "/installation", "/hook/app_id")


@pytest.mark.needs("npm")
def test_deliveries_have_the_fields_of_githubs_examples(world: World, shop: Repository, pull: Pull) -> None:
    told = life(world, shop, pull)
    for delivery in told:
        alike = [one for one in examples()[delivery.event] if one.get("action") == delivery.action]
        if delivery.event == "push":
            alike = [one for one in alike if not one["deleted"] and one["commits"]]
        if delivery.event == "ping":
            alike = [one for one in alike if one["hook"]["type"] == "Repository"]
        wanted = expected_fields(alike)
        ours: dict[str, set[str]] = {}
        for place, kind in fields(delivery.payload):
            ours.setdefault(place, set()).add(kind)
        name = f"{delivery.event}.{delivery.action}"
        assert len(wanted) > 20, name
        missing = {
            place for place in wanted.keys() - ours.keys() if not any(part in f"{place}/" for part in NOT_ALWAYS)
        }
        assert set() == missing, name
        other = {
            place: ours[place] - kinds - {"null"}
            for place, kinds in wanted.items()
            if place in ours and kinds != {"null"}
        }
        assert {} == {place: kinds for place, kinds in other.items() if kinds}, name


def test_a_comment_on_a_pull_request_says_so_and_one_on_an_issue_does_not(shop: Repository, pull: Pull) -> None:
    on_pull = pull.comment("bob", "/run fix").payload
    on_issue = shop.issue("Broken", author="bob").comment("bob", "/run fix").payload
    assert f"/repos/acme/shop/pulls/{pull.number}" in on_pull["issue"]["pull_request"]["url"]
    assert "pull_request" not in on_issue["issue"]
    assert "/pull/1#issuecomment-" in on_pull["comment"]["html_url"]


def test_an_edit_tells_what_stood_there_and_who_edited(pull: Pull) -> None:
    said = pull.comment("bob", "/run fix")
    told = pull.edit(said, "/run all", by="alice").payload
    assert ("/run fix", "/run all", "bob", "alice") == (
        told["changes"]["body"]["from"],
        told["comment"]["body"],
        told["comment"]["user"]["login"],
        told["sender"]["login"],
    )


def test_a_delivery_is_signed_over_its_bytes(world: World, shop: Repository, pull: Pull) -> None:
    for secret in (world.secret, "another"):
        delivery = pull.comment("alice", "ümläut \N{ROCKET}")
        for name, digest in (("X-Hub-Signature-256", hashlib.sha256), ("X-Hub-Signature", hashlib.sha1)):
            made = hmac.new(secret.encode(), delivery.body, digest).hexdigest()
            assert made == delivery.headers[name].partition("=")[2]
        shop.hook("http://127.0.0.1:1/", secret="another")
    assert "another" not in str(delivery.headers) + delivery.body.decode()


def test_ids_are_guids_and_no_two_are_alike(world: World, shop: Repository, pull: Pull) -> None:
    ids = [delivery.id for delivery in life(world, shop, pull)]
    assert len(ids) == len(set(ids))
    assert ids == [str(uuid.UUID(one)) for one in ids]


def test_a_push_tells_of_its_commits_and_then_of_the_pull_request(world: World, pull: Pull) -> None:
    before = pull.head_sha
    told = pull.push({"a.txt": "two\n", "new.txt": "x"}, by="bob", message="Both\n\nLonger")
    push = world.told("push")
    assert world.outbox.index(push) < world.outbox.index(told)
    assert (before, pull.head_sha) == (told.payload["before"], told.payload["after"])
    assert (before, pull.head_sha, False) == tuple(push.payload[key] for key in ("before", "after", "forced"))
    assert [(["new.txt"], ["a.txt"])] == [(one["added"], one["modified"]) for one in push.payload["commits"]]
    assert "bob" == push.payload["pusher"]["name"]


def test_a_forced_push_is_told_as_one(world: World, pull: Pull) -> None:
    pull.force_push({"other.txt": "x"})
    assert world.told("push").payload["forced"]


def test_a_deleted_branch_is_told_with_forty_zeros(world: World, shop: Repository, pull: Pull) -> None:
    shop.delete_branch("topic", by="alice")
    payload = world.told("push").payload
    assert ("0" * 40, True, None, []) == tuple(payload[key] for key in ("after", "deleted", "head_commit", "commits"))


def test_a_delivery_arrives_as_it_was_signed_and_again_as_the_same(world: World, pull: Pull) -> None:
    came: list[tuple[dict[str, str], bytes]] = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(202)
            self.end_headers()
            self.wfile.write(b"accepted")

        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

    delivery = pull.comment("alice", "/run fix")
    with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        answers = [world.deliver(delivery, to=f"http://127.0.0.1:{server.server_port}/x") for _ in range(2)]
        server.shutdown()
        thread.join()
    assert [(202, "accepted")] * 2 == [(answer.status, answer.body) for answer in answers]
    assert [delivery.body] * 2 == [body for _, body in came]
    for headers, _ in came:
        assert delivery.headers.items() <= headers.items()
        assert "GitHub-Hookshot" in headers["User-Agent"]


def test_what_the_bot_does_over_the_api_is_told_like_what_people_do(world: World, pull: Pull) -> None:
    import requests

    token = world.user("leadsman-bot").token
    url = f"{world.api_url}/repos/acme/shop/issues/1/comments"
    requests.post(url, json={"body": "done"}, headers={"Authorization": f"token {token}"}, timeout=60)
    told = world.told("issue_comment", "created", number=1)
    assert ("leadsman-bot", "done") == (told.payload["sender"]["login"], json.loads(told.body)["comment"]["body"])


def test_what_a_webhook_could_not_deliver_is_kept_and_sent_again_when_asked(world: World, shop: Repository) -> None:
    hook = shop.hook("http://127.0.0.1:1/hook", secret="hush")
    told = shop.issue("Broken", author="bob").comment("bob", "hello")
    assert [502] == [attempt.code for attempt in world.send(told)]
    came: list[tuple[str, bytes]] = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append((self.headers["X-Hub-Signature-256"], self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(202)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

    import requests

    with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as server:
        hook.url = f"http://127.0.0.1:{server.server_port}/hook"
        token = shop.allow("alice", "admin").world.user("alice").token
        url = f"{world.api_url}/repos/acme/shop/hooks/{hook.id}/deliveries"
        headers = {"Authorization": f"token {token}"}
        (failed,) = requests.get(url, headers=headers, timeout=60).json()
        assert 202 == requests.post(f"{url}/{failed['id']}/attempts", headers=headers, timeout=60).status_code
        server.handle_request()
    world.close()  # what was begun has ended then
    assert [(told.signed("hush").headers["X-Hub-Signature-256"], told.body)] == came
    assert [(502, False), (202, True)] == [(attempt.code, attempt.again) for attempt in hook.attempts]

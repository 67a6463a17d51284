"""What the door asks, in which order, and what it answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flask
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.secret import Secret
from tests.webhooks.senders import OLD, SECRET, SHOPS, House, comment, signed
from webhooks.receiver import SIZE, Application, Table
from webhooks.signature import Key, sign
from webhooks.sources import local

BODY = comment()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.close()


def kept(house: House) -> list[tuple[str, str, str]]:
    return [(entry.source, entry.delivery, entry.state) for entry in house.inbox.listing()]


def test_a_signed_comment_is_kept_before_it_is_answered_and_its_lane_woken(house: House) -> None:
    answer = house.post(BODY, signed(BODY))
    assert (answer.status, answer.body) == (202, b'{"status": "accepted"}\n')
    assert kept(house) == [("github", "d-1", "queued")]
    assert house.woken == ["github:acme/shop"]
    found = house.inbox.head("github:acme/shop")
    assert found is not None
    assert found.body == BODY


def test_the_same_again_is_200_and_another_body_under_its_id_409(house: House) -> None:
    other = comment("/run other")
    assert [house.post(body, signed(body)).status for body in (BODY, BODY, other)] == [202, 200, 409]
    assert kept(house) == [("github", "d-1", "queued")]
    assert house.woken == ["github:acme/shop"] * 2


def test_one_that_failed_is_taken_again(house: House) -> None:
    house.post(BODY, signed(BODY))
    house.inbox.failed(1, "it broke", None)
    assert house.post(BODY, signed(BODY)).status == 202
    assert house.woken == ["github:acme/shop"] * 2


@pytest.mark.parametrize("secret", [SECRET, OLD], ids=["new", "old"])
def test_every_live_secret_signs(house: House, secret: object) -> None:
    assert house.post(BODY, signed(BODY, secret=secret)).status == 202  # type: ignore[arg-type]


def test_a_repositorys_own_secret_signs_for_it_alone(house: House) -> None:
    assert house.post(BODY, signed(BODY, secret=SHOPS)).status == 202
    for foreign in (comment(repository="acme/blog"), b'{"zen": ""}'):
        assert house.post(foreign, signed(foreign, secret=SHOPS, delivery="d-2")).status == 401
    assert kept(house) == [("github", "d-1", "queued")]


def test_a_repositorys_own_secret_signs_for_it_however_its_name_is_spelt(house: House) -> None:
    body = comment(repository="Acme/Shop")
    assert house.post(body, signed(body, secret=SHOPS)).status == 202


TOKEN = "a token that nobody guesses"
TICKET = b'{"type": "issue.updated", "data": {"issue": {"id": 7}}}'


@pytest.mark.parametrize(
    ("address", "signature", "expected"),
    [
        (f"work/{TOKEN}", None, 202),
        (f"work/{TOKEN}", SECRET, 202),
        (f"work/{TOKEN}", Secret("another"), 401),
        (f"work/{TOKEN[:-1]}", None, 404),
        (f"work/{TOKEN[:-1]}", SECRET, 404),
        ("work/", SECRET, 404),
        ("work", SECRET, 202),
        ("work", None, 401),
    ],
)
def test_a_token_in_the_address_stands_for_a_signature_and_rescues_no_bad_one(
    house: House, address: str, signature: Secret | None, expected: int
) -> None:
    house.door.tables = {"work": Table("redmine", (Key(SECRET),), token=Secret(TOKEN))}
    headers = {"content-type": "application/json"}
    if signature is not None:
        headers["x-redmine-signature-256"] = f"sha256={sign(TICKET, signature)}"
    assert expected == house.post(TICKET, headers, to=address).status
    assert (1 if expected == 202 else 0) == len(kept(house))


GOOD = signed(BODY)


@pytest.mark.parametrize(
    ("status", "changes"),
    [
        (405, {"method": "GET"}),
        (405, {"method": "PUT"}),
        (405, {"method": "GET", "to": "nowhere"}),
        (404, {"to": "nowhere"}),
        (404, {"to": ""}),
        (404, {"to": "github/"}),
        (404, {"to": "../webhooks/github"}),
        (403, {"to": "open"}),
        (403, {"to": "empty"}),
        (401, {"to": "here"}),
        (401, {"headers": {}}),
        (401, {"headers": {**GOOD, "x-hub-signature-256": ""}}),
        (401, {"headers": {**GOOD, "x-hub-signature-256": "sha256=" + "0" * 64}}),
        (401, {"headers": {**GOOD, "x-gitea-signature": sign(BODY, SECRET)}}),
        (401, {"headers": {**GOOD, "x-forgejo-signature": "x"}}),
        (401, {"headers": {**GOOD, "x-leadsman-signature-256": "sha256=x"}}),
        (401, {"headers": {**GOOD, "content-type": "text/plain", "x-hub-signature-256": "sha256=x"}}),
        (401, {"body": BODY + b" "}),
        (415, {"headers": {**GOOD, "content-type": "text/plain"}}),
        (415, {"headers": {**GOOD, "content-type": "application/x-www-form-urlencoded"}}),
        (415, {"headers": {**GOOD, "content-type": "application/jsonp"}}),
        (415, {"headers": {name: text for name, text in GOOD.items() if name != "content-type"}}),
        (400, {"headers": {**GOOD, "x-github-delivery": ""}}),
        (400, {"headers": {**GOOD, "x-github-delivery": "a b"}}),
        (400, {"headers": {**GOOD, "x-github-delivery": "d" * 201}}),
        (400, {"headers": {name: text for name, text in GOOD.items() if name != "x-github-event"}}),
    ],
)
def test_what_is_off_is_refused_and_nothing_kept(house: House, status: int, changes: dict[str, object]) -> None:
    request = {"body": BODY, "headers": GOOD, **changes}
    answer = house.post(**request)  # type: ignore[arg-type]
    assert answer.status == status
    assert kept(house) == []
    assert house.woken == []


@pytest.mark.parametrize(
    "kind",
    ["application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8"],
)
def test_json_is_json_however_its_type_is_spelt(house: House, kind: str) -> None:
    assert house.post(BODY, {**GOOD, "content-type": kind}).status == 202


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nothing",
        b"null",
        b"[]",
        b'"text"',
        b"7",
        b"NaN",
        b'{"a": Infinity}',
        b'{"a": 1} {"b": 2}',
        b"\xff",
        b"\xef\xbb\xbf{}",
        '{"a": 1}'.encode("utf-16"),
        b'{"a": ' + b"1" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"payload=%7B%7D",
    ],
    ids=lambda body: repr(body[:12]),
)
def test_signed_bytes_that_are_no_json_object_are_400(house: House, body: bytes) -> None:
    assert house.post(body, signed(body)).status == 400
    assert kept(house) == []


@pytest.mark.parametrize(
    ("event", "body"),
    [
        ("ping", b'{"zen": "x"}'),
        ("workflow_run", BODY),
        ("no_such_event", b"{}"),
        ("issue_comment", b'{"action": "deleted"}'),
        ("issue_comment", b"{}"),
        ("issue_comment", b'{"action": {"a": []}}'),
    ],
)
def test_what_asks_nothing_is_202_ignored_listed_and_wakes_nobody(house: House, event: str, body: bytes) -> None:
    answer = house.post(body, signed(body, event=event))
    assert (answer.status, answer.word) == (202, "ignored")
    assert kept(house) == [("github", "d-1", "ignored")]
    assert house.woken == []
    assert house.post(body, signed(body, event=event)).status == 200


@pytest.mark.parametrize(
    ("repository", "lane"),
    [
        ({"full_name": "acme/shop"}, "github:acme/shop"),
        ({"full_name": "../../x"}, "github"),
        ({"full_name": "a\ud800/b"}, "github"),
        ({"full_name": 7}, "github"),
        ("acme/shop", "github"),
        (None, "github"),
    ],
)
def test_a_lane_is_a_repository_or_the_source(house: House, repository: object, lane: str) -> None:
    body = json.dumps({"action": "created", "repository": repository}).encode()
    assert house.post(body, signed(body)).status == 202
    assert house.woken == [lane]


def test_a_full_queue_and_a_store_that_is_away_are_503_with_nothing_kept(tmp_path: Path) -> None:
    house = House(tmp_path, limit=1)
    assert house.post(BODY, signed(BODY)).status == 202
    answer = house.post(BODY, signed(BODY, delivery="d-2"))
    assert (answer.status, answer.word) == (503, "full")
    assert ("Retry-After", "10") in answer.headers
    house.inbox.done(1)
    assert house.post(BODY, signed(BODY, delivery="d-2")).status == 202
    assert house.woken == ["github:acme/shop"] * 2
    house.close()


def test_the_local_forges_delivery_comes_in_by_its_own_headers(house: House) -> None:
    body = b'{"repository": "acme/shop"}'
    headers = {
        "content-type": "application/json",
        "x-leadsman-delivery": "l-1",
        "x-leadsman-event": "comment.created",
        "x-leadsman-signature-256": f"sha256={sign(body, SECRET)}",
    }
    assert house.post(body, headers, to="here").status == 202
    assert house.post(body, headers, to="github").status == 401
    assert kept(house) == [("here", "l-1", "queued")]
    assert local.repository(json.loads(body)) == "acme/shop"


def test_the_log_tells_of_each_delivery_and_nothing_that_is_secret_or_unsigned(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body = comment("/run a-word-of-the-body")
    house.post(body, signed(body))
    house.post(body, {**signed(body), "x-github-delivery": "forged", "x-hub-signature-256": "sha256=bad"})
    house.post(body, signed(body), to="no\nwhere")
    lines = [record.getMessage() for record in caplog.records if record.name == "webhooks.receiver"]
    assert [line.rpartition(",")[0] for line in lines] == [
        "github issue_comment d-1: accepted",
        "github -: unsigned",
        r"no\nwhere -: unknown",
    ]
    told = caplog.text
    assert sign(body, SECRET) not in told
    assert SECRET.reveal() not in told
    assert "a-word-of-the-body" not in told
    assert "forged" not in told


VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    body=st.dictionaries(st.sampled_from(["action", "repository", "sender", "x"]), VALUES)
    .map(json.dumps)
    .map(str.encode)
    | st.binary(max_size=60),
    event=st.text(max_size=12),
    delivery=st.text(max_size=12),
    content=st.sampled_from(["application/json", ""]),
)
def test_no_signed_request_makes_the_door_stumble(
    house: House, body: bytes, event: str, delivery: str, content: str
) -> None:
    headers = {**signed(body, event=event, delivery=delivery), "content-type": content, "x-other": delivery}
    assert house.post(body, headers).status in {200, 202, 400, 409, 415, 503}


def test_a_wsgi_server_that_lets_anything_through_meets_the_same_door(house: House) -> None:
    class Input:
        def __init__(self, body: bytes) -> None:
            self._body = body

        def read(self, size: int) -> bytes:
            return self._body[:size]

    def ask(body: bytes, size: str | None) -> str:
        environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/webhooks/github", "wsgi.input": Input(body)}
        environ |= {f"HTTP_{name.upper().replace('-', '_')}": text for name, text in signed(body).items()}
        environ |= {"CONTENT_TYPE": "application/json"} | ({} if size is None else {"CONTENT_LENGTH": size})
        said: list[str] = []
        Application(house.door, dict)(environ, lambda status, _headers: said.append(status))  # type: ignore[arg-type,return-value]
        return said[0][:3]

    assert ask(BODY, str(len(BODY))) == "202"
    assert ask(BODY, None) == "200"
    assert ask(BODY, str(len(BODY) + 1)) == "400"
    assert ask(BODY, str(SIZE + 1)) == "413"
    assert ask(b" " * (SIZE + 1), None) == "413"
    assert ask(BODY, "-1") == "200"
    assert ask(BODY, "9" * 5000) == "413"


def test_health_readiness_and_pages_are_flasks(house: House) -> None:
    checks = {"store": "ok"}
    pages = flask.Blueprint("pages", __name__)
    pages.get("/")(lambda: "runs")
    client = flask.Flask.test_client(Application(house.door, lambda: checks, [pages])._flask)  # type: ignore[arg-type]
    assert client.get("/").text == "runs"
    assert client.get("/healthz").json == {"status": "ok"}
    assert (client.get("/readyz").status_code, client.get("/readyz").json) == (200, {"status": "ok", "checks": checks})
    checks["git"] = "git is not on PATH"
    assert (client.get("/readyz").status_code, client.get("/readyz").json) == (
        503,
        {"status": "not_ready", "checks": {"store": "ok", "git": "git is not on PATH"}},
    )
    assert client.get("/healthz").status_code == 200
    assert client.get("/nothing").status_code == 404


def test_while_the_store_cannot_be_written_the_answer_is_503_and_the_next_one_works(house: House) -> None:
    def read_only(raw: Any, *_: object) -> None:
        raw.execute("PRAGMA query_only=1")

    def writable(raw: Any, *_: object) -> None:
        raw.execute("PRAGMA query_only=0")

    sa.event.listen(house.store.engine, "checkout", read_only)
    answer = house.post(BODY, signed(BODY))
    assert (answer.status, answer.word) == (503, "unavailable")
    assert kept(house) == []
    assert house.woken == []
    sa.event.remove(house.store.engine, "checkout", read_only)
    sa.event.listen(house.store.engine, "checkout", writable)
    assert house.post(BODY, signed(BODY)).status == 202


def test_a_changed_configuration_changes_who_may_come_in(house: House) -> None:
    assert house.post(BODY, signed(BODY, secret=OLD)).status == 202
    house.door.tables = {"github": Table("github", (Key(SECRET),))}
    assert house.post(BODY, signed(BODY, secret=OLD)).status == 401
    assert house.post(BODY, signed(BODY)).status == 200

    def reloaded(size: int) -> bytes:
        house.door.tables = {}
        return BODY[:size]

    assert house.door.receive("POST", "github", signed(BODY), len(BODY), reloaded).status == 404

"""GitHub's payloads become events, or a reason why not."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model import (
    Actor,
    BranchRef,
    Closed,
    Commented,
    Event,
    Ignored,
    IssueRef,
    Labeled,
    Opened,
    PullRef,
    Pushed,
    Repo,
    Sha,
    Updated,
)
from tests.world import published
from webhooks.payload import Malformed
from webhooks.sources import github

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SHOP = Repo("hub", "acme/shop")
ONE, TWO, NONE = Sha("1" * 40), Sha("2" * 40), "0" * 40
ALICE = {"login": "alice", "id": 11, "type": "User"}
ROBOT = {"login": "robot[bot]", "id": 12, "type": "Bot"}
COMMON = {"repository": {"full_name": "acme/shop"}, "sender": ALICE}
PULL = {"number": 7, "title": "Faster", "merged": False, "head": {"sha": ONE}}


def read(event: str, payload: Any) -> Event | Ignored | Malformed:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return github.read({"x-github-event": event, "x-github-delivery": "d"}, body, source="hub", at=AT)


def commented(**changes: Any) -> dict[str, Any]:
    comment = {"id": 99, "body": "/run fix", "user": ALICE}
    return {**COMMON, "action": "created", "issue": {"number": 7, "pull_request": {}}, "comment": comment, **changes}


def pulled(action: str, **changes: Any) -> dict[str, Any]:
    return {**COMMON, "action": action, "number": 7, "pull_request": PULL, **changes}


def test_a_comment_on_a_pull_request_is_told_whole() -> None:
    assert Event(
        source="hub",
        delivery="d",
        subject=PullRef(SHOP, 7),
        actor=Actor("alice", "11"),
        what=Commented("99", Actor("alice", "11"), "/run fix", None),
        head_sha=None,
        at=AT,
    ) == read("issue_comment", commented())


EDITED = {"action": "edited", "changes": {"body": {"from": "/run"}}}


@pytest.mark.parametrize(
    ("event", "payload", "subject", "what", "head"),
    [
        ("issue_comment", commented(issue={"number": 9}), IssueRef(SHOP, 9), "/run fix", None),
        ("issue_comment", commented(issue={"number": 9, "pull_request": None}), IssueRef(SHOP, 9), "/run fix", None),
        ("pull_request", pulled("opened"), PullRef(SHOP, 7), Opened("Faster"), ONE),
        ("pull_request", pulled("reopened"), PullRef(SHOP, 7), Opened("Faster"), ONE),
        ("pull_request", pulled("synchronize", before=TWO, after=ONE), PullRef(SHOP, 7), Pushed(TWO, ONE), ONE),
        ("pull_request", pulled("closed"), PullRef(SHOP, 7), Closed(merged=False), ONE),
        (
            "pull_request",
            pulled("closed", pull_request={**PULL, "merged": True}),
            PullRef(SHOP, 7),
            Closed(merged=True),
            ONE,
        ),
        ("pull_request", pulled("labeled", label={"name": "👩‍💻 bot"}), PullRef(SHOP, 7), Labeled("👩‍💻 bot"), ONE),
        (
            "issues",
            {**COMMON, "action": "opened", "issue": {"number": 9, "title": "Slow"}},
            IssueRef(SHOP, 9),
            Opened("Slow"),
            None,
        ),
        (
            "issues",
            {**COMMON, "action": "labeled", "issue": {"number": 9}, "label": {"name": "bot"}},
            IssueRef(SHOP, 9),
            Labeled("bot"),
            None,
        ),
        (
            "issues",
            {**COMMON, "action": "unlabeled", "issue": {"number": 9}, "label": {"name": "bot"}},
            IssueRef(SHOP, 9),
            Updated("", "bot", "", assignee=False),
            None,
        ),
        (
            "issues",
            {**COMMON, "action": "unassigned", "issue": {"number": 9}, "assignee": ALICE},
            IssueRef(SHOP, 9),
            Updated("", "", "", assignee=True),
            None,
        ),
        (
            "push",
            {**COMMON, "ref": "refs/heads/a/b", "before": ONE, "after": TWO},
            BranchRef(SHOP, "refs/heads/a/b"),
            Pushed(ONE, TWO),
            None,
        ),
        (
            "push",
            {**COMMON, "ref": "refs/heads/new", "before": NONE, "after": TWO},
            BranchRef(SHOP, "refs/heads/new"),
            Pushed(None, TWO),
            None,
        ),
        (
            "push",
            {**COMMON, "ref": "refs/heads/gone", "before": ONE, "after": NONE, "deleted": True},
            BranchRef(SHOP, "refs/heads/gone"),
            Pushed(ONE, None),
            None,
        ),
    ],
)
def test_what_happened_is_read(event: str, payload: Any, subject: Any, what: Any, head: Sha | None) -> None:
    found = read(event, payload)
    assert isinstance(found, Event)
    assert subject == found.subject
    assert what == (found.what.text if isinstance(found.what, Commented) else found.what)
    assert head == found.head_sha


def test_a_push_may_have_no_sender() -> None:
    """`sender` is none of the fields that GitHub's description of a push requires."""
    told = {**COMMON, "ref": "refs/heads/main", "before": ONE, "after": TWO, "pusher": {"name": "deploy key"}}
    for event in (
        read("push", {**told, "sender": None}),
        read("push", {k: v for k, v in told.items() if k != "sender"}),
    ):
        assert isinstance(event, Event)
        assert (Actor("deploy key", ""), Pushed(ONE, TWO)) == (event.actor, event.what)
    assert Malformed("sender is NoneType, not dict") == read("pull_request", pulled("opened", sender=None))


def test_an_edit_brings_the_text_before_and_tells_the_editor_from_the_author() -> None:
    found = read("issue_comment", commented(**EDITED, sender=ROBOT))
    assert isinstance(found, Event)
    assert found.actor == Actor("robot[bot]", "12", is_bot=True)
    assert found.what == Commented("99", Actor("alice", "11"), "/run fix", "/run")


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("issue_comment", commented(action="deleted")),
        ("issue_comment", commented(action="edited", changes={})),
        ("issue_comment", commented(comment={"id": 99, "body": "/run", "user": None})),
        ("issue_comment", {**COMMON, "action": None}),
        ("issue_comment", {**COMMON, "action": ["created"]}),
        ("issue_comment", {**COMMON, "action": {"created": 1}}),
        ("pull_request", pulled("assigned")),
        ("push", {**COMMON, "ref": "refs/tags/v1", "before": NONE, "after": ONE}),
        ("ping", {"zen": "Design for failure.", "hook_id": 1}),
        ("workflow_run", {"action": "completed"}),
        ("", {}),
    ],
)
def test_what_asks_nothing_is_ignored_with_a_reason(event: str, payload: Any) -> None:
    found = read(event, payload)
    assert isinstance(found, Ignored)
    assert found.reason


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (commented(repository=None), "repository is NoneType, not dict"),
        (commented(repository={"full_name": "../../etc"}), "repository.full_name is not owner/name"),
        (commented(repository={"full_name": "a/.."}), "repository.full_name is not owner/name"),
        (commented(repository={"full_name": "acme/shop\n"}), "repository.full_name is not owner/name"),
        (commented(issue={"number": True, "pull_request": {}}), "issue.number is bool, not int"),
        (commented(issue={"number": -7}), "issue.number is out of bounds"),
        (commented(issue={"number": 10**400}), "issue.number is out of bounds"),
        (commented(issue={"number": 7.0}), "issue.number is float, not int"),
        (commented(sender={"login": "", "id": 1}), "sender.login is not a name"),
        (commented(sender={"login": "a\nb", "id": 1}), "sender.login is not a name"),
        (commented(comment={"id": 99, "body": None, "user": ALICE}), "comment.body is NoneType, not str"),
        (commented(action="edited", changes={"body": {}}), "changes.body.from is missing"),
        (b"[]", "a JSON object is needed, not list"),
        (b"\xff\xfe{}", "not JSON: UnicodeDecodeError"),
        (b'{"action": NaN}', "not JSON: ValueError"),
        (b'{"a":' * 100_000, "not JSON: RecursionError"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "not JSON: ValueError"),
    ],
)
def test_what_is_malformed_says_where(payload: Any, reason: str) -> None:
    assert read("issue_comment", payload) == Malformed(reason)


def test_half_characters_and_nuls_are_replaced_so_that_the_text_can_be_written_anywhere() -> None:
    payload = commented(comment={"id": 99, "body": "/run \ud800\0x", "user": ALICE})
    found = read("issue_comment", payload)
    assert isinstance(found, Event)
    assert isinstance(found.what, Commented)
    assert found.what.text == "/run \ufffd\ufffdx"


VALID = [
    ("issue_comment", commented(**EDITED)),
    ("pull_request", pulled("synchronize", before=TWO, after=ONE)),
    ("pull_request", pulled("labeled", label={"name": "bot"})),
    ("issues", {**COMMON, "action": "labeled", "issue": {"number": 9}, "label": {"name": "bot"}}),
    ("push", {**COMMON, "ref": "refs/heads/a", "before": ONE, "after": TWO}),
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return [path]
    return [path] * bool(path) + [place for name, inner in value.items() for place in places(inner, (*path, name))]


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_no_value_in_any_place_makes_it_stumble(data: st.DataObject) -> None:
    event, valid = data.draw(st.sampled_from(VALID))
    payload = deepcopy(valid)
    *way, last = data.draw(st.sampled_from(places(payload)))
    inner = payload
    for name in way:
        inner = inner[name]
    if data.draw(st.booleans()):
        inner[last] = data.draw(ANYTHING)
    else:
        del inner[last]
    found = read(event, payload)
    assert isinstance(found, Event | Ignored | Malformed)
    if isinstance(found, Event):
        repr(found).encode()  # nothing in it that can't be written


@given(st.binary(max_size=200))
def test_no_bytes_make_it_stumble(body: bytes) -> None:
    assert isinstance(read("issue_comment", body), Malformed | Ignored)


WANTED = {
    ("issue_comment", "created"),
    ("issue_comment", "edited"),
    ("pull_request", "opened"),
    ("pull_request", "reopened"),
    ("pull_request", "synchronize"),
    ("pull_request", "closed"),
    ("pull_request", "labeled"),
    ("issues", "opened"),
    ("issues", "labeled"),
    ("issues", "unlabeled"),
    ("issues", "assigned"),
    ("issues", "unassigned"),
    ("push", None),
}


@pytest.mark.needs("npm")
def test_every_published_example_is_an_event_where_it_should_be_and_ignored_where_not() -> None:
    found = [
        (event, payload, read(event, payload))
        for event, payloads in published.examples().items()
        for payload in payloads
    ]
    assert len(found) == 329
    for event, payload, result in found:
        wanted = (event, payload.get("action")) in WANTED and not payload.get("ref", "").startswith("refs/tags/")
        same_text = payload.get("action") == "edited" and "body" not in payload["changes"]
        assert isinstance(result, Event if wanted and not same_text else Ignored), (
            event,
            payload.get("action"),
            result,
        )

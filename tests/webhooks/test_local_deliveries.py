"""The local forge's deliveries say what its events are."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from bot.model import (
    Actor,
    BranchRef,
    Closed,
    Commented,
    Event,
    Happening,
    Ignored,
    IssueRef,
    Labeled,
    Opened,
    PullRef,
    Pushed,
    Repo,
    Sha,
    Subject,
    Updated,
)
from tests.webhooks.senders import SECRET, SHA
from webhooks.payload import Malformed
from webhooks.signature import Key, verify
from webhooks.sources import local

AT = datetime(2026, 1, 2, tzinfo=UTC)
REPO = Repo("here", "acme/shop")
ALICE, BOT = Actor("alice", "alice"), Actor("leadsman[bot]", "leadsman[bot]", is_bot=True)


def event(subject: Subject, what: Happening, *, head: str | None = None) -> Event:
    return Event(
        source="here",
        delivery="d-1",
        subject=subject,
        actor=ALICE,
        what=what,
        head_sha=Sha(head) if head else None,
        at=AT,
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("comment.created", event(PullRef(REPO, 7), Commented("3", BOT, "/run fix\n\U0001f600", None), head=SHA)),
        ("comment.edited", event(IssueRef(REPO, 7), Commented("3", ALICE, "/run", ""))),
        ("pull.opened", event(PullRef(REPO, 7), Opened(""), head=SHA)),
        ("pull.pushed", event(PullRef(REPO, 7), Pushed(None, Sha(SHA)), head=SHA)),
        ("pull.closed", event(PullRef(REPO, 7), Closed(merged=True))),
        ("pull.labeled", event(PullRef(REPO, 7), Labeled("a b"))),
        ("issue.opened", event(IssueRef(REPO, 7), Opened("t"))),
        ("issue.labeled", event(IssueRef(REPO, 7), Labeled("bot"))),
        ("issue.updated", event(IssueRef(REPO, 7), Updated("", "bot", "", assignee=False))),
        ("push", event(BranchRef(REPO, "refs/heads/main"), Pushed(Sha(SHA), None))),
    ],
)
def test_what_is_written_reads_the_same(name: str, told: Event) -> None:
    headers, body = local.write(told, SECRET)
    assert headers["X-Leadsman-Event"] == name
    assert verify(body, headers["X-Leadsman-Signature-256"], [Key(SECRET)])
    lower = {header.lower(): text for header, text in headers.items()}
    assert local.read(lower, body, source="here", at=AT) == told


@pytest.mark.parametrize(
    ("name", "change", "found"),
    [
        ("issue.closed", {}, Ignored("`issue.closed` asks nothing of the bot")),
        ("push", {"subject": {"kind": "tag"}}, Malformed("subject.kind is 'tag'")),
        ("push", {"what": {"before": "abc", "after": None}}, Malformed("what.before is not a full object id")),
        ("push", {"repository": "../x"}, Malformed("repository is not owner/name")),
        ("push", {"actor": {"login": "a", "id": "a"}}, Malformed("actor.is_bot is missing")),
    ],
)
def test_what_is_off_is_said(name: str, change: dict[str, object], found: object) -> None:
    headers, body = local.write(event(BranchRef(REPO, "refs/heads/main"), Pushed(None, Sha(SHA))), SECRET)
    changed = json.dumps({**json.loads(body), **change}).encode()
    assert local.read({"x-leadsman-event": name}, changed, source="here", at=AT) == found
    assert headers

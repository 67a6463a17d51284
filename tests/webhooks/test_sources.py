"""Who sent it: told by the headers, in the order in which the forges imitate each other."""

from __future__ import annotations

import pytest

from tests.webhooks.senders import OLD, SECRET
from webhooks.signature import Key, sign
from webhooks.sources import MARKS, SOURCES, detect, signed_by

BODY = b'{"a": 1}'
GOOD = sign(BODY, SECRET)
BAD = sign(BODY, OLD)
KEYS = (Key(SECRET),)

GITHUB = {"x-github-event": "push", "x-github-delivery": "1", "x-hub-signature-256": f"sha256={GOOD}"}
GITEA = {**GITHUB, "x-gitea-event": "push", "x-gitea-delivery": "1", "x-gitea-signature": GOOD}
FORGEJO = {**GITEA, "x-forgejo-event": "push", "x-forgejo-delivery": "1", "x-forgejo-signature": GOOD}
REDMINE = {"x-redmine-signature-256": f"sha256={GOOD}"}
LOCAL = {"x-leadsman-event": "push", "x-leadsman-signature-256": f"sha256={GOOD}"}


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        (GITHUB, "github"),
        (GITEA, "gitea"),
        (FORGEJO, "forgejo"),
        (REDMINE, "redmine"),
        (LOCAL, "local"),
        ({**LOCAL, **GITHUB}, "github"),
        ({**LOCAL, **REDMINE}, "redmine"),
        ({"x-forgejo-event": "push", **LOCAL}, "forgejo"),
        ({"x-hub-signature-256": "sha256="}, "github"),
        ({"x-hub-signature": "sha1="}, None),
        ({"content-type": "application/json"}, None),
        ({}, None),
    ],
)
def test_a_sender_is_told_by_its_headers(headers: dict[str, str], kind: str | None) -> None:
    assert detect(headers) == kind


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.kind)
def test_each_kind_is_known_by_its_own_signature(mark: object) -> None:
    headers = {"forgejo": FORGEJO, "gitea": GITEA, "github": GITHUB, "redmine": REDMINE, "local": LOCAL}
    kind = mark.kind  # type: ignore[attr-defined]
    assert signed_by(kind, headers[kind], BODY, KEYS) == KEYS


@pytest.mark.parametrize(
    ("kind", "headers"),
    [
        pytest.param("github", GITEA, id="sent to another kind's address, all good"),
        pytest.param("github", FORGEJO, id="sent to another kind's address, all good, Forgejo"),
        pytest.param("gitea", FORGEJO, id="Forgejo is not Gitea"),
        pytest.param("local", {**LOCAL, **GITHUB}, id="GitHub's headers make it GitHub's"),
        pytest.param("gitea", {**GITEA, "x-gitea-signature": BAD}, id="GitHub's good one does not rescue Gitea's"),
        pytest.param("gitea", {**GITEA, "x-hub-signature-256": f"sha256={BAD}"}, id="nor Gitea's good one GitHub's"),
        pytest.param("forgejo", {**FORGEJO, "x-forgejo-signature": ""}, id="an empty one is a bad one"),
        pytest.param("github", {**GITHUB, "x-leadsman-signature-256": f"sha256={BAD}"}, id="a foreign bad one"),
        pytest.param("github", {**GITHUB, "x-redmine-signature-256": "x"}, id="a foreign broken one"),
        pytest.param("github", {**GITHUB, "x-gitea-event": "push"}, id="Gitea without its signature"),
        pytest.param("github", {"x-github-event": "push"}, id="none"),
        pytest.param("github", {"x-github-event": "push", "x-hub-signature": f"sha1={GOOD}"}, id="SHA-1 only"),
        pytest.param("local", {}, id="nothing at all"),
    ],
)
def test_it_is_refused_when_anything_about_its_origin_is_off(kind: str, headers: dict[str, str]) -> None:
    assert signed_by(kind, headers, BODY, KEYS) == ()


def test_every_source_has_a_mark() -> None:
    assert set(SOURCES) <= {mark.kind for mark in MARKS}

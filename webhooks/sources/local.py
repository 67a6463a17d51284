"""The local forge's deliveries, and the way to make one.

Headers: `X-Leadsman-Signature-256: sha256=<hex>`, `X-Leadsman-Delivery: <id>`, `X-Leadsman-Event: <name>`. Body:

    {"repository": "acme/shop",
     "actor": {"login": "alice", "id": "alice", "is_bot": false},
     "subject": {"kind": "pull", "number": 7},                    or {"kind": "branch", "ref": "refs/heads/main"}
     "head_sha": "<40 hex>",                                      the pull request's head; null where there is none
     "what": {"comment_id": "3", "author": {...}, "text": "/run fix", "before": null}}

`what` by event: comment.created and comment.edited as above; pull.opened and issue.opened `title`; pull.pushed and push
`before`, `after` (null: there was, or is, no branch); pull.closed `merged`; issue.labeled and pull.labeled `label`;
issue.updated `note_id`, `old` (the label that was taken off), `new`, `assignee` (true: somebody was assigned or not).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import assert_never

from bot.model import (
    Actor,
    BranchRef,
    Claimable,
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
    Retried,
    Sha,
    Subject,
    TicketRef,
    Updated,
)
from bot.secret import Secret
from webhooks.payload import Fields, Json, Malformed, Misshapen, parse, repository_name
from webhooks.signature import sign


def delivery(headers: Mapping[str, str], body: bytes) -> str:  # noqa: ARG001 (other sources need the body)
    return headers.get("x-leadsman-delivery", "")


def event(headers: Mapping[str, str], payload: Json) -> str:  # noqa: ARG001
    return headers.get("x-leadsman-event", "")


def named(delivery: str, event: str) -> dict[str, str]:
    return {"x-leadsman-delivery": delivery, "x-leadsman-event": event}


def repository(payload: Json) -> str | None:
    return repository_name(payload.get("repository"))


def unwanted(event: str, payload: Json) -> Ignored | None:  # noqa: ARG001
    return None if event in _READERS else Ignored(f"`{event}` asks nothing of the bot")


def read(headers: Mapping[str, str], body: bytes, *, source: str, at: datetime) -> Event | Ignored | Malformed:
    try:
        payload = parse(body)
        name = event(headers, payload)
        if (why := unwanted(name, payload)) is not None:
            return why
        fields = Fields(payload)
        return Event(
            source=source,
            delivery=delivery(headers, body),
            subject=_subject(fields.at("subject"), Repo(source, fields.repository("repository"))),
            actor=_actor(fields.at("actor")),
            what=_READERS[name](fields.at("what")),
            head_sha=fields.sha("head_sha") if "head_sha" in fields else None,
            at=at,
        )
    except Misshapen as problem:
        return Malformed(str(problem))


def write(event: Event, secret: Secret) -> tuple[dict[str, str], bytes]:
    """The delivery that tells of `event`: its headers, signed, and its body."""
    what = asdict(event.what)
    del what["kind"]
    told = {
        "repository": event.subject.repo.name,
        "actor": asdict(event.actor),
        "subject": _told_subject(event.subject),
        "head_sha": event.head_sha,
        "what": what,
    }
    body = json.dumps(told).encode()
    headers = {
        "Content-Type": "application/json",
        "X-Leadsman-Delivery": event.delivery,
        "X-Leadsman-Event": _name(event.subject, event.what),
        "X-Leadsman-Signature-256": f"sha256={sign(body, secret)}",
    }
    return headers, body


def _name(subject: Subject, what: Happening) -> str:
    match what:
        case Commented():
            return "comment.created" if what.before is None else "comment.edited"
        case Opened() | Labeled() | Closed():
            return f"{subject.kind}.{what.kind}"
        case Updated() if isinstance(subject, IssueRef):
            return "issue.updated"
        case Updated() | Claimable() | Retried():
            raise ValueError("that happens to no such thing of a forge")
        case Pushed():
            return "push" if isinstance(subject, BranchRef) else "pull.pushed"
        case _:
            assert_never(what)


def _told_subject(subject: Subject) -> dict[str, object]:
    if isinstance(subject, TicketRef):
        raise ValueError("a forge has no tickets")  # noqa: TRY004  # not a wrong type: a tracker's event
    if isinstance(subject, BranchRef):
        return {"kind": subject.kind, "ref": subject.ref}
    return {"kind": subject.kind, "number": subject.number}


def _subject(subject: Fields, repo: Repo) -> Subject:
    match kind := subject.text("kind"):
        case "pull":
            return PullRef(repo, subject.number("number"))
        case "issue":
            return IssueRef(repo, subject.number("number"))
        case "branch":
            return BranchRef(repo, subject.text("ref"))
    raise Misshapen(f"subject.kind is {kind[:20]!a}")


def _actor(actor: Fields) -> Actor:
    return Actor(login=actor.word("login"), id=actor.word("id"), is_bot=actor.flag("is_bot"))


def _created(what: Fields) -> Commented:
    return Commented(what.word("comment_id"), _actor(what.at("author")), what.text("text"), None)


def _edited(what: Fields) -> Commented:
    return Commented(what.word("comment_id"), _actor(what.at("author")), what.text("text"), what.text("before"))


def _opened(what: Fields) -> Opened:
    return Opened(what.text("title"))


def _labeled(what: Fields) -> Labeled:
    return Labeled(what.text("label"))


def _updated(what: Fields) -> Updated:
    return Updated(what.text("note_id"), what.text("old"), what.text("new"), what.flag("assignee"))


def _closed(what: Fields) -> Closed:
    return Closed(what.flag("merged"))


def _pushed(what: Fields) -> Pushed:
    return Pushed(before=_sha(what, "before"), after=_sha(what, "after"))


def _sha(fields: Fields, name: str) -> Sha | None:
    return fields.sha(name) if name in fields else None


_READERS: Mapping[str, Callable[[Fields], Happening]] = {
    "comment.created": _created,
    "comment.edited": _edited,
    "pull.opened": _opened,
    "pull.pushed": _pushed,
    "pull.labeled": _labeled,
    "pull.closed": _closed,
    "issue.opened": _opened,
    "issue.labeled": _labeled,
    "issue.updated": _updated,
    "push": _pushed,
}

"""Redmine's JSON as our own values. https://www.redmine.org/projects/redmine/wiki/Rest_Issues"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from bot.errors import Unavailable
from bot.model import Actor, TicketRef
from bot.trackers import Attached, Claiming, Entry, Stage, Ticket

Json = Mapping[str, Any]


def moment(text: object) -> datetime:
    """`2026-01-05T09:00:00Z`: Redmine always tells UTC, in whole seconds."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError as problem:
        raise Unavailable(f"Redmine gave {str(text)[:40]!a} for a time.") from problem
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def told(at: datetime) -> str:
    """A time as a filter takes it: other offsets than Z are refused."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ticket(
    ref: TicketRef, issue: Json, statuses: Mapping[int, str], login: Callable[[int, str], str], claiming: Claiming
) -> Ticket:
    """`statuses`: id -> name; `login` finds the login of a user's id, with the name to fall back on."""
    allowed, status = issue.get("allowed_statuses"), str(issue["status"]["name"])
    return Ticket(
        ref=ref,
        title=str(issue.get("subject") or ""),
        text=str(issue.get("description") or "").replace("\r\n", "\n"),
        author=actor(issue.get("author"), login),
        status=status,
        stage=_stage(status, claiming),
        is_closed=bool(issue["status"].get("is_closed")),
        category=issue["category"]["name"] if issue.get("category") else None,
        priority=int(issue.get("priority", {}).get("id", 0)),
        assignee=actor(issue["assigned_to"], login) if issue.get("assigned_to") else None,
        created_at=moment(issue["created_on"]),
        updated_at=moment(issue["updated_on"]),
        journal=tuple(
            # By id: the API user's own preference may have them reversed.
            entry(found, statuses, login)
            for found in sorted(issue.get("journals", ()), key=lambda one: int(one["id"]))
        ),
        allowed=None if allowed is None else frozenset(str(status["name"]) for status in allowed),
        blocked_by=tuple(
            int(relation["issue_id"])
            for relation in issue.get("relations", ())
            if relation.get("relation_type") == "blocks" and relation.get("issue_to_id") == issue["id"]
        ),
        attached=tuple(
            Attached(name=str(one["filename"]), size=int(one["filesize"]), url=str(one.get("content_url") or ""))
            for one in issue.get("attachments", ())
        ),
    )


def _stage(status: str, claiming: Claiming) -> Stage:
    stages: dict[str, Stage] = {claiming.claimable.casefold(): "claimable", claiming.claimed.casefold(): "claimed"}
    return stages.get(status.casefold(), "other")


def entry(journal: Json, statuses: Mapping[int, str], login: Callable[[int, str], str]) -> Entry:
    changed = {
        str(detail.get("name")): (detail.get("old_value"), detail.get("new_value"))
        for detail in journal.get("details", ())
        if detail.get("property") == "attr"
    }
    old, new = changed.get("status_id", (None, None))
    return Entry(
        id=str(int(journal["id"])),
        author=actor(journal.get("user"), login),
        text=str(journal.get("notes") or "").replace("\r\n", "\n"),
        private=bool(journal.get("private_notes")),
        at=moment(journal["created_on"]),
        old_status=_status(old, statuses),
        new_status=_status(new, statuses),
        assignee_changed="assigned_to_id" in changed,
    )


def actor(user: Json | None, login: Callable[[int, str], str]) -> Actor:
    """Redmine tells no logins beside a ticket, only ids and full names."""
    if not user:
        return Actor("anonymous", "")
    number = int(user["id"])
    return Actor(login(number, str(user.get("name", ""))), str(number))


def _status(text: object, statuses: Mapping[int, str]) -> str | None:
    if text is None:
        return None
    return statuses.get(int(str(text)), f"status {text}") if str(text).isdecimal() else str(text)

"""GitHub's deliveries. https://docs.github.com/en/webhooks/webhook-events-and-payloads"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

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
from webhooks.payload import Fields, Json, Malformed, Misshapen, parse, repository_name

WANTED: Mapping[str, frozenset[str] | None] = {
    "issue_comment": frozenset({"created", "edited"}),
    "pull_request": frozenset({"opened", "reopened", "synchronize", "closed", "labeled"}),
    "issues": frozenset({"opened", "labeled", "unlabeled", "assigned", "unassigned"}),
    "push": None,
}
"""event -> the actions that may ask something of the bot; None: it has none."""


def delivery(headers: Mapping[str, str], body: bytes) -> str:  # noqa: ARG001 (other sources need the body)
    return headers.get("x-github-delivery", "")


def event(headers: Mapping[str, str], payload: Json) -> str:  # noqa: ARG001
    return headers.get("x-github-event", "")


def named(delivery: str, event: str) -> dict[str, str]:
    return {"x-github-delivery": delivery, "x-github-event": event}


def repository(payload: Json) -> str | None:
    found = payload.get("repository")
    return repository_name(found.get("full_name")) if isinstance(found, dict) else None


def unwanted(event: str, payload: Json) -> Ignored | None:
    if event not in WANTED:
        return Ignored(f"`{event}` asks nothing of the bot")
    actions, action = WANTED[event], payload.get("action")
    named = action if isinstance(action, str) else ""
    if actions is None or named in actions:
        return None
    return Ignored(f"`{event}` with the action {named[:40]!a} asks nothing of the bot")


def read(headers: Mapping[str, str], body: bytes, *, source: str, at: datetime) -> Event | Ignored | Malformed:
    try:
        payload = parse(body)
        name = event(headers, payload)
        if (why := unwanted(name, payload)) is not None:
            return why
        fields = Fields(payload)
        found = _READERS[name](fields, Repo(source, fields.at("repository").repository("full_name")))
        if isinstance(found, Ignored):
            return found
        subject, what, head = found
        actor = _actor(fields.at("sender")) if "sender" in fields or name != "push" else _pusher(fields.at("pusher"))
        at = _when(fields, at)
    except Misshapen as problem:
        return Malformed(str(problem))
    return Event(
        source=source, delivery=delivery(headers, body), subject=subject, actor=actor, what=what, head_sha=head, at=at
    )


_Found = tuple[Subject, Happening, Sha | None]


def _actor(user: Fields) -> Actor:
    kind = user.text("type") if "type" in user else ""
    return Actor(login=user.word("login"), id=str(user.number("id")), is_bot=kind == "Bot")


def _pusher(pusher: Fields) -> Actor:
    """Who pushed where no account did (a deploy key): a push alone may have no sender."""
    return Actor(login=pusher.word("name"), id="")


def _when(payload: Fields, at: datetime) -> datetime:
    """When it was so, by GitHub's clock (whole seconds): of a comment when the delivery came."""
    name = next((name for name in ("pull_request", "issue") if name in payload), None)
    if name is None or "comment" in payload or "updated_at" not in (thread := payload.at(name)):
        return at
    try:
        told = datetime.fromisoformat(thread.text("updated_at"))
    except ValueError:
        return at
    return told if told.tzinfo else at


def _comment(payload: Fields, repo: Repo) -> _Found | Ignored:
    issue, comment = payload.at("issue"), payload.at("comment")
    if "user" not in comment:
        return Ignored("the comment's author has left GitHub")
    before: str | None = None
    if payload.text("action") == "edited":
        changes = payload.at("changes")
        if "body" not in changes:
            return Ignored("the comment's text is as it was")
        before = changes.at("body").text("from")
    what = Commented(
        comment_id=str(comment.number("id")),
        author=_actor(comment.at("user")),
        text=comment.text("body"),
        before=before,
    )
    number = issue.number("number")
    # A pull request is an issue to this event; only this field tells them apart.
    return (PullRef(repo, number) if "pull_request" in issue else IssueRef(repo, number)), what, None


def _pull(payload: Fields, repo: Repo) -> _Found:
    pull = payload.at("pull_request")
    head = pull.at("head").sha("sha")
    what: Happening
    match payload.text("action"):
        case "synchronize":
            what = Pushed(before=payload.sha_or_none("before"), after=payload.sha("after"))
        case "closed":
            what = Closed(merged=pull.flag("merged"))
        case "labeled":
            what = Labeled(payload.at("label").text("name"))
        case _:
            what = Opened(pull.text("title"))
    return PullRef(repo, pull.number("number")), what, head


def _issue(payload: Fields, repo: Repo) -> _Found:
    issue = payload.at("issue")
    what: Happening
    match payload.text("action"):
        case "labeled":
            what = Labeled(payload.at("label").text("name"))
        case "unlabeled":  # the label is left out where it is gone from the whole repository
            old = payload.at("label").text("name") if "label" in payload else ""
            what = Updated("", old, "", assignee=False)
        case "assigned" | "unassigned":
            what = Updated("", "", "", assignee=True)
        case _:
            what = Opened(issue.text("title"))
    return IssueRef(repo, issue.number("number")), what, None


def _push(payload: Fields, repo: Repo) -> _Found | Ignored:
    ref = payload.text("ref")
    if not ref.startswith("refs/heads/"):
        return Ignored("a push to something that is no branch")
    return BranchRef(repo, ref), Pushed(payload.sha_or_none("before"), payload.sha_or_none("after")), None


_READERS: Mapping[str, Callable[[Fields, Repo], _Found | Ignored]] = {
    "issue_comment": _comment,
    "pull_request": _pull,
    "issues": _issue,
    "push": _push,
}

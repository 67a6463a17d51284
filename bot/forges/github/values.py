"""PyGithub's objects read into our values. What GitHub left out makes them fail, and never slips through as None."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from github.Issue import Issue as GithubIssue
from github.IssueComment import IssueComment
from github.PullRequest import PullRequest
from github.Repository import Repository

from bot.forges import Comment, Issue, Pull
from bot.model import Actor, IssueRef, Permission, PullRef, Sha

T = TypeVar("T")

_ROLES = {
    "none": Permission.NONE,
    "read": Permission.READ,
    "triage": Permission.TRIAGE,
    "write": Permission.WRITE,
    "maintain": Permission.MAINTAIN,
    "admin": Permission.ADMIN,
}

_RIGHTS = (
    ("admin", Permission.ADMIN),
    ("maintain", Permission.MAINTAIN),
    ("push", Permission.WRITE),
    ("triage", Permission.TRIAGE),
    ("pull", Permission.READ),
)
"""GitHub's words for what somebody may do, from the highest down."""

GHOST = Actor("ghost", "10137")
"""Whom GitHub shows as the author of what a deleted account wrote."""


class Account(Protocol):
    """What PyGithub's user classes have in common."""

    @property
    def login(self) -> str: ...
    @property
    def id(self) -> int: ...
    @property
    def type(self) -> str: ...


def given(value: T | None) -> T:
    """PyGithub gives None for what an answer does not hold."""
    if value is None:
        raise ValueError("the answer leaves out what is always there")
    return value


def actor(account: Account | None) -> Actor:
    if account is None:
        return GHOST
    return Actor(given(account.login), f"{account.id:d}", is_bot=account.type == "Bot")


def pull(ref: PullRef, found: PullRequest) -> Pull:
    return Pull(
        ref=ref,
        title=given(found.title),
        author=actor(found.user),
        open=given(found.state) == "open",
        merged=given(found.merged),
        head_sha=Sha(given(found.head.sha)),
        head_ref=given(found.head.ref),
        head_repo=_head_repo(ref, found.head.repo, found.base.repo),
        base_ref=given(found.base.ref),
        labels=tuple(label.name for label in given(found.labels)),
        updated_at=given(found.updated_at),
    )


def _head_repo(ref: PullRef, head: Repository | None, base: Repository) -> str | None:
    """Null for a fork that was deleted. Compared by id, since the configuration may write `Acme/Shop` for acme/shop."""
    if head is None:
        return None
    return ref.repo.name if given(head.id) == base.id else given(head.full_name)


def issue(ref: IssueRef, found: GithubIssue) -> Issue:
    return Issue(
        ref=ref,
        title=given(found.title),
        body=found.body or "",
        author=actor(found.user),
        open=given(found.state) == "open",
        labels=tuple(label.name for label in given(found.labels)),
        assignees=tuple(person.login for person in given(found.assignees)),
        updated_at=given(found.updated_at),
    )


def comment(found: IssueComment) -> Comment:
    return Comment(
        id=f"{found.id:d}",
        author=actor(found.user),
        body=found.body or "",
        created_at=given(found.created_at),
        updated_at=given(found.updated_at),
    )


def permission(answer: dict[str, Any], who: Actor) -> Permission:
    """By `role_name`: the old field `permission` calls triage `read` and maintain `write`. A custom role is what it
    may do. A login that meanwhile belongs to another account may do nothing.

    https://docs.github.com/en/rest/collaborators/collaborators#get-repository-permissions-for-a-user
    """
    user = answer["user"]
    if user is None or str(user["id"]) != who.id:
        return Permission.NONE
    role = _ROLES.get(answer["role_name"])
    if role is not None:
        return role
    rights = user["permissions"]
    return next((level for word, level in _RIGHTS if rights.get(word) is True), Permission.NONE)

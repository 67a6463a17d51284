"""A repository's issues by their label, and what happened on one of them, each as a list that GitHub has of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from github.Repository import Repository

from bot.forges import Issue, Past
from bot.forges.github.lists import Json, actor, moment, pages
from bot.model import IssueRef, Repo

_MEMBERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""`author_association` of those who belong to a repository. A Bot is there because somebody installed it.

https://docs.github.com/en/graphql/reference/enums#commentauthorassociation
"""


def labeled(repo: Repo, there: Repository, label: str, *, open_only: bool) -> Iterator[Issue]:
    """https://docs.github.com/en/rest/issues/issues#list-repository-issues - pull requests are listed, too."""
    state = "open" if open_only else "all"
    wish = {"labels": label, "state": state, "sort": "created", "direction": "asc", "per_page": 100}
    for _, page in pages(there.requester, f"{there.url}/issues", wish):
        for one in page:
            if "pull_request" not in one:
                yield _issue(repo, one)


def _issue(repo: Repo, one: Json) -> Issue:
    return Issue(
        ref=IssueRef(repo, int(one["number"])),
        title=str(one["title"]),
        body=str(one["body"] or ""),
        author=actor(one["user"]),
        open=one["state"] == "open",
        labels=tuple(str(label["name"]) for label in one["labels"]),
        assignees=tuple(str(person["login"]) for person in one["assignees"]),
        updated_at=moment(one["updated_at"]),
    )


def history(there: Repository, number: int) -> Iterator[Past]:
    """By the timeline: it alone says whether a label was taken off before or behind a comment of the same second.

    https://docs.github.com/en/rest/issues/timeline#list-timeline-events-for-an-issue
    """
    for _, page in pages(there.requester, f"{there.url}/issues/{number}/timeline", {"per_page": 100}):
        for one in page:
            if (read := _READERS.get(str(one.get("event")))) is not None:
                yield read(one)


def _comment(one: Json) -> Past:
    author = actor(one["user"])
    return Past(
        id=f"{one['id']:d}",
        author=author,
        at=moment(one["created_at"]),
        text=str(one["body"] or ""),
        by_member=author.is_bot or one["author_association"] in _MEMBERS,
    )


def _event(one: Json, **change: object) -> Past:
    """Who assigned is the `assigner`; the `actor` of an assignment once was who got it.

    https://docs.github.com/en/rest/using-the-rest-api/issue-event-types#assigned
    """
    who = actor(one.get("assigner") or one.get("actor"))
    return Past(id=f"event-{one['id']:d}", author=who, at=moment(one["created_at"]), **change)  # type: ignore[arg-type]


def _labeled(one: Json) -> Past:
    return _event(one, set_label=str(one["label"]["name"]))


def _unlabeled(one: Json) -> Past:
    return _event(one, lost_label=str(one["label"]["name"]))


def _assigned(one: Json) -> Past:
    return _event(one, assigns=True)


_READERS: Mapping[str, Callable[[Json], Past]] = {
    "commented": _comment,
    "labeled": _labeled,
    "unlabeled": _unlabeled,
    "assigned": _assigned,
    "unassigned": _assigned,
}

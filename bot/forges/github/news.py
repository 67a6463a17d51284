"""What happened in a repository on GitHub, found by asking. While nothing does, asking costs nothing of the allowance:
an answer that is as before (304) does not count.

https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#use-conditional-requests
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from github.IssueComment import IssueComment
from github.IssueEvent import IssueEvent
from github.PullRequest import PullRequest
from github.Repository import Repository
from github.Requester import Requester

from bot.errors import Forbidden, Gone
from bot.forges.asking import Head, Look
from bot.forges.github.access import Access, there
from bot.forges.github.settings import Settings
from bot.forges.github.values import GHOST, actor, given
from bot.model import Actor, Closed, Commented, Event, Happening, IssueRef, Labeled, Opened, PullRef, Pushed, Repo, Sha

Json = dict[str, Any]

_COMMENTS = ("issues/comments", {"sort": "updated", "direction": "desc", "per_page": 100}, "updated_at")
_EVENTS = ("issues/events", {"per_page": 50}, "created_at")
_PULLS = ("pulls", {"state": "all", "sort": "updated", "direction": "desc", "per_page": 50}, "updated_at")
_ISSUES = ("issues", {"state": "all", "sort": "created", "direction": "desc", "per_page": 30}, "created_at")
"""(path, parameters, the time that each list goes down by). No parameter changes from look to look: the answer could
not be "as before" then."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer: what to know it again by, and what of it was fresh then."""

    etag: str
    items: tuple[Json, ...]


class News:
    """`bot.forges.asking.News` on GitHub."""

    def __init__(self, name: str, settings: Settings, access: Access) -> None:
        self._name = name
        self._access = access
        self._lock = threading.Lock()
        self._kept: dict[tuple[Repo, str], _Kept] = {}
        self.every = settings.poll_seconds

    def heads(self, repo: Repo) -> Look:
        with there(self._access, repo, "the open pull requests") as found:
            url, parameters = f"{found.url}/pulls", {"state": "open", "per_page": 100}
            pages = list(_pages(found.requester, url, parameters))
            at = _date(pages[0][0])
            pulls = [PullRequest(found.requester, {}, item) for _, page in pages for item in page]
            return Look(at, heads=tuple(_head(repo, pull) for pull in pulls))

    def since(self, repo: Repo, since: datetime, known: Callable[[PullRef], Sha | None]) -> Look:
        with there(self._access, repo, "what happened") as found:
            ask = _Asking(found.requester, found.url, since, repo, self._kept, self._lock)
            comments = [IssueComment(found.requester, {}, item) for item in ask.items(*_COMMENTS)]
            events = [IssueEvent(found.requester, {}, item) for item in ask.items(*_EVENTS)]
            pulls = [PullRequest(found.requester, {}, item) for item in ask.items(*_PULLS)]
            issues = ask.items(*_ISSUES)
            read = _Reading(self._name, repo)
            told = [
                *(said for one in comments if (said := read.comment(one)).actor != GHOST),
                *(event for one in events if (event := read.event(one)) is not None),
                *(read.opened(one) for one in pulls if given(one.created_at) >= since),
                *(read.issue(one) for one in issues if "pull_request" not in one),
            ]
            heads = tuple(_head(repo, one) for one in pulls if one.state == "open")
            sources = {one.number: (_full_name(one.head.repo), given(one.head.ref)) for one in pulls}
            authors = {one.number: actor(one.user) for one in pulls}
            at = ask.at
        for head in heads:
            before = known(head.pull)
            if before is not None and before != head.sha:
                pushed = read.pushed(head, before, authors[head.pull.number])
                told.append(self._told_exactly(pushed, *sources[head.pull.number]))
        return Look(at, tuple(sorted(told, key=lambda event: event.at)), heads)

    def _told_exactly(self, event: Event, source: str | None, branch: str) -> Event:
        """With who pushed and when, where GitHub says it: by default it may have been at any time until now.

        https://docs.github.com/en/rest/repos/repos#list-repository-activities
        """
        if source is None:
            return event
        try:
            with there(self._access, Repo(self._name, source), f"the pushes to {branch}") as found:
                parameters = {"ref": f"refs/heads/{branch}", "per_page": 30}
                _, pushes = found.requester.requestJsonAndCheck("GET", f"{found.url}/activity", parameters)
                last = next((one for one in pushes if one["after"] == event.head_sha), None)
                if last is None:
                    return event
                who = last["actor"]
                pusher = Actor(who["login"], str(who["id"]), is_bot=who["type"] == "Bot") if who else GHOST
                return replace(event, actor=pusher, at=datetime.fromisoformat(last["timestamp"]))
        except (Gone, Forbidden):
            return event  # a fork that the bot may not look into


@dataclass(slots=True)
class _Asking:
    """One look at a repository's lists. `at` is when the first of them was answered, by GitHub's clock."""

    requester: Requester
    url: str
    since: datetime
    repo: Repo
    kept: dict[tuple[Repo, str], _Kept]
    lock: threading.Lock
    _at: datetime | None = None

    @property
    def at(self) -> datetime:
        return given(self._at)

    def items(self, path: str, parameters: Json, by: str) -> list[Json]:
        """The items of a list that are not older than `since`; it goes from the latest to the oldest."""
        with self.lock:
            before = self.kept.get((self.repo, path))
        condition = {"If-None-Match": before.etag} if before else {}
        found: list[Json] = []
        etag = ""
        for headers, page in _pages(self.requester, f"{self.url}/{path}", parameters, condition):
            self._at = self._at or _date(headers)
            if page is None and before is not None:
                return [item for item in before.items if self._is_fresh(item, by)]
            etag = etag or headers.get("etag", "")
            fresh = [item for item in page if self._is_fresh(item, by)]
            found += fresh
            if len(fresh) < len(page):
                break
        with self.lock:
            self.kept[self.repo, path] = _Kept(etag, tuple(found))
        return found

    def _is_fresh(self, item: Json, by: str) -> bool:
        return datetime.fromisoformat(item[by]) >= self.since


def _pages(
    requester: Requester, url: str, parameters: Json, condition: dict[str, str] | None = None
) -> Iterator[tuple[dict[str, str], Any]]:
    """Headers and content of each page; content None: it is as it was (only the first one can be)."""
    headers, page = requester.requestJsonAndCheck("GET", url, parameters, condition)
    yield headers, page
    while (following := _next(headers)) is not None:
        headers, page = requester.requestJsonAndCheck("GET", following)
        yield headers, page


def _next(headers: dict[str, str]) -> str | None:
    for link in headers.get("link", "").split(","):
        address, _, rel = link.partition(";")
        if rel.strip() == 'rel="next"':
            return address.strip().removeprefix("<").removesuffix(">")
    return None


def _date(headers: dict[str, str]) -> datetime:
    return parsedate_to_datetime(headers["date"])


@dataclass(frozen=True, slots=True)
class _Reading:
    """GitHub's objects read as events, each with a delivery id made of what it tells."""

    source: str
    repo: Repo

    def comment(self, one: IssueComment) -> Event:
        """Times are whole seconds: an edit within the second of its writing does not show."""
        edited = given(one.updated_at) != given(one.created_at)
        text = one.body or ""
        number = int(given(one.issue_url).rpartition("/")[2])
        on_pull = f"/pull/{number}#" in given(one.html_url)
        author = actor(one.user)
        return self._event(
            f"comment-{one.id:d}-{one.updated_at:%Y%m%dT%H%M%S}",
            PullRef(self.repo, number) if on_pull else IssueRef(self.repo, number),
            author,
            Commented(f"{one.id:d}", author, text, before=text if edited else None),
            at=given(one.updated_at),
        )

    def event(self, one: IssueEvent) -> Event | None:
        """Labels; a pull request's end and its second beginning."""
        if one.raw_data.get("issue") is None:
            return None  # of one that was deleted
        pull = one.issue.pull_request
        what: Happening
        match one.event:
            case "labeled":
                what = Labeled(given(one.label).name)
            case "closed" if pull is not None:
                what = Closed(merged=pull.raw_data.get("merged_at") is not None)
            case "reopened" if pull is not None:
                what = Opened(given(one.issue.title))
            case _:
                return None
        number = given(one.issue.number)
        on = IssueRef(self.repo, number) if pull is None else PullRef(self.repo, number)
        return self._event(f"event-{one.id:d}", on, actor(one.actor), what, at=given(one.created_at))

    def opened(self, one: PullRequest) -> Event:
        """Its head is the one of now: it was so when the pull request was last changed, perhaps not when it began."""
        head = _head(self.repo, one)
        what = Opened(given(one.title))
        return self._event(f"opened-{head.pull.number}", head.pull, actor(one.user), what, at=head.at, head=head.sha)

    def issue(self, one: Json) -> Event:
        user, number = one["user"], int(one["number"])
        author = Actor(user["login"], str(user["id"]), is_bot=user["type"] == "Bot") if user else GHOST
        at = datetime.fromisoformat(one["created_at"])
        return self._event(f"opened-{number}", IssueRef(self.repo, number), author, Opened(one["title"]), at=at)

    def pushed(self, head: Head, before: Sha, author: Actor) -> Event:
        name = f"pushed-{head.pull.number}-{head.sha}-{head.at:%Y%m%dT%H%M%S}"
        return self._event(name, head.pull, author, Pushed(before, head.sha), at=head.at, head=head.sha)

    def _event(
        self,
        name: str,
        subject: PullRef | IssueRef,
        who: Actor,
        what: Happening,
        *,
        at: datetime,
        head: Sha | None = None,
    ) -> Event:
        return Event(
            source=self.source,
            delivery=f"poll-{self.repo.name}-{name}",
            subject=subject,
            actor=who,
            what=what,
            head_sha=head,
            at=at.astimezone(UTC),
        )


def _head(repo: Repo, one: PullRequest) -> Head:
    return Head(PullRef(repo, given(one.number)), Sha(given(one.head.sha)), given(one.updated_at).astimezone(UTC))


def _full_name(source: Repository | None) -> str | None:
    """Of the repository that a head lives in; None when that was deleted."""
    return None if source is None else given(source.full_name)

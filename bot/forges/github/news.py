"""What happened in a repository on GitHub, found by asking. While nothing does, asking costs nothing of the allowance:
an answer that is as before (304) does not count.

https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#use-conditional-requests
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime

from github.Repository import Repository
from github.Requester import Requester

from bot.errors import Forbidden, Gone
from bot.forges.asking import Head, Look
from bot.forges.github.access import Access, there
from bot.forges.github.lists import Json, actor, moment, pages
from bot.forges.github.settings import Settings
from bot.forges.github.values import given
from bot.model import (
    Actor,
    Closed,
    Commented,
    Event,
    Happening,
    IssueRef,
    Labeled,
    Opened,
    PullRef,
    Pushed,
    Repo,
    Sha,
    Updated,
)

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
    """`bot.forges.asking.News` on GitHub. Answers are read as they are: an object of PyGithub's asks again, by itself,
    for each field that a list leaves out."""

    def __init__(self, name: str, settings: Settings, access: Access) -> None:
        self._name = name
        self._access = access
        self._lock = threading.Lock()
        self._kept: dict[tuple[Repo, str], _Kept] = {}
        self._spelled: dict[Repo, Repo] = {}
        self.every = settings.poll_seconds

    def heads(self, repo: Repo) -> Look:
        with there(self._access, repo, "the open pull requests") as found:
            url, parameters = f"{found.url}/pulls", {"state": "open", "per_page": 100}
            answers = list(pages(found.requester, url, parameters))
            read = _Reading(self._name, self._as_spelled(repo, found))
            return Look(_date(answers[0][0]), heads=tuple(read.head(one) for _, page in answers for one in page))

    def since(self, repo: Repo, since: datetime, known: Callable[[PullRef], Sha | None]) -> Look:
        with there(self._access, repo, "what happened") as found:
            ask = _Asking(found.requester, found.url, since, repo, self._kept, self._lock)
            read = _Reading(self._name, self._as_spelled(repo, found))
            comments, events, pulls = ask.items(*_COMMENTS), ask.items(*_EVENTS), ask.items(*_PULLS)
            told = [
                *(read.comment(one) for one in comments if one["user"] is not None),
                *(event for one in events if (event := read.event(one)) is not None),
                *(read.opened_pull(one) for one in pulls if moment(one["created_at"]) >= since),
                *(read.opened_issue(one) for one in ask.items(*_ISSUES) if "pull_request" not in one),
            ]
            open_pulls = [(read.head(one), one) for one in pulls if one["state"] == "open"]
            moved = [
                (read.pushed(head, before, one), one["head"])
                for head, one in open_pulls
                if (before := known(head.pull)) is not None and before != head.sha
            ]
            at = ask.at
        told += [self._told_exactly(event, end) for event, end in moved]
        told.reverse()  # the lists begin with the latest, and some of them may share a second
        told.sort(key=lambda event: event.at)
        return Look(at, tuple(told), tuple(head for head, _ in open_pulls))

    def _as_spelled(self, repo: Repo, found: Repository) -> Repo:
        """The name as deliveries have it: what was obeyed is known by it, and a configuration may write `Acme/Shop`."""
        if repo not in self._spelled:
            _, answer = found.requester.requestJsonAndCheck("GET", found.url)
            name = str(answer["full_name"])
            self._spelled[repo] = Repo(repo.forge, name) if name.casefold() == repo.name.casefold() else repo
        return self._spelled[repo]

    def _told_exactly(self, event: Event, end: Json) -> Event:
        """With who pushed and when, where GitHub says it: by default it may have been at any time until now.

        https://docs.github.com/en/rest/repos/repos#list-repository-activities
        """
        if end["repo"] is None:
            return event  # the fork was deleted
        source, branch = Repo(self._name, str(end["repo"]["full_name"])), str(end["ref"])
        try:
            with there(self._access, source, f"the pushes to {branch}") as found:
                parameters = {"ref": f"refs/heads/{branch}", "per_page": 30}
                _, pushes = found.requester.requestJsonAndCheck("GET", f"{found.url}/activity", parameters)
                last = next((one for one in pushes if one["after"] == event.head_sha), None)
                return (
                    event if last is None else replace(event, actor=actor(last["actor"]), at=moment(last["timestamp"]))
                )
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
        for headers, page in pages(self.requester, f"{self.url}/{path}", parameters, condition):
            self._at = self._at or _date(headers)
            if page is None and before is not None:
                return [item for item in before.items if moment(item[by]) >= self.since]
            etag = etag or headers.get("etag", "")
            fresh = [item for item in page if moment(item[by]) >= self.since]
            found += fresh
            if len(fresh) < len(page):
                break
        with self.lock:
            self.kept[self.repo, path] = _Kept(etag, tuple(found))
        return found


def _date(headers: dict[str, str]) -> datetime:
    return parsedate_to_datetime(headers["date"])


@dataclass(frozen=True, slots=True)
class _Reading:
    """GitHub's objects read as events, each with a delivery id made of what it tells."""

    source: str
    repo: Repo

    def comment(self, one: Json) -> Event:
        """Times are whole seconds: an edit within the second of its writing does not show."""
        edited, text = one["updated_at"] != one["created_at"], str(one["body"] or "")
        number, author, at = int(one["issue_url"].rpartition("/")[2]), actor(one["user"]), moment(one["updated_at"])
        on_pull = f"/pull/{number}#" in one["html_url"]
        return self._event(
            f"comment-{one['id']:d}-{at:%Y%m%dT%H%M%S}",
            PullRef(self.repo, number) if on_pull else IssueRef(self.repo, number),
            author,
            Commented(f"{one['id']:d}", author, text, before=text if edited else None),
            at=at,
        )

    def event(self, one: Json) -> Event | None:
        """Labels; who an issue is assigned to; a pull request's end and its second beginning."""
        issue = one["issue"]
        if issue is None:
            return None  # it was deleted
        pull, number = issue.get("pull_request"), int(issue["number"])
        what: Happening
        match one["event"]:
            case "labeled":
                what = Labeled(str(one["label"]["name"]))
            case "unlabeled" if pull is None:
                what = Updated(f"event-{one['id']:d}", str(one["label"]["name"]), "", assignee=False)
            case "assigned" | "unassigned" if pull is None:
                what = Updated(f"event-{one['id']:d}", "", "", assignee=True)
            case "closed" if pull is not None:
                what = Closed(merged=pull.get("merged_at") is not None)
            case "reopened" if pull is not None:
                what = Opened(str(issue["title"]))
            case _:
                return None
        on = IssueRef(self.repo, number) if pull is None else PullRef(self.repo, number)
        return self._event(
            f"event-{one['id']:d}", on, actor(one.get("assigner") or one["actor"]), what, at=moment(one["created_at"])
        )

    def opened_pull(self, one: Json) -> Event:
        """Its head is the one of now: it was so when the pull request was last changed, perhaps not when it began."""
        head, what = self.head(one), Opened(str(one["title"]))
        name = f"opened-{head.pull.number}"
        return self._event(name, head.pull, actor(one["user"]), what, at=head.at, head=head.sha)

    def opened_issue(self, one: Json) -> Event:
        on, what = IssueRef(self.repo, int(one["number"])), Opened(str(one["title"]))
        return self._event(f"opened-{on.number}", on, actor(one["user"]), what, at=moment(one["created_at"]))

    def pushed(self, head: Head, before: Sha, one: Json) -> Event:
        name = f"pushed-{head.pull.number}-{head.sha}-{head.at:%Y%m%dT%H%M%S}"
        what = Pushed(before, head.sha)
        return self._event(name, head.pull, actor(one["user"]), what, at=head.at, head=head.sha)

    def head(self, one: Json) -> Head:
        return Head(PullRef(self.repo, int(one["number"])), Sha(str(one["head"]["sha"])), moment(one["updated_at"]))

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
            at=at,
        )

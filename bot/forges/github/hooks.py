"""GitHub's webhooks and their deliveries: a repository's own, and the one that an App has for all of its.

https://docs.github.com/en/rest/repos/webhooks and https://docs.github.com/en/rest/apps/webhooks
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from github.Hook import Hook as GithubHook
from github.HookDelivery import HookDeliverySummary
from github.PaginatedList import PaginatedList
from github.Requester import Requester

from bot.errors import Forbidden, Gone
from bot.forges.asking import Hook, Sent
from bot.forges.github.access import Access, there
from bot.forges.github.values import given
from bot.model import Repo

EVENTS = ("issue_comment", "issues", "pull_request", "push")
"""What a webhook has to bring."""

_APP = "/app/hook"


class Hooks:
    """`bot.forges.asking.Hooks` on GitHub."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def of(self, repo: Repo) -> tuple[Hook, ...]:
        """An account needs the admin role there, and a classic token one of the scopes repo and admin:repo_hook."""
        own = self._of_app()
        try:
            with there(self._access, repo, "the webhooks") as found:
                return (*own, *(_hook(repo, hook) for hook in found.get_hooks()))
        except (Gone, Forbidden):
            if own:
                return own  # an App seldom may list a repository's, and needs none of them
            raise

    def _of_app(self) -> tuple[Hook, ...]:
        """The App's webhook, where it has one. Nobody says whether it is active, nor how its latest delivery ended."""
        if not self._access.is_app:
            return ()
        try:
            with self._access.own.client("the App's webhook") as client:
                _, config = client.requester.requestJsonAndCheck("GET", f"{_APP}/config")
                _, app = client.requester.requestJsonAndCheck("GET", "/app")
                url, json = config.get("url"), config.get("content_type") == "json"
                lacks = _lacks(app["events"])
        except Gone:
            return ()
        if not url:
            return ()
        return (Hook(id="app", repo=None, url=url, active=True, json=json, lacks=lacks, last_code=None),)

    def sent(self, hook: Hook, since: datetime) -> tuple[Sent, ...]:
        """GitHub keeps them for three days."""
        with self._asked(hook, "the deliveries") as (requester, url):
            listed = PaginatedList(HookDeliverySummary, requester, f"{url}/deliveries", None)
            return tuple(_since(listed, since))

    def send_again(self, hook: Hook, sent: Sent) -> None:
        with self._asked(hook, f"one more try at delivery {sent.guid}", writes=True) as (requester, url):
            requester.requestJsonAndCheck("POST", f"{url}/deliveries/{int(sent.id)}/attempts")

    @contextmanager
    def _asked(self, hook: Hook, what: str, *, writes: bool = False) -> Iterator[tuple[Requester, str]]:
        """Whom to ask about the webhook, and its address in the API."""
        if hook.repo is not None:
            with there(self._access, hook.repo, what, writes=writes) as found:
                yield found.requester, f"{found.url}/hooks/{int(hook.id)}"
        else:
            with self._access.own.client(f"{what} of the App's webhook", writes=writes) as client:
                yield client.requester, _APP


def _since(listed: Iterable[HookDeliverySummary], since: datetime) -> Iterator[Sent]:
    for one in listed:
        if given(one.delivered_at) < since:
            return
        if one.event in EVENTS:
            yield _sent(one)


def _sent(one: HookDeliverySummary) -> Sent:
    return Sent(
        id=f"{given(one.id):d}",
        guid=given(one.guid),
        at=given(one.delivered_at),
        code=given(one.status_code),
        again=given(one.redelivery),
        what=f"{one.event}.{one.action}" if one.action else f"{one.event}",
        status=f"{one.status_code} {one.status or ''}".strip(),
    )


def _hook(repo: Repo, hook: GithubHook) -> Hook:
    config: dict[str, Any] = given(hook.config)
    return Hook(
        id=f"{given(hook.id):d}",
        repo=repo,
        url=str(config.get("url", "")),
        active=given(hook.active),
        json=config.get("content_type") == "json",
        lacks=_lacks(given(hook.events)),
        last_code=hook.last_response.code,
    )


def _lacks(events: Iterable[str]) -> tuple[str, ...]:
    brought = set(events)
    return () if "*" in brought else tuple(event for event in EVENTS if event not in brought)

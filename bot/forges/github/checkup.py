"""What GitHub says about the bot itself: what its token may, what protects the branches, what time it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import quote

from bot.errors import Gone
from bot.finding import Finding, Verdict
from bot.forges.github.access import Access, there
from bot.forges.github.settings import Settings
from bot.model import Repo

_SKEW = timedelta(seconds=30)

_APP_NEEDS = {
    "contents": ("write", "no branch can be pushed"),
    "issues": ("write", "issues can't be answered"),
    "pull_requests": ("write", "pull requests can't be answered"),
    "metadata": ("read", "nobody's rights can be read"),
}
"""Permission -> (least level, what is lost without it)."""

_LEVELS = ("read", "write", "admin")

_STOPS = {
    "creation": "only those on its bypass list may make it",
    "update": "only those on its bypass list may push to it",
    "pull_request": "it takes pull requests only",
    "required_status_checks": "it takes only commits whose checks have passed",
    "required_signatures": "it takes signed commits only",
    "workflows": "it takes only commits whose workflows have passed",
    "merge_queue": "it takes what its merge queue makes only",
}
"""Type of a ruleset's rule -> how it keeps a push out.

https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/managing-rulesets/available-rules-for-rulesets
"""


class Checkup:
    """`bot.forges.asking.Checkup` on GitHub."""

    def __init__(self, name: str, settings: Settings, access: Access) -> None:
        self._subject = f"[forges.{name}]"
        self._settings = settings
        self._access = access

    def account(self) -> Iterator[Finding]:
        return self._app() if self._access.is_app else self._token()

    def _app(self) -> Iterator[Finding]:
        with self._access.own.client("the App itself") as client:
            headers, app = client.requester.requestJsonAndCheck("GET", "/app")
            slug, has = str(app["slug"]), dict(app["permissions"])
            told = parsedate_to_datetime(headers["date"])
        lacking = [
            f"{name}: {level} ({lost})" for name, (level, lost) in _APP_NEEDS.items() if not _reaches(has, name, level)
        ]
        if lacking:
            yield self._finding("wrong", f"the App {slug} lacks permissions: {', '.join(lacking)}; give it these")
        else:
            yield self._finding("ok", f"the App {slug} has the permissions it needs")
        yield self._clock(told)

    def _token(self) -> Iterator[Finding]:
        with self._access.own.client("the token's rights") as client:
            headers, _ = client.requester.requestJsonAndCheck("GET", "/user")
            shown = headers.get("x-oauth-scopes")
            told = parsedate_to_datetime(headers["date"])
        yield self._kind(shown)
        yield self._clock(told)

    def _kind(self, shown: str | None) -> Finding:
        """https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps"""
        if shown is None:
            what = "a fine-grained token: it needs contents, issues and pull requests (read and write) there"
            return self._finding("ok", f"{what}; webhooks (read and write) to have lost deliveries sent again")
        scopes = {scope.strip() for scope in shown.split(",")} - {""}
        listed = ", ".join(sorted(scopes)) or "none"
        if "repo" in scopes:
            return self._finding("ok", f"a classic token with the scopes {listed}")
        if "public_repo" in scopes:
            lost = "private repositories can't be seen; for these give it the scope repo"
            return self._finding("warning", f"a classic token with the scopes {listed}: {lost}")
        lost = "nothing can be pushed or answered; give it the scope repo, or public_repo where all are public"
        return self._finding("wrong", f"a classic token with the scopes {listed}: {lost}")

    def _clock(self, told: datetime) -> Finding:
        off = self._access.clock() - told
        if abs(off) <= _SKEW:
            return self._finding("ok", "its clock and this host's agree")
        seconds, side = abs(off).total_seconds(), "ahead of" if off > timedelta() else "behind"
        lost = "an App's key is not accepted, and which came first, a push or a comment, is judged wrongly"
        return self._finding("wrong", f"this host's clock is {seconds:.0f} s {side} its clock: {lost}; set it by NTP")

    def branches(self, repo: Repo, ours: Iterable[str], default: str) -> Iterator[Finding]:
        for branch in ours:
            yield self._open(repo, branch)
        if self._rules(repo, default) or self._is_protected(repo, default):
            yield Finding(_named(repo, default), "ok", "is protected on GitHub, too")
        else:
            what = "is not protected on GitHub: Leadsman pushes nothing there, and nothing else keeps others from it"
            yield Finding(_named(repo, default), "warning", f"{what}; protect it in the repository's settings")

    def _open(self, repo: Repo, branch: str) -> Finding:
        subject = _named(repo, branch)
        rules = self._rules(repo, branch)
        why = [text for kind, text in _STOPS.items() if kind in rules]
        if self._is_protected(repo, branch):
            why.append("it is protected by a branch protection rule")
        if not why:
            return Finding(subject, "ok", "can be pushed to")
        lost = "what a run publishes there may be refused"
        do = "put the bot on the bypass list, or leave the branch out of the rule"
        return Finding(subject, "warning", f"{'; '.join(why)}: {lost}; {do}")

    def _rules(self, repo: Repo, branch: str) -> frozenset[str]:
        """The types of the rules that rulesets have for the branch, which need not exist yet."""
        try:
            with there(self._access, repo, f"the rules of {branch}") as found:
                path = f"{found.url}/rules/branches/{quote(branch, safe='')}"
                _, listed = found.requester.requestJsonAndCheck("GET", path, {"per_page": 100})
                return frozenset(str(rule["type"]) for rule in listed)
        except Gone:
            return frozenset()  # an older Enterprise Server

    def _is_protected(self, repo: Repo, branch: str) -> bool:
        try:
            with there(self._access, repo, f"branch {branch}") as found:
                return bool(found.get_branch(branch).protected)
        except Gone:
            return False  # it is made by the first push

    def _finding(self, verdict: Verdict, what: str) -> Finding:
        return Finding(self._subject, verdict, what)


def _named(repo: Repo, branch: str) -> str:
    return f"{repo.name} {branch}"


def _reaches(has: dict[str, str], name: str, level: str) -> bool:
    return has.get(name) in _LEVELS[_LEVELS.index(level) :]

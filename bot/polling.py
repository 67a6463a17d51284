"""Looks at the repositories that no webhook tells of, as far as is known: what happened there becomes events.

How far was looked is durable, by the forge's own clock. Each look goes back a little behind that, since lists lag and
times are whole seconds; what is found twice has the same id and is dropped by whoever takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from bot.errors import Forbidden, Gone, Unavailable
from bot.forges import Forge
from bot.forges.asking import Head, News
from bot.journal import Journal
from bot.model import Commented, Event, PullRef, Repo, Sha
from bot.projects import Project
from bot.store import books, facts
from bot.store.engine import Store

OVERLAP = timedelta(minutes=2)

REFUSED_SECONDS = 600.0
"""How soon a repository is looked at again that the bot may not look at."""

Take = Callable[[Iterable[Event]], int]
"""Takes events, on disk when it returns; returns how many were new. Raises `Unavailable`."""


class Polling:
    """`is_bare` says which projects need it."""

    def __init__(
        self,
        projects: Collection[Project],
        forges: Mapping[str, Forge],
        is_bare: Callable[[str], bool],
        take: Take,
        *,
        store: Store,
        journal: Journal,
        clock: Callable[[], float],
    ) -> None:
        self._projects = {project.name: project for project in projects}
        self._forges = forges
        self._is_bare = is_bare
        self._take = take
        self._store = store
        self._journal = journal
        self._clock = clock
        self._said: set[tuple[str, str]] = set()

    def look(self, name: str) -> float | None:
        """Looks at a project once; returns in how many seconds to look again, None = no more."""
        project = self._projects[name]
        forge = self._forges[project.forge]
        news = forge.news
        if news is None or news.every == 0 or not self._is_bare(name):
            return None
        try:
            self._look(project.repo, forge, news)
        except Unavailable as problem:
            later = problem.retry_at.timestamp() - self._clock() if problem.retry_at else 0.0
            return max(float(news.every), later)
        except (Gone, Forbidden) as problem:
            if (name, str(problem)) not in self._said:
                self._said.add((name, str(problem)))
                self._journal.say("unpolled", repo=str(project.repo), why=str(problem))
            return max(float(news.every), REFUSED_SECONDS)
        return float(news.every)

    def _look(self, repo: Repo, forge: Forge, news: News) -> None:
        since = self._mark(repo)
        if since is None:  # the first time: what was before is history
            first = news.heads(repo)
            self._note(repo, first.heads, first.at)
            since = first.at
        look = news.since(repo, since - OVERLAP, self._head)
        mine = forge.me().id
        told = [one for one in look.events if not (isinstance(one.what, Commented) and one.actor.id == mine)]
        new = self._take(told)
        self._note(repo, look.heads, look.at)
        if new:
            self._journal.say("polled", repo=str(repo), found=new)

    def _head(self, pull: PullRef) -> Sha | None:
        with self._store.read() as connection:
            head = books.last_head(connection, str(pull))
        return Sha(head) if head else None

    def _mark(self, repo: Repo) -> datetime | None:
        with self._store.read() as connection:
            text = facts.get(connection, f"poll:{repo}")
        return datetime.fromisoformat(text).astimezone(UTC) if text else None

    def _note(self, repo: Repo, heads: Iterable[Head], at: datetime) -> None:
        """How far was looked, and where those pull requests stand that were not known; a move is noted by its event."""
        with self._store.write() as connection:
            for head in heads:
                if books.last_head(connection, str(head.pull)) is None:
                    seen_at = head.at.timestamp()
                    books.saw_head(connection, str(head.pull), head.sha, at=seen_at, now=self._clock())
            looked_until(connection, repo, at)


def looked_until(connection: sa.Connection, repo: Repo, at: datetime) -> None:
    """Notes that nothing of the repository from before is to be looked for any more."""
    facts.put(connection, f"poll:{repo}", at.isoformat())

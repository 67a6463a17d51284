"""Deliveries that never came: where the bot may, it has the forge send them again.

A try that failed while the server was down, or the way to it, is kept by the forge for some days. Nothing is sent
again that arrived meanwhile, and nothing more often than `MOST` times.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bot.dispatch import Hint, Hints
from bot.errors import Forbidden, Gone, Unavailable
from bot.forges import Forge
from bot.forges.asking import Hook, Hooks, Sent
from bot.journal import Journal
from bot.model import Repo
from bot.polling import looked_until
from bot.projects import Project
from bot.store import facts
from bot.store.engine import Store

EVERY = 600.0
"""Seconds between two looks."""

SOON = 60.0
"""Seconds until the next look where the forge did not answer, or more is to be sent than one look should."""

KEPT = timedelta(days=3)
"""How long GitHub keeps what it could not deliver."""

MOST = 5
"""How often a delivery is sent again. Between two tries lies the time between two looks, doubled each time."""

MOST_AT_ONCE = 50

LOST = "deliveries that fail while the server is away are not sent again"


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that has not arrived: when it was first tried, its latest try, and how often it was sent again."""

    first_at: datetime
    latest: Sent
    again: int

    def is_due(self, now: datetime) -> bool:
        wait = timedelta(seconds=EVERY) * 2.0 ** (self.again - 1) if self.again else timedelta()
        return now >= self.latest.at + wait


def missing(tries: Iterable[Sent]) -> list[Missing]:
    """What has not arrived in any of these tries, the oldest first."""
    by_guid: dict[str, list[Sent]] = {}
    for sent in tries:
        by_guid.setdefault(sent.guid, []).append(sent)
    found = [
        Missing(min(one.at for one in group), max(group, key=lambda one: one.at), sum(one.again for one in group))
        for group in by_guid.values()
        if not any(one.arrived for one in group)
    ]
    return sorted(found, key=lambda one: one.first_at)


def delivers_to(hook: Hook, address: str) -> bool:
    """Whether it is meant for this server's door."""
    return hook.url.rstrip("/").casefold() == address.casefold()


class Missed:
    """Looks after the webhooks of the projects. `url`: where this server's door is, for the forges."""

    def __init__(
        self,
        projects: Collection[Project],
        forges: Mapping[str, Forge],
        url: str,
        *,
        store: Store,
        journal: Journal,
        hints: Hints,
        clock: Callable[[], float],
    ) -> None:
        self._projects = projects
        self._forges = forges
        self._url = url
        self._store = store
        self._journal = journal
        self._hints = hints
        self._clock = clock
        self._bare: frozenset[str] = frozenset()
        self._given_up: set[str] = set()

    def is_bare(self, project: str) -> bool:
        """No webhook is known that would tell of it."""
        return project in self._bare

    def look(self, _key: str = "") -> float:
        """Looks once at everything; returns in how many seconds to look again."""
        hooks: dict[tuple[str, str], Hook] = {}
        bare, unanswered = set(), False
        for project in self._projects:
            asked = self._forges[project.forge].hooks
            if asked is None:
                continue
            try:
                found = self._hooks_of(project, asked)
            except Unavailable:
                unanswered = True
                bare |= {project.name} & self._bare
                continue
            hooks |= {(project.forge, str(hook)): hook for hook in found}
            if any(hook.works for hook in found):
                self._note_told(project.repo)
            else:
                bare.add(project.name)
        self._tell_bare(frozenset(bare))
        more = [self._after(forge, hook) for (forge, _), hook in hooks.items()]
        return SOON if unanswered or any(more) else EVERY

    def _hooks_of(self, project: Project, asked: Hooks) -> list[Hook]:
        """Those of our door. Where they may not be known, that is said once."""
        name = f"hooks:{project.repo}"
        try:
            found = asked.of(project.repo)
        except (Gone, Forbidden) as problem:
            if self._is_news(name, str(problem)):
                self._journal.say("webhooks_unknown", repo=str(project.repo), why=str(problem), lost=LOST)
            return []
        with self._store.write() as connection:
            facts.drop(connection, name)
        return [hook for hook in found if delivers_to(hook, door_of(self._url, project.repo))]

    def _note_told(self, repo: Repo) -> None:
        """Should its webhook be taken away, it is looked at from here on."""
        with self._store.write() as connection:
            looked_until(connection, repo, datetime.fromtimestamp(self._clock(), UTC))

    def _is_news(self, name: str, text: str) -> bool:
        with self._store.write() as connection:
            known = facts.get(connection, name) == text
            if not known:
                facts.put(connection, name, text)
        return not known

    def _tell_bare(self, bare: frozenset[str]) -> None:
        new, self._bare = bare - self._bare, bare
        for project in sorted(new):
            self._hints.put(Hint("look", project))

    # ── one webhook ──────────────────────────────────────────────────────────────────────────────────────────────

    def _after(self, forge: str, hook: Hook) -> bool:
        """Has sent again what a webhook could not deliver; True: not all of it yet."""
        try:
            return self._send_missing(forge, hook)
        except Unavailable:
            return True
        except (Gone, Forbidden) as problem:
            if self._is_news(f"deliveries:{forge}:{hook}", str(problem)):
                self._journal.say("deliveries_unknown", forge=forge, webhook=str(hook), why=str(problem), lost=LOST)
            return False

    def _send_missing(self, forge: str, hook: Hook) -> bool:
        asked = self._forges[forge].hooks
        if asked is None:
            return False
        now = datetime.fromtimestamp(self._clock(), UTC)
        tries = asked.sent(hook, self._mark(forge, hook, now))
        still = [one for one in missing(tries) if not self._gives_up(forge, one)]
        due = [one for one in still if one.is_due(now)]
        for one in due[:MOST_AT_ONCE]:
            try:
                asked.send_again(hook, one.latest)
            except (Gone, Forbidden) as problem:  # too old for the forge, or the bot may look and not touch
                self._lose(forge, one, str(problem))
                break
            self._journal.say("sent_again", forge=forge, webhook=str(hook), **_facts(one))
        if tries:
            self._set_mark(forge, hook, still[0].first_at if still else max(one.at for one in tries))
        return len(due) > MOST_AT_ONCE

    def _gives_up(self, forge: str, one: Missing) -> bool:
        if one.latest.guid in self._given_up:
            return True
        if one.again < MOST:
            return False
        self._lose(forge, one, f"tried {one.again + 1} times")
        return True

    def _lose(self, forge: str, one: Missing, why: str) -> None:
        self._given_up.add(one.latest.guid)
        self._journal.say("delivery_lost", forge=forge, why=why, **_facts(one))

    def _mark(self, forge: str, hook: Hook, now: datetime) -> datetime:
        """From when on tries are looked at: everything before has arrived, or was given up."""
        with self._store.read() as connection:
            text = facts.get(connection, f"sent:{forge}:{hook}")
        oldest = now - KEPT
        return max(oldest, datetime.fromisoformat(text)) if text else oldest

    def _set_mark(self, forge: str, hook: Hook, at: datetime) -> None:
        with self._store.write() as connection:
            facts.put(connection, f"sent:{forge}:{hook}", at.isoformat())


def _facts(one: Missing) -> dict[str, str]:
    return {"delivery": one.latest.guid, "what": one.latest.what, "answered": one.latest.status}


def door_of(url: str, repo: Repo) -> str:
    """Where the webhooks of a repository should point."""
    return f"{url}/webhooks/{repo.forge}"

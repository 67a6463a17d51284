"""Spares: fresh checkouts that nobody has ever worked in, one ready for each repository that was used lately.

A lease takes one and moves it to its commit, which writes only the difference. They are nobody's: found again,
refreshed or removed when the server starts, and gone with their repository's configuration. Nothing is ever reused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from urllib.parse import quote

from bot.dispatch import Hint, Hints
from bot.errors import Forbidden, Gone, Unavailable
from bot.journal import Journal
from bot.model import Intent, Repo
from bot.repositories import Repositories, git_trouble
from bot.store import runs
from bot.store.engine import Store
from gitops import trash, worktree
from gitops.mirror import Mirror

RECENT_SECONDS = 7 * 86_400.0
"""A repository that had no run for that long gets no new spare, and loses the one it has."""

HOUR = 3600.0


class Spares:
    """The spares of this host, in `<root>/<forge>/<repository>/<n>`."""

    def __init__(
        self,
        root: Path,
        number: int,
        repos: Collection[Repo],
        repositories: Repositories,
        store: Store,
        *,
        hints: Hints,
        journal: Journal,
        clock: Callable[[], float],
    ) -> None:
        self._root = root
        self._number = number
        self._configured = {str(repo).casefold() for repo in repos}  # compared as forges do
        self._repositories = repositories
        self._store = store
        self._hints = hints
        self._journal = journal
        self._clock = clock

    def take(self, repo: Repo, mirror: Mirror) -> Path | None:
        """A spare that is ready, for `worktree.add`, which is the one to decide who gets it. None: there is none.

        Its successor is prepared in the background.
        """
        if self._number:
            self._hints.put(Hint("spare", str(repo)), after=1.0)  # the run itself starts first
        return next((path for path in self._places(repo) if worktree.is_spare(mirror, path)), None)

    def prepare(self, key: str) -> None:
        """Brings the spares of a repository, named by `str(Repo)`, to the base that its last run was meant for."""
        with self._store.read() as connection:
            last = runs.last_intent(connection, key, since=self._clock() - RECENT_SECONDS)
        if last is None or key.casefold() not in self._configured:
            return
        repo = last.event.subject.repo
        try:
            mirror = self._repositories.known_mirror(repo)
            if mirror is not None:
                self._prepare(repo, mirror, last)
        except (Unavailable, Gone, Forbidden) as problem:
            self._journal.say("no_spare", repo=key, why=str(problem))

    def sweep(self, _key: str = "") -> float:
        """Removes what is of no use any more and refreshes the rest; returns when to look again."""
        with self._store.read() as connection:
            recent = runs.repositories_since(connection, self._clock() - RECENT_SECONDS) if self._number else set()
        used = [Repo(*key.split(":", 1)) for key in recent if key.casefold() in self._configured]
        wanted = {self._folder(repo) for repo in used}
        for forge in _folders(self._root):
            for folder in _folders(forge):
                if folder not in wanted:
                    trash.discard(folder, self._trash)  # its registration goes when its mirror is swept next
        for repo in used:
            self._hints.put(Hint("spare", str(repo)))
        trash.empty(self._trash)
        return HOUR

    def _prepare(self, repo: Repo, mirror: Mirror, last: Intent) -> None:
        with git_trouble(f"A spare of {repo} can't be made"):
            sha = mirror.fetched(last.base_ref) or last.head
            places = self._places(repo)
            ready = [path for path in places if worktree.is_spare(mirror, path)]
            worktree.sweep(mirror, self._folder(repo), lambda: ready)
            for path in places:
                if worktree.refresh(mirror, path, sha):
                    self._journal.say("spare", repo=str(repo), path=str(path), sha=sha)

    def _folder(self, repo: Repo) -> Path:
        return self._root / repo.forge / quote(repo.name, safe="")

    def _places(self, repo: Repo) -> list[Path]:
        return [self._folder(repo) / f"spare-{n}" for n in range(1, self._number + 1)]

    @property
    def _trash(self) -> Path:
        return self._root.with_name(f"{self._root.name}.trash")


def _folders(path: Path) -> list[Path]:
    return [below for below in path.iterdir() if below.is_dir()] if path.is_dir() else []

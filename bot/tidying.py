"""Puts away what nobody holds: worktrees and checkouts of runs that ended or never were, and what was set aside."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from bot.errors import Forbidden, Gone, Unavailable
from bot.journal import Journal
from bot.model import Repo
from bot.repositories import Repositories, git_trouble
from bot.statefiles import discard_drafts
from bot.store import runs
from bot.store.engine import Store
from gitops import trash, worktree

HOUR = 3600.0


class Tidying:
    """One sweep when the server starts, a lighter one each hour, and the trash whenever something went into it."""

    def __init__(
        self,
        repositories: Repositories,
        store: Store,
        folders: Iterable[Path],
        repos: Collection[Repo],
        runs_dir: Path,
        *,
        journal: Journal,
    ) -> None:
        self._repositories = repositories
        self._store = store
        self._folders = tuple(folders)
        self._repos = repos
        self._runs_dir = runs_dir
        self._journal = journal

    def sweep(self, _key: str = "") -> float:
        """Removes what no open run holds, and what killed writers left in the home; returns when to look again."""
        discard_drafts(self._runs_dir.parent, older=HOUR)
        for repo in self._repos:
            try:
                self._sweep_one(repo)
            except (Unavailable, Gone, Forbidden) as problem:
                self._journal.say("untidied", repo=str(repo), why=str(problem))
        return HOUR

    def empty(self, _key: str = "") -> None:
        """Deletes what was set aside: slow on large trees, so it is nobody's step."""
        for folder in self._repositories.put_aside():
            for why in trash.empty(folder):
                self._journal.say("untidied", path=str(folder), why=why)

    def _sweep_one(self, repo: Repo) -> None:
        mirror = self._repositories.known_mirror(repo)
        if mirror is None:
            return
        with git_trouble(f"The worktrees of {repo} can't be swept"):
            for folder in self._folders:
                for gone in worktree.sweep(mirror, folder, self._kept):
                    self._journal.say("swept", repo=str(repo), path=str(gone))
            trash.empty(mirror.trash)
            mirror.tidy()

    def _kept(self) -> list[Path]:
        places = [folder / run_id for folder in self._folders for run_id in self._held()]
        return places + [path for place in places for path in _below(place)]

    def _held(self) -> set[str]:
        """Runs that are open by the index, or by their directory: an index that was lost frees nothing."""
        with self._store.read() as connection:
            held: set[str] = {row.run_id for row in runs.open_runs(connection)}
        names = {path.name for folder in self._folders for path in _below(folder)}
        return held | {name for name in names if self._is_open(self._runs_dir / name)}

    @staticmethod
    def _is_open(folder: Path) -> bool:
        return folder.is_dir() and not (folder / "closed.json").exists()


def _below(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []

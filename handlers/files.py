"""The `.leadsman.toml` of each repository's default branch; the last good one stays while a wrong one is there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from bot.config import Config, ConfigErrors, RepoFile, repository_file
from bot.errors import Gone
from bot.forges import Forge
from bot.journal import Journal
from bot.model import Repo, Sha
from bot.paths import REPOSITORY_FILE
from bot.store import books
from bot.store.engine import Store
from handlers.views import WrongFile


@dataclass(frozen=True, slots=True)
class Standing:
    """The file that counts, and what is to be said of the one that is there."""

    file: RepoFile | None
    warnings: tuple[str, ...] = ()
    wrong: WrongFile | None = None


class RepositoryFiles:
    """Reads a repository's file once for each commit of its default branch. The store knows at which commit the last
    good one was, so that a restart does not lose it."""

    def __init__(self, config: Config, forges: Mapping[str, Forge], store: Store, journal: Journal) -> None:
        self._config = config
        self._forges = forges
        self._store = store
        self._journal = journal
        self._read: dict[Repo, tuple[Sha, Standing]] = {}

    def of(self, repo: Repo) -> Standing:
        """What counts now. Raises `Unavailable` where the forge does not answer."""
        forge = self._forges[repo.forge]
        branch = forge.repository(repo).default_branch
        try:
            sha = forge.branch_sha(repo, branch)
        except Gone:
            return Standing(None)  # a repository without a commit
        seen, standing = self._read.get(repo, (None, Standing(None)))
        if seen != sha:
            standing = self._take(repo, forge, sha, branch)
            self._read[repo] = sha, standing
        return standing

    def _take(self, repo: Repo, forge: Forge, sha: Sha, branch: str) -> Standing:
        data = forge.file(repo, REPOSITORY_FILE, sha)
        try:
            file = None if data is None else self._parsed(data, sha, branch)
        except ConfigErrors as problem:
            self._journal.say("repository_file_wrong", repo=str(repo), sha=sha, why=problem.text)
            good = self._last_good(repo, forge, branch)
            said = tuple(str(one) for one in problem.problems)
            name = hashlib.sha256(data or b"").hexdigest()[:32]
            return Standing(good, wrong=WrongFile(name, sha, branch, said, earlier_counts=good is not None))
        with self._store.write() as connection:
            books.file_is_good(connection, str(repo), sha if file is not None else None)
        return Standing(file, tuple(map(str, file.warnings)) if file is not None else ())

    def _parsed(self, data: bytes, sha: Sha, branch: str) -> RepoFile:
        return repository_file(data, f"{REPOSITORY_FILE} at {sha} of {branch}", self._config)

    def _last_good(self, repo: Repo, forge: Forge, branch: str) -> RepoFile | None:
        """What it said when it was right, read anew: what the server allows may have changed since."""
        with self._store.read() as connection:
            sha = books.good_file(connection, str(repo))
        if sha is None:
            return None
        try:
            data = forge.file(repo, REPOSITORY_FILE, Sha(sha))
            return None if data is None else self._parsed(data, Sha(sha), branch)
        except (ConfigErrors, Gone):
            return None

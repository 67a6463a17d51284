"""One bare mirror for each repository that the bot works in, and how git reaches its remote."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from bot.errors import Unavailable
from bot.forges import Forge
from bot.model import Repo
from gitops.credentials import Remote
from gitops.git import GitError
from gitops.locks import LockTimeout
from gitops.mirror import Mirror

_REFUSED = re.compile(r"returned error: 40[13]\b|Authentication failed|could not read (Username|Password)")
"""How git tells that it was not let in."""


class Repositories:
    """Finds the mirror of a repository under `<home>/mirrors/<forge>/`."""

    def __init__(self, root: Path, forges: Mapping[str, Forge]) -> None:
        self._root = root
        self._forges = forges

    def forge(self, repo: Repo) -> Forge:
        return self._forges[repo.forge]

    def known_mirror(self, repo: Repo) -> Mirror | None:
        """The mirror where it has been made already."""
        return self._of(repo) if self._path(repo).is_dir() else None

    def mirror(self, repo: Repo) -> Mirror:
        """The mirror, made where it is missing. Raises `Unavailable`, `Gone` or `Forbidden`."""
        mirror = self._of(repo)
        with git_trouble(f"The mirror of {repo} can't be made"):
            mirror.ensure()
        return mirror

    def put_aside(self) -> list[Path]:
        """The folders with what waits to be deleted; also of repositories that the configuration has no more."""
        return sorted(self._root.glob("*/*.git.trash"))

    def _of(self, repo: Repo) -> Mirror:
        access = self.forge(repo).git(repo)
        return Mirror(self._path(repo), Remote(access.url, access.username, access.token))

    def _path(self, repo: Repo) -> Path:
        """However its name is spelled, in a delivery or in the configuration: forges compare names without case."""
        # Percent-encoding keeps `/`, `..` and a leading `-` of a name from being read as anything but a name.
        path = self._root / repo.forge / f"{quote(repo.name, safe='')}.git"
        if path.is_dir() or not path.parent.is_dir():
            return path
        wanted = path.name.casefold()
        return next((other for other in sorted(path.parent.iterdir()) if other.name.casefold() == wanted), path)


@contextmanager
def git_trouble(what: str) -> Iterator[None]:
    """Turns git's failure, and a disk's, into `Unavailable`: the step is tried again."""
    try:
        yield
    except (GitError, LockTimeout) as problem:
        refused = "the forge refuses the bot's token for git; give it contents (read and write). "
        raise Unavailable(f"{what}: {refused if _REFUSED.search(str(problem)) else ''}{problem}") from problem
    except OSError as problem:
        where = f" ({os.fsdecode(problem.filename)})" if isinstance(problem.filename, str | bytes) else ""
        raise Unavailable(f"{what}: {problem.strerror or problem}{where}") from problem

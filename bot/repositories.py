"""One bare mirror for each repository that the bot works in, and how git reaches its remote."""

from __future__ import annotations

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


class Repositories:
    """Finds the mirror of a repository under `<home>/mirrors/<forge>/`."""

    def __init__(self, root: Path, forges: Mapping[str, Forge]) -> None:
        self._root = root
        self._forges = forges

    def forge(self, repo: Repo) -> Forge:
        return self._forges[repo.forge]

    def mirror(self, repo: Repo) -> Mirror:
        """The mirror, made where it is missing. Raises `Unavailable`, `Gone` or `Forbidden`."""
        access = self.forge(repo).git(repo)
        # Percent-encoding keeps `/`, `..` and a leading `-` of a name from being read as anything but a name.
        mirror = Mirror(
            self._root / repo.forge / f"{quote(repo.name, safe='')}.git",
            Remote(access.url, access.username, access.token),
        )
        with git_trouble(f"The mirror of {repo} can't be made"):
            mirror.ensure()
        return mirror


@contextmanager
def git_trouble(what: str) -> Iterator[None]:
    """Turns git's failure, and a disk's, into `Unavailable`: the step is tried again."""
    try:
        yield
    except (GitError, LockTimeout) as problem:
        raise Unavailable(f"{what}: {problem}") from problem
    except OSError as problem:
        raise Unavailable(f"{what}: {problem.strerror or problem}") from problem

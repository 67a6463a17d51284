"""A bare origin for each test, the mirror of it, and a person who works beside the bot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitops.credentials import Remote
from gitops.mirror import Mirror
from tests.gitops.folk import Actor, Folder, Start, Stop, start_actor


@pytest.fixture
def origin(tmp_path: Path) -> Folder:
    """The bare repository that everybody pushes to; its `main` has one commit."""
    path = tmp_path / "origin.git"
    path.mkdir()
    folder = Folder(path)
    folder.git("init", "-q", "--bare", "-b", "main")
    return folder


@pytest.fixture
def ada(tmp_path: Path, origin: Folder) -> Folder:
    """A person's own clone."""
    path = tmp_path / "ada"
    path.mkdir()
    folder = Folder(path)
    folder.git("init", "-q", "-b", "main")
    folder.git("remote", "add", "origin", str(origin.path))
    folder.commit({"README.md": "one\ntwo\nthree\n", "src/app.py": "print('hello')\n"}, "Begin")
    folder.push("main")
    return folder


@pytest.fixture
def mirror(tmp_path: Path, origin: Folder, ada: Folder) -> Mirror:
    """The bot's mirror, with all that the origin has."""
    mirror = Mirror(tmp_path / "home" / "mirrors" / "shop.git", Remote(str(origin.path)))
    mirror.ensure()
    mirror.refresh()
    return mirror


@pytest.fixture
def main(ada: Folder) -> str:
    """The commit that `main` began with."""
    return ada.git("rev-parse", "main")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the worktrees are."""
    return tmp_path / "home" / "worktrees"


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts actors; none is left at the end."""
    actors: list[Actor] = []

    def start(action: str, mirror: Mirror, *, stop: Stop | None = None, **spec: object) -> Actor:
        actors.append(start_actor(action, mirror, stop=stop, **spec))
        return actors[-1]

    yield start
    for actor in actors:
        actor.close()

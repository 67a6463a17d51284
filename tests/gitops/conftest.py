"""A bare origin for each test, the mirror of it, and a person who works beside the bot."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitops.credentials import Remote
from gitops.git import Identity
from gitops.mirror import Mirror

BOT = Identity("Leadsman", "leadsman@bot.example")


@dataclass(frozen=True)
class Folder:
    """A repository that somebody works in by hand, with whatever git thinks best."""

    path: Path

    def git(self, *args: str, check: bool = True, **environment: str) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=self.path,
            check=False,
            capture_output=True,
            env={
                **os.environ,
                "GIT_AUTHOR_NAME": "Ada",
                "GIT_AUTHOR_EMAIL": "ada@example.org",
                "GIT_COMMITTER_NAME": "Ada",
                "GIT_COMMITTER_EMAIL": "ada@example.org",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                **environment,
            },
        )
        assert not check or done.returncode == 0, done.stderr.decode()
        return os.fsdecode(done.stdout).strip()

    def write(self, name: str, text: str = "text\n") -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, files: dict[str, str], message: str = "Change", **environment: str) -> str:
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", message, **environment)
        return self.git("rev-parse", "HEAD")

    def push(self, refspec: str, *more: str) -> None:
        self.git("push", "-q", *more, "origin", refspec)


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

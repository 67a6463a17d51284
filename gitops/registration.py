"""One worktree of a mirror: where it is registered, and whether it still is what was made."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gitops import locks, trash
from gitops.git import Git
from gitops.mirror import Mirror
from gitops.names import is_branch

_READY = "leadsman-ready"
"""Written into a registration when its checkout is complete: the name of the branch, empty for a plain checkout."""


def ready_on(registration: Path) -> str | None:
    """The branch that the worktree of a registration was made on; "" for a checkout, None while it is not complete."""
    found = _start_of(registration / _READY)
    return None if found is None else found.decode(errors="replace")


def head_of(registration: Path) -> str:
    """The full name of the branch that the worktree of a registration stands on; empty where it is none."""
    text = os.fsdecode(_start_of(registration / "HEAD") or b"")
    return text.removeprefix("ref:").strip() if text.startswith("ref:") else ""


def _start_of(path: Path) -> bytes | None:
    """Not more than the line that belongs there is read, no link followed and no pipe waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.read(descriptor, 8192)
    except OSError:  # a folder
        return None
    finally:
        os.close(descriptor)


class Damaged(Exception):
    """The worktree's `.git` does not name its registration any more: git is not run inside it."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """The worktree of `mirror` at `path`: found by its name, never by what lies in it."""

    mirror: Mirror
    path: Path

    @property
    def registration(self) -> Path:
        """Its folder in the mirror, named after the whole path: last parts may be the same."""
        return self.mirror.path / "worktrees" / f"{self.path.name}.{hashlib.sha256(bytes(self.path)).hexdigest()[:12]}"

    @property
    def half_made(self) -> Path:
        """The same as git itself names it: only what was killed while it was made has that name."""
        return self.registration.with_name(self.path.name)

    @contextmanager
    def held(self) -> Iterator[Git]:
        """Git in this worktree, for us alone: also a git that outlived its bot has ended. `Damaged` if the marker is
        not what was put there."""
        trash.let_us_in(self.path)
        if self.damaged or not self.registration.is_dir():
            raise Damaged(f"The `.git` of {self.path} is gone or was changed.")
        common = self.mirror.git.git_dir
        with locks.held(self.registration, os.O_RDONLY | os.O_DIRECTORY, locks.SECONDS) as descriptor:
            trash.let_us_in(self.registration)
            self._unlock()
            yield Git(self.registration, common_dir=common, work_tree=self.path, keep_open=(descriptor,))

    def settle(self) -> None:
        """Wait until no git works in it any more."""
        with suppress(FileNotFoundError), locks.held(self.registration, os.O_RDONLY | os.O_DIRECTORY, locks.SECONDS):
            self._unlock()

    def _unlock(self) -> None:
        """Remove the lock files of a git that was killed in it: nobody else works here now."""
        locked = [self.registration / name for name in ("HEAD", "index")]
        if self.branch and is_branch(self.branch):
            locked.append(self.mirror.path / "refs/heads" / self.branch)
        for path in locked:
            if os.path.lexists(lock := Path(f"{path}.lock")):
                trash.discard(lock, self.mirror.trash)

    @property
    def damaged(self) -> bool:
        return _start_of(self.path / ".git") != self.marker

    @property
    def marker(self) -> bytes:
        return b"gitdir: " + bytes(self.registration) + b"\n"

    @property
    def branch(self) -> str | None:
        """The branch it was made on; "" for a checkout, None while it is not complete."""
        return ready_on(self.registration)

    def complete(self, branch: str) -> None:
        """Remember that its checkout is complete: a run may work in it from now on."""
        temporary = self.registration / f"{_READY}.new"
        temporary.write_text(branch)
        temporary.replace(self.registration / _READY)

    def reopen(self) -> None:
        """Take that back."""
        (self.registration / _READY).unlink()

    def link(self) -> None:
        """Let folder and registration name each other."""
        (self.registration / "gitdir").write_bytes(bytes(self.path / ".git") + b"\n")
        (self.path / ".git").write_bytes(self.marker)

    @property
    def head(self) -> str | None:
        """The commit it stands at; None where that can't be read, or there is none yet."""
        if not (self.registration / "HEAD").exists():
            return None
        git = Git(self.registration, common_dir=self.mirror.git.git_dir)
        return git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False).text or None

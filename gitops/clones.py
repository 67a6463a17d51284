"""A person's own clone: found from the folder they are in, and read, never written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gitops.git import Git


def git_dir_of(start: Path) -> Path | None:
    """The git directory of the clone that `start` is in, or that `start` itself is (a bare one); None for neither."""
    for folder in (start.absolute(), *start.absolute().parents):
        inside = folder / ".git"
        if inside.is_dir():
            return inside
        if inside.is_file():  # a linked worktree, or a submodule: `gitdir: PATH`
            named = inside.read_text(errors="replace").partition("gitdir:")[2].strip()
            return (folder / named).resolve() if named else None
        if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
            return folder
    return None


def origin_of(git_dir: Path) -> str | None:
    """Where the clone was made from, as its configuration names it; a relative path is made whole."""
    url = Git(git_dir).run("config", "--get", "remote.origin.url", check=False).text
    if not url:
        return None
    if url.startswith("."):
        top = git_dir.parent if git_dir.name == ".git" else git_dir
        return os.path.normpath(top / url)
    return url


def commit_of(git_dir: Path, name: str) -> str | None:
    """The commit that a person means by `name` in their clone: a branch, a tag, `HEAD`, the start of an id."""
    if name.startswith("-"):
        return None
    return Git(git_dir).run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False).text or None


@contextmanager
def apart(git_dir: Path) -> Iterator[Git]:
    """Git in an empty repository that has the clone's commits: what the clone configures, or has checked out, changes
    nothing in what is seen there (`.gitattributes` and `info/attributes` say what git takes for binary)."""
    clone = Git(git_dir)
    kind = clone.run("rev-parse", "--show-object-format").text
    with tempfile.TemporaryDirectory(prefix="leadsman-") as folder:
        git = Git(Path(folder) / "apart.git")
        git.run("init", "--quiet", "--bare", "--template=", f"--object-format={kind}", str(git.git_dir))
        alternates = git.git_dir / "objects/info/alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_bytes(os.fsencode(f"{_inside(clone, 'objects')}\n"))
        shallow = _inside(clone, "shallow")
        if shallow.exists():
            shutil.copyfile(shallow, git.git_dir / "shallow")
        yield git


def is_cut(git: Git) -> bool:
    """Is a part of the history missing on purpose (`git clone --depth`)?"""
    return (git.git_dir / "shallow").exists()


def _inside(git: Git, name: str) -> Path:
    """Where the repository has it: a linked worktree has most of it elsewhere."""
    return git.git_dir.parent / git.run("rev-parse", "--git-path", name).text

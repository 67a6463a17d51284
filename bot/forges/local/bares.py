"""The bare repositories of a local forge: their names, and what is read from them."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.errors import Gone, Unavailable, UserError
from bot.model import Sha
from gitops.credentials import Remote
from gitops.git import TREE_SECONDS, Git, GitError, Identity
from gitops.objects import commit_tree

MAX_FILE = 1 << 20
"""Bytes of the largest file that is read from a commit; a bigger one is `Unavailable`."""

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NAME = re.compile(rf"{_PART}/{_PART}")


def is_name(name: str) -> bool:
    """Whether `name` is an `owner/name` that can be a folder below the root and nothing else."""
    return bool(_NAME.fullmatch(name)) and not name.endswith((".git", ".lock", "."))


class Bares:
    """The folder `root` with `owner/name.git` in it.

    Raises `Gone` for a repository, branch or commit that isn't there, `Unavailable` when git fails otherwise.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def place(self, name: str) -> Path:
        """Where the repository is, or would be made. Raises `Gone` for a name that leads anywhere else."""
        path = self.root / f"{name}.git"
        # A symbolic link below the root could show any folder of the host as a repository.
        if not is_name(name) or path.resolve() != self.root.resolve() / f"{name}.git":
            raise Gone(f"{name!r} can't be a repository here.")
        return path

    def path(self, name: str) -> Path:
        path = self.place(name)
        if not (path / "HEAD").is_file() or not (path / "objects").is_dir():
            raise Gone(f"There is no repository {name} in {self.root}.")
        return path

    def names(self) -> list[str]:
        """All repositories, by name."""
        found = (f"{path.parent.name}/{path.name.removesuffix('.git')}" for path in self.root.glob("*/*.git"))
        return sorted(name for name in found if self._is_there(name))

    def make(self, name: str, *, source: Path | None, author: str) -> Path:
        """Makes the repository, whole or not at all: the branches and tags of `source`, or a first commit on `main`."""
        place = self.place(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".{secrets.token_hex(8)}")
        try:
            with _trouble(f"{name} can't be made"):
                git = Git(draft)
                git.run("init", "--quiet", "--bare", "--initial-branch=main")
                if source is None:
                    _first_commit(git, name, author)
                else:
                    _fill(git, source.absolute())
            draft.rename(place)
        except OSError as problem:
            if place.exists():
                raise UserError(f"{name} is there already: {place}.") from problem
            raise UserError(f"{place} can't be made: {problem.strerror}.") from problem
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return place

    def default_branch(self, name: str) -> str:
        return self._text(name, "symbolic-ref", "HEAD").removeprefix("refs/heads/")

    def branches(self, name: str) -> dict[str, Sha]:
        """All branches with their tips, by name."""
        lines = self._text(name, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/").splitlines()
        pairs = (line.split(" ", 1) for line in lines)
        return {ref.removeprefix("refs/heads/"): Sha(sha) for sha, ref in pairs}

    def branch(self, name: str, branch: str) -> Sha | None:
        return self._ref(name, f"refs/heads/{branch}")

    def pull_head(self, name: str, number: int) -> Sha | None:
        return self._ref(name, _pull_ref(number))

    def keep_pull_head(self, name: str, number: int, sha: Sha) -> bool:
        """Points `refs/pull/<number>/head` at `sha`; whether that was news."""
        if self.pull_head(name, number) == sha:
            return False
        done = self._run(name, "update-ref", _pull_ref(number), sha, check=False)
        # Two that read one pull request at once both write: git lets one of them, and that is as good.
        if done is None and self.pull_head(name, number) != sha:
            raise Unavailable(f"{_pull_ref(number)} of {name} can't be written.")
        return True

    def merge_base(self, name: str, one: Sha, other: Sha) -> Sha | None:
        found = self._run(name, "merge-base", one, other, check=False)
        return Sha(found.decode().strip()) if found else None

    def changed_files(self, name: str, base: Sha, head: Sha) -> tuple[str, ...]:
        """What `head` changes since it left `base`. A renamed file counts under both names."""
        return self.changed_between(name, self.merge_base(name, base, head) or base, head) or ()

    def changed_between(self, name: str, before: Sha, after: Sha) -> tuple[str, ...] | None:
        """What is not the same in two commits; None where one of them is not here (any more)."""
        found = self._run(name, "diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after, check=False)
        if found is None:
            return None
        return tuple(part.decode(errors="backslashreplace") for part in found.split(b"\0") if part)

    def file(self, name: str, path: str, at: Sha) -> bytes | None:
        """The content of the regular file `path` in the commit `at`; None for a link, a folder and nothing."""
        if "\0" in path or {"", ".", ".."} & set(path.split("/")):
            return None
        listed = (self._run(name, "ls-tree", "-z", "-l", "--full-tree", at, "--", path) or b"").split(b"\0")[0]
        facts, _, found = listed.partition(b"\t")
        if found != path.encode(errors="surrogateescape") or not facts.startswith(b"100"):
            return None
        _mode, _kind, oid, size = facts.split()
        if int(size) > MAX_FILE:
            raise Unavailable(f"{path} has {int(size)} bytes; at most {MAX_FILE} are read.")
        return self._run(name, "cat-file", "blob", oid.decode())

    def shown(self, name: str, sha: Sha, limit: int) -> str | None:
        """The commit as `git show` prints it, at most `limit` characters; None for what is no commit here."""
        if not _SHA.fullmatch(sha):
            return None
        kind = self._run(name, "cat-file", "-t", sha, check=False)
        if kind is None or kind.strip() != b"commit":
            return None
        text = self._run(name, "show", "--stat", "--patch", "--no-ext-diff", "--no-textconv", "--no-color", sha) or b""
        return text.decode(errors="replace")[:limit]

    def _is_there(self, name: str) -> bool:
        try:
            self.path(name)
        except Gone:
            return False
        return True

    def _ref(self, name: str, ref: str) -> Sha | None:
        if "\0" in ref:
            return None
        # `show-ref --verify` takes the full name and nothing else: no `main~3`, no `main^{tree}`.
        found = self._run(name, "show-ref", "--verify", "--hash", "--", ref, check=False)
        return Sha(found.decode().strip()) if found else None

    def _text(self, name: str, *args: str) -> str:
        return (self._run(name, *args) or b"").decode(errors="backslashreplace").strip()

    def _run(self, name: str, *args: str, check: bool = True) -> bytes | None:
        """git's output; without `check`, None when git says no."""
        git = Git(self.path(name))
        with _trouble(f"{name} can't be read"):
            done = git.run(*args, check=check)
        return done.stdout if done.code == 0 else None


@contextmanager
def _trouble(what: str) -> Iterator[None]:
    try:
        yield
    except GitError as problem:
        raise Unavailable(f"{what}: {problem}") from problem


def _first_commit(git: Git, name: str, author: str) -> None:
    readme = git.run("hash-object", "-w", "--stdin", stdin=f"# {name.partition('/')[2]}\n".encode()).text
    tree = git.run("mktree", stdin=f"100644 blob {readme}\tREADME.md\n".encode()).text
    identity = Identity(author, f"{author}@localhost")
    commit = commit_tree(git, tree, parents=(), message="A place to start from\n", identity=identity)
    git.run("update-ref", "refs/heads/main", commit)


def _fill(git: Git, source: Path) -> None:
    """Takes over the branches and tags of another repository, and which of the branches is its default."""
    try:
        remote = Remote(str(source))
        told = git.run("ls-remote", "--symref", "--", remote.url, "HEAD", remote=remote).text
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        git.run("fetch", "--quiet", "--no-tags", "--", remote.url, *refs, remote=remote, timeout=TREE_SECONDS)
    except (GitError, ValueError) as problem:
        raise UserError(f"{source} can't be read as a git repository: {problem}") from problem
    default = re.match(r"ref: (refs/heads/\S+)\tHEAD", told)
    if default is None:
        raise UserError(f"{source} has no branch checked out. Check out the one that is to be the default.")
    git.run("symbolic-ref", "HEAD", default[1])


def _pull_ref(number: int) -> str:
    return f"refs/pull/{number}/head"

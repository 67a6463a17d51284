"""A repository's bare mirror: what is fetched once for all the runs that work on it."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from gitops import locks, objects, trash
from gitops.credentials import Remote
from gitops.git import NETWORK_SECONDS, TREE_SECONDS, Git, GitError
from gitops.names import is_sha

HEADS = "+refs/heads/*:refs/remotes/origin/*"

_PACKED_WHEN = (
    ("gc.auto", "2000"),  # loose objects, as git guesses their number
    ("gc.autoPackLimit", "50"),
    ("gc.autoDetach", "false"),
    ("gc.pruneExpire", "2.weeks.ago"),
)

ABANDONED_SECONDS = 60.0
"""After so long a ref's lock file is nobody's any more."""

_INTRUDERS = (
    *("config.worktree", "hooks", "info", "shallow", "commondir", "gitdir"),
    *("objects/info/alternates", "objects/info/http-alternates"),
)
"""What a mirror never has by itself, and what would change what git does in it."""


_MADE = ("refs", "objects/pack", "objects/info")
"""The folders of a repository; git makes the last one last."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """The bare repository at `path` (absolute) that mirrors the branches of `remote`.

    It is the common directory of its runs' worktrees, so a run can write its config, its hooks and its refs. Therefore
    config and hooks are put right before each use, the remote is named by its URL in each call, and a local ref is a
    hint: what decides is asked of the remote (`remote_refs`) and passed on as a SHA. This keeps accidents and simple
    traps away; a run that is an enemy needs a sandbox, since it has the bot's own user.
    """

    path: Path
    remote: Remote

    @property
    def trash(self) -> Path:
        """Where what has to go is put at once; `gitops.trash.empty` deletes it, whenever there is time."""
        return Path(f"{self.path}.trash")

    @property
    def git(self) -> Git:
        """Git in the mirror, for what needs no lock: reading objects, adding objects, pushing."""
        self._straighten()
        return Git(self.path)

    @contextmanager
    def locked(self, timeout: float = locks.SECONDS) -> Iterator[Git]:
        """The one lock for what changes the mirror's refs and worktrees (fetch, add, remove, prune): these collide when
        they run side by side. `LockTimeout` after `timeout` seconds.

        The git that is handed out holds the lock along with us, so that one that survives us still keeps others out.
        """
        with locks.held(Path(f"{self.path}.lock"), os.O_RDWR | os.O_CREAT, timeout) as descriptor:
            self._straighten()
            try:
                yield Git(self.path, keep_open=(descriptor,))
            except GitError:
                self._unlock()
                raise

    def ensure(self) -> None:
        """Make the mirror if it isn't there; one that was left half-made is completed."""
        if all((self.path / name).is_dir() for name in _MADE):
            return  # and waits for nobody who fetches just now
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.locked() as git:
            git.run("init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(self.path))
            self._straighten()

    def refresh(self, refspecs: Sequence[str] = ()) -> None:
        """Fetch all branches to `refs/remotes/origin/*`, and what `refspecs` name beside them; drop what is gone."""
        with self.locked() as git:
            git.run(
                *("fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--", self.remote.url, HEADS),
                *refspecs,
                remote=self.remote,
                timeout=NETWORK_SECONDS,
            )

    def fetch_commit(self, sha: str, *, ref: str | None = None) -> bool:
        """Fetch the commit `sha`, with the remote's `ref` or by itself, where that is allowed; is it here now?"""
        if not is_sha(sha):
            raise ValueError(f"{sha!r} is not a full commit id.")
        if self.has(sha):
            return True
        with self.locked() as git:
            git.run(
                *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", self.remote.url, ref or sha),
                remote=self.remote,
                timeout=NETWORK_SECONDS,
                check=False,
            )
        return self.has(sha)

    def has(self, sha: str) -> bool:
        """Is the commit `sha` here?"""
        return self.git.run("cat-file", "-e", f"{sha}^{{commit}}", check=False).code == 0

    def fetched(self, branch: str) -> str | None:
        """Where the remote's `branch` (without `refs/heads/`) stood when it was fetched last: a hint, see above."""
        ref = f"refs/remotes/origin/{branch}^{{commit}}"
        return self.git.run("rev-parse", "--verify", "--quiet", ref, check=False).text or None

    def read_file(self, sha: str, path: str, *, limit: int) -> bytes | objects.TooLarge | None:
        """The file at `path` in the commit `sha`; None where there is no plain file (a link is not followed)."""
        return objects.read_file(self.git, sha, path, limit=limit)

    def remote_refs(self, *patterns: str) -> dict[str, str]:
        """The remote's refs now, full name -> object id; `patterns` match a name's end, as in git-ls-remote(1)."""
        answer = self.git.run(
            *("ls-remote", "--quiet", "--refs", "--", self.remote.url, *patterns),
            remote=self.remote,
            timeout=NETWORK_SECONDS,
        )
        pairs = (line.split("\t", 1) for line in answer.text.splitlines())
        return {ref: oid for oid, ref in pairs}

    def remote_ref(self, ref: str) -> str | None:
        """What the remote's `ref` (its full name) holds now."""
        return self.remote_refs(ref).get(ref)

    def tracked(self, branch: str) -> str | None:
        """What the remote's branch held when it was last refreshed."""
        ref = f"refs/remotes/origin/{branch}"
        return self.git.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", check=False).text or None

    def merge_base(self, one: str, other: str) -> str | None:
        """The best common ancestor of two commits, if they have one."""
        return objects.merge_base(self.git, one, other)

    def is_ancestor(self, ancestor: str, of: str) -> bool:
        """Is `ancestor` reachable from `of` (or the same)? False, too, where one of them is not here."""
        return self.git.run("merge-base", "--is-ancestor", ancestor, of, check=False).code == 0

    def tidy(self) -> None:
        """Pack what runs and fetches left loose, once it is much: that takes as long as the repository is large, and no
        worktree comes or goes meanwhile. What nothing names is kept for two weeks."""
        with self.locked() as git:
            git.run("gc", "--auto", "--quiet", settings=_PACKED_WHEN, timeout=TREE_SECONDS)

    def _unlock(self) -> None:
        """Remove what keeps refs locked for good, so that the next try passes: git holds such a file for moments, and a
        git that was killed, a run's or ours, leaves it."""
        refs = (Path(folder) / name for folder, _, names in os.walk(self.path / "refs") for name in names)
        for path in (self.path / "packed-refs.lock", *(path for path in refs if path.suffix == ".lock")):
            with suppress(OSError):
                if abs(time.time() - path.lstat().st_mtime) > ABANDONED_SECONDS:  # the clock may have been set back
                    path.unlink()

    def _straighten(self) -> None:
        if not self.path.is_dir():
            return
        for name in _INTRUDERS:
            if os.path.lexists(intruder := self.path / name):
                trash.discard(intruder, self.trash)
        self._put("HEAD", "ref: refs/heads/main\n")
        self._put("config", self._config())

    def _put(self, name: str, text: str) -> None:
        """Make the file `name` a plain one that holds `text`, in one step, unless it is that already."""
        path = self.path / name
        try:
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) and path.read_bytes() == text.encode():
                return
            if stat.S_ISDIR(mode):
                trash.discard(path, self.trash)
        except FileNotFoundError:
            pass
        temporary = path.with_name(f"{name}.{uuid4().hex}")
        temporary.write_bytes(text.encode())
        temporary.replace(path)

    def _config(self) -> str:
        url = self.remote.url.replace("\\", "\\\\").replace('"', '\\"')
        return (
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
            "[gc]\n\tauto = 0\n"
            f'[remote "origin"]\n\turl = "{url}"\n\tfetch = {HEADS}\n'
        )

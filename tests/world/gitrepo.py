"""Bare repositories as a forge keeps them: commits are written into them directly, without a clone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ZERO = "0" * 40


class Link(str):
    """A file's content that makes it a symbolic link to that target."""

    __slots__ = ()


Content = str | bytes | None
"""What stands in a file: text, bytes, a `Link`; None removes it. Text that begins with `#!` is executable."""

Files = Mapping[str, Content]


@dataclass(frozen=True, slots=True)
class Change:
    """One file of a diff, as a pull request's file list shows it."""

    path: str
    before: str | None
    """The name it had, for a rename."""
    status: str
    additions: int
    deletions: int
    blob: str


@dataclass(frozen=True, slots=True)
class Entry:
    """`kind`: blob, symlink, tree or commit (a submodule); the content of a symlink is its target."""

    kind: str
    oid: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Commit:
    sha: str
    tree: str
    parents: tuple[str, ...]
    author: tuple[str, str, str]
    """Name, e-mail, time (ISO 8601)."""
    committer: tuple[str, str, str]
    message: str


class BareRepo:
    """One bare repository. Every call is one git process; nothing of the user's configuration is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._changes: dict[tuple[str, str], list[Change]] = {}

    def create(self, default_branch: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _git("init", "-q", "--bare", f"--initial-branch={default_branch}", str(self.path))
        self._configure()

    def fork_of(self, other: BareRepo) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _git("clone", "-q", "--bare", str(other.path), str(self.path))
        self._configure()

    def _configure(self) -> None:
        # What github.com does: pushes by HTTP, any reachable object by its id, partial clones, no pushes to refs/pull.
        for key, value in (
            ("http.receivepack", "true"),
            ("uploadpack.allowReachableSHA1InWant", "true"),
            ("uploadpack.allowFilter", "true"),
            ("receive.hideRefs", "refs/pull"),
        ):
            self.git("config", key, value)
        hook = self.path / "hooks" / "update"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(_PROTECTION)
        hook.chmod(0o755)

    def protect(self, ref: str) -> None:
        """Refuses every push to this ref from now on."""
        with (self.path / "protected-refs").open("a") as file:
            file.write(f"{ref}\n")

    def git(self, *args: str, stdin: bytes = b"", check: bool = True) -> str:
        return _git(*args, stdin=stdin, git_dir=self.path, check=check)

    def commit(self, ref: str, files: Files, *, parent: str | None, message: str, author: str, at: int) -> str:
        """Writes a commit, sets `ref` to it, and returns its SHA. `at`: seconds since 1970."""
        who = f"{author} <{author}@users.noreply.example> {at} +0000".encode()
        lines = [b"commit " + ref.encode(), b"mark :1", b"author " + who, b"committer " + who, _data(message.encode())]
        if parent:
            lines.append(b"from " + parent.encode())
        for path, content in files.items():
            lines += _change(path, content)
        stream = b"\n".join([*lines, b"", b"get-mark :1", b""])
        return self.git("fast-import", "--quiet", "--force", "--done", stdin=stream + b"done\n").strip()

    def refs(self) -> dict[str, str]:
        listing = self.git("for-each-ref", "--format=%(objectname) %(refname)")
        return {name: sha for sha, _, name in (line.partition(" ") for line in listing.splitlines())}

    def sha(self, name: str) -> str | None:
        """The commit that a full ref name or SHA stands for; None where there is none."""
        return (
            self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", check=False).strip()
            or None
        )

    def set_ref(self, ref: str, sha: str | None) -> None:
        self.git("update-ref", *(("-d", ref) if sha is None else (ref, sha)))

    def fetch(self, other: BareRepo, sha: str, ref: str) -> None:
        """Takes a commit of a fork over, under `ref`."""
        self.git("fetch", "-q", "--no-tags", str(other.path), f"+{sha}:{ref}")

    def forget(self, sha: str) -> None:
        """A commit that no ref names is collected, as a forge does some time after a force push."""
        self.git("reflog", "expire", "--expire=now", "--all")
        self.git("prune", "--expire=now")
        if self.git("cat-file", "-t", sha, check=False) == "commit":
            raise AssertionError(f"{sha} is still named by a ref")

    def is_ancestor(self, older: str, newer: str) -> bool:
        return self.git("merge-base", older, newer, check=False).strip() == older

    def entry(self, commit: str, path: str) -> Entry | None:
        """What stands at a path."""
        line = self.git("ls-tree", "-z", commit, "--", path)
        if not line:
            return None
        mode, kind, rest = line.split(" ", 2)
        oid = rest.partition("\t")[0]
        return Entry("symlink" if mode == "120000" else kind, oid, self.content(oid) if kind == "blob" else b"")

    def content(self, oid: str) -> bytes:
        return _run("cat-file", "blob", oid, git_dir=self.path).stdout

    def read(self, oid: str) -> Commit:
        form = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"
        parts = self.git("log", "-1", f"--format={form}", oid, "--").rstrip("\n").split("\0")
        sha, tree, parents, an, ae, at, cn, ce, ct, message = parts
        return Commit(sha, tree, tuple(parents.split()), (an, ae, at), (cn, ce, ct), message)

    def log(self, base: str, head: str) -> list[Commit]:
        return [self.read(sha) for sha in self.git("rev-list", "--reverse", f"{base}..{head}").split()]

    def merge_base(self, one: str, other: str) -> str:
        return self.git("merge-base", one, other).strip()

    def changes(self, base: str, head: str) -> list[Change]:
        """What a pull request changes: from the merge base to the head, renames found."""
        if (base, head) not in self._changes:
            self._changes[base, head] = self._compare(base, head)
        return self._changes[base, head]

    def _compare(self, base: str, head: str) -> list[Change]:
        span = ("-r", "-z", "-M", self.merge_base(base, head), head)
        counts = _numstat(self.git("diff-tree", "--numstat", *span))
        fields = self.git("diff-tree", "--raw", *span).split("\0")[:-1]
        changes = []
        while fields:
            *_, blob, letter = fields.pop(0).split(" ")
            before = fields.pop(0) if letter[0] in "RC" else None
            path = fields.pop(0)
            changes.append(Change(path, before, _STATUS[letter[0]], *counts[path], blob))
        return changes


_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}

_PROTECTION = """\
#!/bin/sh
# What a protected branch of GitHub answers to a push.
if grep -qxF -e "$1" "$GIT_DIR/protected-refs" 2>/dev/null; then
    echo "error: GH006: Protected branch update failed for $1." >&2
    exit 1
fi
"""


def _numstat(output: str) -> dict[str, tuple[int, int]]:
    counts = {}
    fields = output.split("\0")[:-1]
    while fields:
        added, deleted, path = fields.pop(0).split("\t")
        if not path:  # a rename: the old and the new name follow as fields of their own
            _, path = fields.pop(0), fields.pop(0)
        counts[path] = (0, 0) if added == "-" else (int(added), int(deleted))
    return counts


def _data(content: bytes) -> bytes:
    return b"data %d\n%s" % (len(content), content)


def _change(path: str, content: Content) -> list[bytes]:
    quoted = '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if content is None:
        return [b"D " + quoted.encode()]
    raw = content.encode() if isinstance(content, str) else content
    mode = "120000" if isinstance(content, Link) else "100755" if raw.startswith(b"#!") else "100644"
    return [f"M {mode} inline {quoted}".encode(), _data(raw)]


def clean_environment() -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C",
    }


def _run(
    *args: str, stdin: bytes = b"", git_dir: Path | None = None, check: bool = True
) -> subprocess.CompletedProcess[bytes]:
    env = clean_environment() | ({"GIT_DIR": str(git_dir)} if git_dir else {})
    done = subprocess.run(["git", *args], input=stdin, capture_output=True, timeout=60, check=False, env=env)
    if check and done.returncode:
        raise RuntimeError(f"git {args[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done


def _git(*args: str, stdin: bytes = b"", git_dir: Path | None = None, check: bool = True) -> str:
    return _run(*args, stdin=stdin, git_dir=git_dir, check=check).stdout.decode("utf-8", "surrogateescape")

"""What a run left behind, as commits, figures and patches that anyone can check again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from gitops import publish, snapshot
from gitops.git import TREE_SECONDS, Git, Identity
from gitops.mirror import Mirror
from gitops.objects import commit_tree, empty_tree, message_of, tree_of
from gitops.registration import Worktree

_OPERATIONS = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "info/sparse-checkout": "sparse checkout",  # what lies outside of it would be taken for removed
}

EXACT = ("-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
"""A diff of what is there, by git alone: no program that attributes or config name, no guess at renames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A run's work, all of it in commits."""

    tip: str
    commits: int
    """How many `tip` has that the base has not."""
    committed_leftovers: bool
    """The last of them is the bot's: it holds what the command had left uncommitted."""
    descends: bool
    """`tip` descends from the base."""
    skipped: tuple[str, ...]
    """Paths that no commit can carry and that were left out: repositories inside the worktree, pipes, sockets."""
    unfinished: str | None
    """What the command was in the middle of: "merge", "rebase", "cherry-pick", "revert", "sparse checkout"."""


@dataclass(frozen=True, slots=True)
class FileFigures:
    """A changed file and its lines; None for one that git takes for binary. A name that isn't UTF-8 is as
    `os.fsdecode` gives it: fit for the file system, not for every encoder."""

    path: str
    added: int | None
    deleted: int | None


@dataclass(frozen=True, slots=True)
class Figures:
    files: tuple[FileFigures, ...]

    @property
    def additions(self) -> int:
        return sum(file.added or 0 for file in self.files)

    @property
    def deletions(self) -> int:
        return sum(file.deleted or 0 for file in self.files)


@dataclass(frozen=True, slots=True)
class Commit:
    sha: str
    subject: str
    author: str
    """`Name <address>`"""
    trailers: tuple[tuple[str, str], ...]


def seal(mirror: Mirror, path: Path, *, base: str, identity: Identity, message: str) -> Sealed:
    """Commit what the command left uncommitted in the worktree at `path`, by `identity` and with `message`.

    Can be repeated after a kill at any point. Nothing that the worktree or its repository configures is started.
    `Damaged` where the worktree's marker is not ours.
    """
    tree = Worktree(mirror, path)
    with tree.held() as git:
        head = tree.head
        found = snapshot.take(git, path, head)
        tip = head or base
        if found.tree != _tree_at(git, head):
            parents = (head,) if head else ()
            tip = commit_tree(git, found.tree, parents=parents, message=message, identity=identity)
        signed = publish.signed(mirror, base, tip, identity)
        if signed != (head or base):
            _advance(tree, git, signed)
        tip = signed
        snapshot.keep_index(git)
        return Sealed(
            tip=tip,
            commits=int(git.run("rev-list", "--count", tip, "--not", base).text),
            committed_leftovers=tip != base and message_of(git, tip) == message.rstrip("\n"),
            descends=mirror.is_ancestor(base, tip),
            skipped=found.skipped,
            unfinished=next((name for file, name in _OPERATIONS.items() if (git.git_dir / file).exists()), None),
        )


def _tree_at(git: Git, head: str | None) -> str:
    return tree_of(git, head) if head else empty_tree(git)


def _advance(tree: Worktree, git: Git, tip: str) -> None:
    """Move HEAD to `tip`, and the worktree's own branch with it; a branch of others, to which a run can point its HEAD,
    stays where it is."""
    named = git.run("symbolic-ref", "--quiet", "HEAD", check=False).text
    own = tree.branch and named == f"refs/heads/{tree.branch}"
    git.run("update-ref", "--no-deref", named if own else "HEAD", tip)


def write_leftovers(tree: Worktree, patch: Path) -> int:
    """Write what is uncommitted in a worktree as a patch; its size in bytes, and no file where that is 0."""
    with tree.held() as git:
        head = tree.head
        return _write_patch(git, _tree_at(git, head), snapshot.take(git, tree.path, head).tree, patch)


def write_patch(mirror: Mirror, base: str, tip: str, patch: Path) -> int:
    """Write the difference of two commits as a patch that `git apply` takes; its size in bytes, and no file where that
    is 0."""
    return _write_patch(mirror.git, base, tip, patch)


def _write_patch(git: Git, base: str, tip: str, patch: Path) -> int:
    temporary = patch.absolute().with_name(f".{patch.name}.{uuid4().hex}")
    try:
        git.run(
            *("diff-tree", "--patch", "--binary", "--full-index", *EXACT, f"--output={temporary}", base, tip),
            timeout=TREE_SECONDS,
        )
        if size := temporary.stat().st_size:
            temporary.replace(patch)
    finally:
        temporary.unlink(missing_ok=True)
    return size


def figures(mirror: Mirror, base: str, tip: str) -> Figures:
    """Which files differ between two commits, and by how many lines."""
    lines = mirror.git.run("diff-tree", "-z", "--numstat", *EXACT, base, tip, timeout=TREE_SECONDS).items
    return Figures(tuple(map(counted, lines)))


def counted(line: str) -> FileFigures:
    """An entry of `--numstat -z`."""
    added, deleted, path = line.split("\t", 2)
    return FileFigures(path, _count(added), _count(deleted))


def _count(figure: str) -> int | None:
    return None if figure == "-" else int(figure)


def commits(mirror: Mirror, base: str, tip: str) -> list[Commit]:
    """The commits that `tip` has and `base` has not, oldest first."""
    from git import Repo

    git = mirror.git
    # Closed at the end, since each open one keeps two processes.
    with Repo(git.git_dir, expand_vars=False) as repo:
        repo.git.update_environment(**git.environment)
        found = repo.iter_commits(f"{base}..{tip}", reverse=True, topo_order=True)
        return [
            Commit(
                sha=commit.hexsha,
                subject=_text(commit.summary),
                author=f"{commit.author.name} <{commit.author.email}>",
                trailers=tuple(commit.trailers_list),
            )
            for commit in found
        ]


def _text(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode(errors="replace")

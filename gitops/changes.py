"""What two commits differ in, file by file, with the text of the difference where there is one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gitops.evidence import EXACT, counted
from gitops.git import TREE_SECONDS, Git, GitError

PATCH_BYTES = 1 << 20
"""The longest patch of one file that is read."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A changed file, or one of the two names of a renamed one."""

    path: str
    """As `os.fsdecode` gives it."""
    added: int | None
    """Lines; None for what git takes for binary."""
    deleted: int | None
    patch: tuple[str, ...] | None = None
    """The lines of its hunks with `+`, `-` or a blank before each; None where there are none (a binary file, a mode
    alone), where they are more than `PATCH_BYTES`, or where nobody asked for them."""

    @property
    def lines(self) -> int:
        return (self.added or 0) + (self.deleted or 0)


def changed(git: Git, base: str, tip: str, *, patches: bool) -> Iterator[Changed]:
    """The files that differ between two commits; a renamed one is one that went and one that came.

    With `patches` one file's text at a time is in memory, however much there is.
    """
    entries = git.run("diff-tree", "-z", "--raw", "--numstat", *EXACT, base, tip, timeout=TREE_SECONDS).items
    # Of n files there are first n times a `:modes ids status` and a path, then n times figures and path.
    files = len(entries) // 3
    kinds, figures = entries[: 2 * files : 2], [counted(line) for line in entries[2 * files :]]
    if not patches:
        yield from (Changed(file.path, file.added, file.deleted) for file in figures)
        return
    with tempfile.TemporaryDirectory(prefix="leadsman-") as folder:
        output = Path(folder) / "patch"
        words = ("diff-tree", "--patch", *EXACT, f"--output={output}", base, tip)
        git.run(*words, timeout=TREE_SECONDS)
        with output.open("rb") as stream:
            parts = _parts(stream)
            for kind, file in zip(kinds, figures, strict=True):
                # A file that became a link, or the like, is two to git: the one that went, and the one that came.
                found = [next(parts, None) for _ in range(2 if kind.endswith("T") else 1)]
                if None in found:
                    raise GitError(("git", *words), 0, f"it told nothing of {file.path}")
                lines = tuple(line for part in found if part is not None for line in part)
                yield Changed(file.path, file.added, file.deleted, lines or None)


def _parts(stream: BinaryIO) -> Iterator[tuple[str, ...]]:
    """The lines of the hunks of each file in a patch, in its order; none for one that has too many."""
    lines: list[str] | None = None
    size, in_hunk, begins = 0, False, True
    while piece := stream.readline(PATCH_BYTES):
        if begins and piece.startswith(b"diff --git "):
            if lines is not None:
                yield tuple(lines)
            lines, size, in_hunk = [], 0, False
        elif begins and piece.startswith(b"@@ "):
            in_hunk = True
        elif lines is not None and in_hunk and not (begins and piece.startswith(b"\\")):
            size += len(piece)
            if size > PATCH_BYTES:
                lines = []
            else:
                lines.append(piece.rstrip(b"\r\n").decode(errors="replace"))
        begins = piece.endswith(b"\n")
    if lines is not None:
        yield tuple(lines)

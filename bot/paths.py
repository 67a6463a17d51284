"""Paths of a repository: as text that can be written anywhere, and held against globs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase

REPOSITORY_FILE = ".leadsman.toml"
"""What a repository says for itself."""

ANY_FOLDERS = "**"


def shown_path(path: str) -> str:
    """A path as text that can be written anywhere: bytes that are no UTF-8 as `\\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def matches(path: str, glob: str) -> bool:
    """Whether a path matches a glob in which `**` spans folders and `*` does not.

    In one walk along the path, however many `**` there are: who names a file must not decide how long it takes.
    """
    wanted = glob.split("/")
    reached = _onwards({0}, wanted)
    for part in path.split("/"):
        reached = _onwards({after for at in reached for after in _step(part, at, wanted)}, wanted)
    return len(wanted) in reached


def _step(part: str, at: int, wanted: Sequence[str]) -> tuple[int, ...]:
    """Where in the glob one may stand behind `part` of the path, having stood at `at`."""
    if at == len(wanted):
        return ()
    if wanted[at] == ANY_FOLDERS:
        return (at,)
    return (at + 1,) if fnmatchcase(part, wanted[at]) else ()


def _onwards(reached: set[int], wanted: Sequence[str]) -> set[int]:
    """These places, and those behind each `**`, which may span nothing."""
    found: set[int] = set()
    for start in reached:
        at = start
        while at < len(wanted) and wanted[at] == ANY_FOLDERS:
            found.add(at)
            at += 1
        found.add(at)
    return found

"""Paths held against globs: as people expect it, and as fast whatever somebody named a file."""

from __future__ import annotations

import random

import pytest

from bot.paths import matches


@pytest.mark.parametrize(
    ("path", "glob", "matched"),
    [
        ("a/b/c.py", "**", True),
        ("a/b/c.py", "**/*.py", True),
        ("c.py", "**/*.py", True),
        ("a/b/c.py", "*.py", False),
        ("a/b/c.py", "a/*", False),
        ("a/b/c.py", "a/**", True),
        ("a", "a/**", True),
        ("a/b/c.py", "a/**/c.py", True),
        ("a/b/c.py", "**/b/**", True),
        ("a/b/c.py", "**/x/**", False),
        ("a/b/c.py", "a/b", False),
        ("a/b", "a/b/c.py", False),
        ("A/b", "a/*", False),
    ],
)
def test_two_asterisks_span_folders_and_one_does_not(path: str, glob: str, matched: bool) -> None:
    assert matched == matches(path, glob)


def test_a_deep_path_takes_a_glob_with_many_asterisks_no_time() -> None:
    assert not matches("/".join("a" * 2_000), "/".join(["**", "a"] * 20 + ["b"]))


def test_globs_are_walked_as_they_were_when_each_way_was_tried() -> None:
    dice = random.Random(7)

    def tried(path: list[str], glob: list[str]) -> bool:
        if not glob:
            return not path
        if glob[0] == "**":
            return any(tried(path[n:], glob[1:]) for n in range(len(path) + 1))
        return bool(path) and glob[0] in ("*", path[0]) and tried(path[1:], glob[1:])

    for _ in range(2_000):
        path = dice.choices("ab", k=dice.randrange(1, 6))
        glob = dice.choices(["a", "b", "*", "**"], k=dice.randrange(1, 6))
        assert tried(path, glob) == matches("/".join(path), "/".join(glob)), (path, glob)

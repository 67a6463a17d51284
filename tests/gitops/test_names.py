"""Names of branches, refs and commits: ours must say what git says, and never yes where git says no."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops.names import is_branch, is_ref, is_sha


def git_takes(name: str) -> bool:
    words = ["git", "check-ref-format", "--branch", name]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    "name", ["main", "a/b", "fix-1", "feature/ünï", "$(id)", "a'b\"c", "a;b", "@", "a@b", "ü" * 125]
)
def test_a_name_that_git_takes_is_taken(name: str) -> None:
    assert git_takes(name)
    assert is_branch(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "-x", "--upload-pack=id", "HEAD", "@{-1}", "a@{1}", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b"),
        *("a\\b", "a\nb", "a\x00b", "a\x7f", "\udc80", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a."),
        "ü" * 126,
    ],
)
def test_a_name_that_git_could_read_as_anything_else_is_refused(name: str) -> None:
    assert not is_branch(name)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab-./@{}~^: *[\\\n\x01üH", min_size=1, max_size=8))
def test_what_is_taken_is_what_git_takes(name: str) -> None:
    assert git_takes(name) == is_branch(name)


def test_a_full_ref_begins_with_refs() -> None:
    assert is_ref("refs/heads/main")
    assert is_ref("refs/leadsman/claims/0a")
    assert not is_ref("main")
    assert not is_ref("refs/heads/a..b")
    assert not is_ref("refs/")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("a" * 40, True),
        ("0" * 64, True),
        ("a" * 39, False),
        ("A" * 40, False),
        ("a" * 40 + "\n", False),
        ("HEAD", False),
    ],
)
def test_a_commit_is_named_in_full(text: str, verdict: bool) -> None:
    assert verdict is is_sha(text)

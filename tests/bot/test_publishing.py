"""Where commits may go: which branches are never published to."""

from __future__ import annotations

import pytest

from bot.publishing import branch_name, branch_problem, identity_of, protecting


@pytest.mark.parametrize(
    ("glob", "branch"),
    [
        ("main", "main"),
        ("release/*", "release/1.0"),
        ("release/*", "release/1/0"),
        ("refs/heads/main", "main"),
        ("v[0-9]*", "v2"),
        (None, "mainly"),
        (None, "Main"),
        (None, "release"),
        (None, "leadsman/publish"),
    ],
)
def test_a_glob_protects_what_it_matches_slashes_and_all(glob: str | None, branch: str) -> None:
    assert glob == protecting(("main", "release/*", "refs/heads/main", "v[0-9]*") if glob is None else (glob,), branch)


@pytest.mark.parametrize("branch", ["leadsman", "leadsman/run", "leadsman/run/x"])
def test_no_branch_is_in_the_way_of_the_runs_own(branch: str) -> None:
    assert "in the way of the runs' own branches" in (branch_problem(branch, ()) or "")


@pytest.mark.parametrize("branch", ["leadsman/publish", "leadsman/runs", "bot", "leadsman-run/x"])
def test_other_branches_are_free(branch: str) -> None:
    assert branch_problem(branch, ("main",)) is None


@pytest.mark.parametrize(
    ("identity", "author"),
    [
        (("Leadsman", "leadsman@localhost"), "Leadsman <leadsman@localhost>"),
        (("Ann B. Ö", "a@b"), "  Ann B. Ö   <a@b> "),
        (("x", "y"), "x<y>"),
    ],
)
def test_an_author_is_a_name_and_an_address(identity: tuple[str, str], author: str) -> None:
    assert identity == identity_of(author)


@pytest.mark.parametrize("author", ["", "x", "<y>", "x <>", "x <a b>", "x <y> z", "a\nb <y>", "x <y>\n<z>", "a <b <y>"])
def test_anything_else_is_no_author(author: str) -> None:
    with pytest.raises(ValueError, match="must be like"):
        identity_of(author)


@pytest.mark.parametrize(
    "name",
    [
        "", "-x", "--mirror", "ext::sh -c id", "a:b", "@{-1}", "HEAD", "a..b", "a b", "x.lock", "a/.b", "/a", "a/",
        "a//b", "refs/heads/x", "a^b", "a~1", "a?b", "a*", "[a", "a\\b", "a\nb", "a\0b", "a.", "x" * 300, "\udcff",
    ],
)  # fmt: skip
def test_what_git_would_read_as_anything_else_is_no_branch(name: str) -> None:
    with pytest.raises(ValueError, match="must be a branch"):
        branch_name(name)


@pytest.mark.parametrize("name", ["leadsman/publish", "ünï/ветка", "a'b\"`", "$(id)", "a;b&&c", "a|b", "@a", "%s"])
def test_what_only_looks_odd_is_a_branch(name: str) -> None:
    assert name == branch_name(name)

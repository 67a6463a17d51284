"""Claims by ref: one of many gets it, its maker alone gives it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitops import refs
from gitops.credentials import Remote
from gitops.git import GitError
from gitops.mirror import Mirror
from tests.gitops.folk import BOT, Folder, Start, Stop, kill_at, race

CLAIM = "refs/leadsman/claims/0a"


def other_mirror(tmp_path: Path, origin: Folder, name: str) -> Mirror:
    mirror = Mirror(tmp_path / name / "shop.git", Remote(str(origin.path)))
    mirror.ensure()
    return mirror


def refuse(origin: Folder, pattern: str) -> None:
    """The remote takes no refs that match `pattern`, as forges do."""
    hook = origin.path / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\ncase "$1" in {pattern}) echo "deny updating a hidden ref" >&2; exit 1;; esac\n')
    hook.chmod(0o755)


def test_the_first_gets_it_and_the_second_reads_who_it_was(mirror: Mirror, tmp_path: Path, origin: Folder) -> None:
    created = refs.create(mirror, CLAIM, '{"run": "ünï"}', BOT)
    assert isinstance(created, refs.Created)
    other = other_mirror(tmp_path, origin, "other")
    assert refs.create(other, CLAIM, '{"run": "2"}', BOT) == refs.Taken(created.oid, '{"run": "ünï"}')
    assert refs.read(other, CLAIM) == created.oid
    assert refs.said(other, CLAIM, created.oid) == '{"run": "ünï"}'
    assert origin.git("ls-tree", created.oid) == ""
    assert origin.git("rev-list", "--count", created.oid) == "1"


def test_taking_it_again_with_the_same_words_is_the_same_claim(mirror: Mirror, tmp_path: Path, origin: Folder) -> None:
    created = refs.create(mirror, CLAIM, '{"run": 1}\n', BOT)
    fresh = other_mirror(tmp_path, origin, "after-the-crash")
    assert refs.create(fresh, CLAIM, '{"run": 1}\n', BOT) == created


def test_only_its_holder_gives_it_back(mirror: Mirror) -> None:
    first = refs.create(mirror, CLAIM, "1", BOT)
    assert isinstance(first, refs.Created)
    assert refs.delete(mirror, CLAIM, first.oid)
    assert refs.read(mirror, CLAIM) is None
    assert refs.delete(mirror, CLAIM, first.oid), "giving back twice is giving back"
    second = refs.create(mirror, CLAIM, "2", BOT)
    assert isinstance(second, refs.Created)
    assert not refs.delete(mirror, CLAIM, first.oid)
    assert refs.read(mirror, CLAIM) == second.oid


def test_something_that_is_no_claim_holds_it_all_the_same(mirror: Mirror, ada: Folder) -> None:
    blob = ada.git("hash-object", "-w", "README.md")
    ada.push(f"{blob}:{CLAIM}")
    answer = refs.create(mirror, CLAIM, "1", BOT)
    assert answer == refs.Taken(blob, "")


def test_a_remote_without_room_for_the_namespace_says_so(mirror: Mirror, origin: Folder) -> None:
    refuse(origin, "refs/leadsman/*")
    answer = refs.create(mirror, CLAIM, "1", BOT)
    assert isinstance(answer, refs.NamespaceRefused)
    assert "deny updating a hidden ref" in answer.why
    assert isinstance(refs.create(mirror, "refs/heads/leadsman/claims/0a", "1", BOT), refs.Created)


def test_one_ref_that_is_refused_is_no_refused_namespace(mirror: Mirror, origin: Folder) -> None:
    """Or a claim would be made a second time, in another namespace."""
    (origin.path / CLAIM).parent.mkdir(parents=True)
    (origin.path / f"{CLAIM}.lock").touch()
    with pytest.raises(GitError):
        refs.create(mirror, CLAIM, "1", BOT)
    assert origin.git("for-each-ref", "refs/leadsman") == ""


def test_a_remote_that_does_not_answer_gives_no_claim(mirror: Mirror, origin: Folder) -> None:
    origin.path.rename(origin.path.with_name("away"))
    for call in (
        lambda: refs.create(mirror, CLAIM, "1", BOT),
        lambda: refs.read(mirror, CLAIM),
        lambda: refs.delete(mirror, CLAIM, "1" * 40),
    ):
        with pytest.raises(GitError):
            call()


def test_a_claim_that_cannot_be_given_back_is_not_said_to_be(mirror: Mirror, origin: Folder) -> None:
    created = refs.create(mirror, CLAIM, "1", BOT)
    assert isinstance(created, refs.Created)
    refuse(origin, "refs/leadsman/*")
    with pytest.raises(GitError):
        refs.delete(mirror, CLAIM, created.oid)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("word", ["commit-tree", "push", "ls-remote"])
def test_a_claimer_that_was_killed_gets_its_own_claim(
    mirror: Mirror, tmp_path: Path, start: Start, word: str, when: str
) -> None:
    stop = Stop(tmp_path / "stop", word, when)
    kill_at(start("claim", mirror, stop=stop, ref=CLAIM, message="mine"), stop)
    created = refs.create(mirror, CLAIM, "mine", BOT)
    assert isinstance(created, refs.Created)
    assert refs.read(mirror, CLAIM) == created.oid


def test_twenty_claimers_of_one_ref_give_one_claim(
    mirror: Mirror, tmp_path: Path, origin: Folder, start: Start
) -> None:
    """From two hosts, ten processes each."""
    mirrors = [mirror, other_mirror(tmp_path, origin, "other")]
    actors = [start("claim", mirrors[n % 2], ref=CLAIM, message=f"claimer {n}") for n in range(20)]
    outcomes = race(actors)
    assert sorted(map(str, outcomes)) == ["Created"] + ["Taken"] * 19
    held = refs.read(mirror, CLAIM)
    assert held is not None
    assert refs.said(mirror, CLAIM, held) == f"claimer {outcomes.index('Created')}"

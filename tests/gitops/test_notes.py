"""Notes: what a run has to say stands on its commit, and nobody's is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitops import notes
from gitops.credentials import Remote
from gitops.git import GitError
from gitops.mirror import Mirror
from gitops.push import Pushed
from tests.gitops.folk import BOT, Folder, Start, race


def test_a_note_is_kept_to_the_byte_and_read_by_others(
    mirror: Mirror, main: str, origin: Folder, tmp_path: Path
) -> None:
    content = b'{"payload": "\xff\\n"}  \n\n# not a comment\n'
    assert notes.read(mirror, main) is None
    assert isinstance(notes.write(mirror, main, content, BOT), Pushed)
    other = Mirror(tmp_path / "other" / "shop.git", Remote(str(origin.path)))
    other.ensure()
    assert notes.read(other, main) == content
    assert notes.read(other, "1" * 40) is None
    assert origin.git("notes", "--ref=leadsman", "show", main, check=False).startswith('{"payload"')


def test_saying_it_twice_says_it_once(mirror: Mirror, main: str, origin: Folder) -> None:
    first = notes.write(mirror, main, b"one\n", BOT)
    assert notes.write(mirror, main, b"one\n", BOT) == first
    assert origin.git("rev-list", "--count", notes.REF) == "1"


def test_a_second_note_stands_below_the_first(mirror: Mirror, main: str) -> None:
    for content in (b"one two\n", b"two\n", b"one two\n", b"two\n"):
        notes.write(mirror, main, content, BOT)
    assert notes.read(mirror, main) == b"one two\n\ntwo\n"


def test_no_ref_of_the_making_is_left(mirror: Mirror, main: str) -> None:
    notes.write(mirror, main, b"one\n", BOT)
    assert "notes" not in mirror.git.run("for-each-ref").text


def test_a_remote_that_does_not_answer_is_said_to(mirror: Mirror, main: str, origin: Folder) -> None:
    origin.path.rename(origin.path.with_name("away"))
    with pytest.raises(GitError):
        notes.write(mirror, main, b"one\n", BOT)


def test_eight_write_at_once_and_every_note_is_there(
    mirror: Mirror,
    main: str,
    origin: Folder,
    tmp_path: Path,
    start: Start,
) -> None:
    """From four hosts; all on one commit."""
    mirrors = [Mirror(tmp_path / f"host{n}" / "shop.git", Remote(str(origin.path))) for n in range(4)]
    for each in mirrors:
        each.ensure()
        each.refresh()
    actors = [start("note", mirrors[n % 4], sha=main, content=f"note {n}\n") for n in range(8)]
    assert ["Pushed"] * 8 == race(actors)
    found = notes.read(mirror, main)
    assert found is not None
    assert {f"note {n}" for n in range(8)} == set(found.decode().strip().split("\n\n"))

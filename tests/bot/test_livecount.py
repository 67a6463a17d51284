"""A run counts as live unless its end is proved: by its free lock or, where that can't be read, by its last word."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.livecount import has_ended, live_among
from bot.rundir import RunDir, write_json


def a_run(folder: Path, name: str = "run", *, state: str = "running", said: str = "", lock: bool = True) -> RunDir:
    run = RunDir(folder / name)
    run.path.mkdir()
    write_json(run.status, {"state": state})
    if said:
        run.status_log.write_text(said)
    if lock:
        run.alive_lock.touch()
    return run


@contextmanager
def locked(run: RunDir) -> Iterator[None]:
    with run.alive_lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_fourteen_finished_records_leave_the_cap_untouched(tmp_path: Path) -> None:
    names = [a_run(tmp_path, f"r{n}", state="done" if n % 2 else "failed").path.name for n in range(14)]
    assert live_among(tmp_path, names) == 0


@pytest.mark.parametrize("state", ["running", "done", "failed", "blocked", "nonsense"])
def test_a_held_lock_is_a_live_run_whatever_is_written(tmp_path: Path, state: str) -> None:
    run = a_run(tmp_path, state=state, said="done: all of it\n")
    with locked(run):
        assert not has_ended(run)
    assert has_ended(run)


def test_a_run_that_has_not_begun_counts_and_so_does_one_without_a_directory(tmp_path: Path) -> None:
    (tmp_path / "begun").mkdir()
    assert live_among(tmp_path, ["begun", "nowhere"]) == 2


def test_a_broken_status_beside_a_free_lock_has_ended(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    run.status.write_text("{half")
    assert has_ended(run)


@pytest.mark.parametrize(
    ("ended", "state", "said"),
    [
        (True, "running", "[2026-01-05T09:00:00Z] done: it is\n"),
        (True, "running", "failed: no\n"),
        (True, "running", "working: on it\nlanded: on main\n"),
        (True, "running", "landed: on main\nnote: bye\nround: 2/2\n"),
        (True, "done", ""),
        (True, "failed", "working: on it\n"),
        (False, "done", "landed-failed: conflicts\n"),
        (False, "running", "landed-failed: conflicts\n"),
        (False, "running", "done: this\nworking: on that\n"),
        (False, "running", ""),
        (False, "blocked", "blocked: on a key\n"),
        (False, "cancelled", ""),
        (False, "lost", ""),
    ],
)
@pytest.mark.parametrize("how", ["gone", "a folder", "a link"])
def test_where_the_lock_cant_be_read_only_a_last_word_of_an_end_proves_it(
    tmp_path: Path, ended: bool, state: str, said: str, how: str
) -> None:
    run = a_run(tmp_path, state=state, said=said, lock=False)
    if how == "a folder":
        run.alive_lock.mkdir()
    elif how == "a link":
        run.alive_lock.symlink_to(tmp_path / "elsewhere")
    assert ended is has_ended(run)


def test_a_status_that_cant_be_read_beside_a_missing_lock_counts(tmp_path: Path) -> None:
    run = a_run(tmp_path, lock=False)
    run.status.write_text("{half")
    assert not has_ended(run)

"""Run directories: their ids, how they appear, how they are found."""

from __future__ import annotations

import resource
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.errors import UsageError
from bot.rundir import RUN_ID, all_runs, find, new_run_id, read_json
from tests.bot.harbour import Harbour


def test_an_id_is_the_moment_and_six_hex_digits() -> None:
    run_id = new_run_id(datetime(2026, 1, 5, 9, 3, 7, tzinfo=UTC), b"\x00\xab\x01")
    assert run_id == "20260105-090307-00ab01"
    assert RUN_ID.fullmatch(run_id)


def test_a_new_run_says_that_it_starts_and_never_that_it_waits(harbour: Harbour) -> None:
    run = harbour.make("true")
    waiting = read_json(run.waiting)
    assert waiting
    assert ("starting", "created", None) == (waiting["status"], waiting["state"], waiting["pid"])
    assert ["true"] == waiting["command"]
    assert str(run.path) == waiting["run_dir"]
    assert [run.path] == list(harbour.store.iterdir())


def test_an_id_that_exists_is_refused(harbour: Harbour) -> None:
    run = harbour.make("true")
    before = run.spec.read_text()
    with pytest.raises(FileExistsError):
        harbour.make("false", run_id=run.path.name)
    assert before == run.spec.read_text()
    assert [run.path] == list(harbour.store.iterdir())


def test_a_run_that_can_not_be_recorded_leaves_nothing(harbour: Harbour) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # as a full disk: a file can be made, and not be filled
    try:
        with pytest.raises(OSError, match="too large"):
            harbour.make("true")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(harbour.store.iterdir()) == []


def test_what_a_run_holds_is_for_its_user_alone(harbour: Harbour) -> None:
    run = harbour.make("true")
    assert [0o700] * 2 == [folder.stat().st_mode & 0o777 for folder in (harbour.store, run.path)]
    assert {0o600} == {path.stat().st_mode & 0o777 for path in run.path.iterdir()}


def test_a_run_is_found_by_the_start_of_its_id(tmp_path: Path) -> None:
    for name in ("20260105-090307-00ab01", "20260105-090307-00ab02", "20260106-090307-00ab01", "other", ".20260107"):
        (tmp_path / name).mkdir()
    assert find(tmp_path, "20260106").path == tmp_path / "20260106-090307-00ab01"
    assert find(tmp_path, "20260105-090307-00ab02").path == tmp_path / "20260105-090307-00ab02"
    assert len(all_runs(tmp_path)) == 3


def test_a_start_that_two_ids_share_names_both(tmp_path: Path) -> None:
    for name in ("20260105-090307-00ab01", "20260105-090307-00ab02"):
        (tmp_path / name).mkdir()
    with pytest.raises(UsageError, match="20260105-090307-00ab01, 20260105-090307-00ab02") as caught:
        find(tmp_path, "2026")
    assert caught.value.code == 2


@pytest.mark.parametrize("prefix", ["2027", "", "../x", "*"])
def test_an_unknown_id_names_the_store(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "20260105-090307-00ab01").mkdir()
    with pytest.raises(UsageError, match=str(tmp_path)):
        find(tmp_path, prefix)


def test_a_store_that_does_not_exist_has_no_runs(tmp_path: Path) -> None:
    assert all_runs(tmp_path / "nowhere") == []

"""State files: whole or not at all, and never taken for what they are not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bot.ages import Ages
from bot.codec import Unreadable
from bot.statefiles import (
    LARGEST,
    Broken,
    LastState,
    clear_way,
    discard,
    is_locked,
    open_plain,
    read_json,
    read_plain,
    take_lock,
    time_text,
    write_json,
    write_text,
)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    value = {"argv": ["ä", "\udcff", "a\nb", "$HOME", '"']}
    write_json(tmp_path / "x.json", value)
    assert value == read_json(tmp_path / "x.json")
    assert (tmp_path / "x.json").stat().st_mode & 0o777 == 0o600


def test_an_absent_file_is_none() -> None:
    assert read_json("/nonexistent/x.json") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"a": 1', "\x00", "[" * 100_000])
def test_a_broken_file_is_not_taken_for_an_absent_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    value = read_json(tmp_path / "x.json")
    assert isinstance(value, Broken)
    assert not value
    assert value.why


def test_a_fifo_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.json")
    assert isinstance(read_json(tmp_path / "x.json"), Broken)


def test_a_reader_never_sees_half_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"n": 0, "pad": "x" * 50_000})
    done = threading.Event()

    def write() -> None:
        for n in range(200):
            write_json(path, {"n": n, "pad": "x" * 50_000})
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    looks = 0
    while not done.is_set():
        value = read_json(path)
        assert value
        assert len(value["pad"]) == 50_000
        looks += 1
    writer.join()
    assert looks > 20


def test_a_write_that_fails_leaves_the_old_text_and_nothing_else(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 250)  # the temporary name beside it is too long
    long.write_text("old")
    with pytest.raises(OSError, match="too long"):
        write_text(long, "new")
    assert {long: "old"} == {path: path.read_text() for path in tmp_path.iterdir()}


def test_many_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    code = "import sys; from bot.statefiles import write_json as write\n"
    code += "for n in range(50): write(sys.argv[1], {'w': sys.argv[2] * 999})"
    writers = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "x", str(n)]) for n in range(4)]
    assert [0] * 4 == [writer.wait() for writer in writers]
    value = read_json(tmp_path / "x")
    assert value
    assert value["w"] in {str(n) * 999 for n in range(4)}
    assert ["x"] == [path.name for path in tmp_path.iterdir()]


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    lock = take_lock(tmp_path / "lock")
    assert lock is not None
    assert is_locked(tmp_path / "lock")
    assert take_lock(tmp_path / "lock") is None
    os.close(lock)
    assert not is_locked(tmp_path / "lock")


def test_a_lock_that_was_never_taken_is_free(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "lock")
    assert not (tmp_path / "lock").exists()


def test_asking_for_a_lock_keeps_nobody_from_taking_it(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    code = "import sys; from bot.statefiles import is_locked\nprint(flush=True)\nwhile True: is_locked(sys.argv[1])"
    askers = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "lock"], stdout=subprocess.PIPE) for _ in "ab"]
    try:
        for asker in askers:
            assert asker.stdout
            asker.stdout.readline()
        for _ in range(50):
            lock = take_lock(tmp_path / "lock")
            assert lock is not None
            os.close(lock)
    finally:
        for asker in askers:
            asker.kill()
            asker.communicate()


def test_a_reserve_that_was_not_needed_leaves_nothing(tmp_path: Path) -> None:
    state = LastState(str(tmp_path / "status.json"))
    state.reserve()
    state.write({"n": 1})
    state.release()
    assert ["status.json"] == [path.name for path in tmp_path.iterdir()]


def test_a_moment_is_written_in_utc_with_milliseconds() -> None:
    assert time_text(1767603600.1239) == "2026-01-05T09:00:00.123Z"


def test_a_reader_of_what_a_run_may_have_put_there_is_neither_led_astray_nor_held_up(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "absent", "."):
        assert open_plain(tmp_path / name) is None
    descriptor = open_plain(tmp_path / "secret")
    assert descriptor is not None
    assert os.read(descriptor, 9) == b"key"
    os.close(descriptor)


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "dangling"])
def test_what_is_no_plain_file_keeps_no_state_from_being_written_and_no_lock_from_being_taken(
    tmp_path: Path, kind: str
) -> None:
    (tmp_path / "other").write_text("{}")
    for name in ("state.json", "lock", "last.json"):
        put(tmp_path / name, kind, tmp_path / "other")
    assert not is_locked(tmp_path / "lock")
    lock = take_lock(tmp_path / "lock")
    assert lock is not None
    assert is_locked(tmp_path / "lock")
    os.close(lock)
    write_json(tmp_path / "state.json", {"n": 1})
    LastState(str(tmp_path / "last.json")).write({"n": 2})
    assert ({"n": 1}, {"n": 2}) == (read_json(tmp_path / "state.json"), read_json(tmp_path / "last.json"))
    assert (tmp_path / "other").read_text() == "{}"


def put(path: Path, kind: str, other: Path) -> None:
    """Puts something else in the place of a file."""
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            (path / "full").mkdir(parents=True)
        case "link" | "dangling":
            path.symlink_to(other if kind == "link" else other.with_name("absent"))


def test_a_plain_file_is_not_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("kept")
    clear_way(tmp_path / "log")
    clear_way(tmp_path / "absent")
    assert (tmp_path / "log").read_text() == "kept"


def test_a_folder_in_the_place_of_a_file_is_put_aside_with_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "file").write_text("kept")
    discard(tmp_path / "x")
    [aside] = tmp_path.iterdir()
    assert aside.name.startswith(".x.")
    assert (aside / "file").read_text() == "kept"


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "large"])
def test_what_is_no_plain_file_is_told_and_holds_up_nobody(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "sealed.json", tmp_path / "other"
    other.write_text("{}")
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to(other)
        case "folder":
            path.mkdir()
        case _:
            path.touch()
            os.truncate(path, LARGEST + 1)
    with pytest.raises(OSError, match=r"is no plain file|is too large"):
        read_plain(path)
    with pytest.raises(Unreadable):
        Ages(tmp_path).read("sealed")


def test_a_plain_file_is_read_whole_and_an_absent_one_is_none(tmp_path: Path) -> None:
    assert read_plain(tmp_path / "absent") is None
    (tmp_path / "there").write_bytes(b"\0" * 100_000)
    assert b"\0" * 100_000 == read_plain(tmp_path / "there")

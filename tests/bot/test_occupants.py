"""Who still works inside a folder is found by what it has open, and ended; never those who look, or called them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.endings import KILL_GRACE
from bot.errors import Unavailable
from bot.occupants import clear, occupants
from tests.bot.harbour import PYTHON

Stranger = Callable[..., subprocess.Popen[bytes]]

READY = "import os, signal, sys, time; {}; print('ready', flush=True); time.sleep(1000)"

LONG_AGO = 0.0


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    """Starts a Python that does what it is told, says that it is ready, and stays."""
    started = []

    def begin(code: str, cwd: Path, **options: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [PYTHON, "-I", "-S", "-c", READY.format(code)], cwd=cwd, stdout=subprocess.PIPE, **options
        )  # type: ignore[call-overload]
        started.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process  # type: ignore[no-any-return]

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "worktrees" / "run"
    (path / "deep" / "down").mkdir(parents=True)
    (path / "file").write_text("x")
    return path


@pytest.mark.parametrize(
    "code",
    [
        "os.chdir('{0}')",
        "os.chdir('{0}/deep/down')",
        "kept = open('{0}/file')",
        "kept = os.open('{0}', os.O_RDONLY)",
        "os.chdir('{0}/deep'); os.rmdir('down'); os.rename('{0}/deep', '{0}/moved')",
    ],
)
def test_a_process_inside_is_found_by_what_it_has_open_and_ended(stranger: Stranger, folder: Path, code: str) -> None:
    process = stranger(code.format(folder), folder.parent)
    assert [process.pid] == [found.pid for found in occupants(folder, LONG_AGO)]
    clear(folder, LONG_AGO)
    assert process.wait(10) == -signal.SIGTERM
    assert occupants(folder, LONG_AGO) == []


def test_one_that_ignores_the_request_is_killed(stranger: Stranger, folder: Path) -> None:
    process = stranger("signal.signal(signal.SIGTERM, signal.SIG_IGN)", folder)
    clear(folder, LONG_AGO)
    assert process.wait(10) == -signal.SIGKILL


def test_a_program_that_lies_inside_counts_wherever_it_works(folder: Path) -> None:
    program = folder / "sleep"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    process = subprocess.Popen([program, "1000"], cwd="/")
    clear(folder, LONG_AGO)
    assert process.wait(10) == -signal.SIGTERM


def test_neighbours_with_a_like_name_and_processes_beside_are_left_alone(
    stranger: Stranger, folder: Path, tmp_path: Path
) -> None:
    beside = folder.with_name("run-2")
    beside.mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder)
    near, above = stranger("pass", beside), stranger("pass", folder.parent)
    through = stranger(f"os.chdir('{link}')", tmp_path)
    clear(folder, LONG_AGO)
    assert through.wait(10) == -signal.SIGTERM
    assert (None, None) == (near.poll(), above.poll())


def test_whoever_looks_and_those_it_was_called_by_are_spared(folder: Path) -> None:
    code = "import sys; from pathlib import Path; from bot.occupants import clear; clear(Path(sys.argv[1]), 0.0)"
    line = 'cd "$2" && "$1" -c "$0" "$2" && echo spared'
    done = subprocess.run(
        ["sh", "-c", line, code, PYTHON, folder],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "spared\n", done.stderr


def test_a_folder_that_is_gone_has_nobody_in_it(tmp_path: Path) -> None:
    clear(tmp_path / "nothing", LONG_AGO)


HIDDEN = """
import ctypes, os, sys, time
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
ctypes.CDLL(None).prctl({dumpable})
print("ready", flush=True)
time.sleep(1000)
"""

LOOK = """
import os, sys
from pathlib import Path
from bot.errors import Unavailable
from bot.occupants import clear
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    clear(Path(sys.argv[2]), float(sys.argv[1]))
except Unavailable as problem:
    print(problem)
else:
    print("cleared")
"""


@pytest.mark.parametrize(("younger", "told"), [(True, "Process {} can't be looked at"), (False, "cleared")])
def test_a_process_of_ours_that_lets_nobody_look_is_doubt_if_it_can_have_come_inside(
    folder: Path, younger: bool, told: str
) -> None:
    for path in (folder, *folder.parents):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(0o755)
    with subprocess.Popen(
        [PYTHON, "-I", "-c", HIDDEN.format(dumpable="4, 0, 0, 0, 0")], cwd="/", stdout=subprocess.PIPE
    ) as hidden:
        assert hidden.stdout
        assert hidden.stdout.readline() == b"ready\n"
        since = LONG_AGO if younger else time.time() + 60
        seen = subprocess.run(
            [PYTHON, "-c", LOOK, str(since), folder],
            cwd="/",
            env={**os.environ, "PYTHONPATH": ":".join([str(Path(__file__).parents[2]), *sys.path])},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        hidden.kill()
    assert told.format(hidden.pid) in seen.stdout, seen.stderr


def test_where_somebody_outlives_it_they_are_named_and_all_is_kept(stranger: Stranger, folder: Path) -> None:
    process = stranger("signal.signal(signal.SIGTERM, signal.SIG_IGN)", folder)
    short = 0.1 - KILL_GRACE  # our patience is over before it would be killed
    with pytest.raises(Unavailable, match=rf"still used, by {process.pid} \(\w+\): it is kept, and so is its slot"):
        clear(folder, LONG_AGO, bound=short)
    assert process.poll() is None
    assert (folder / "file").exists()

"""The home and its lock: one server a home, whoever is killed when."""

from __future__ import annotations

import json
import os
import pwd
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from bot import home
from bot.errors import UserError
from tests.bot.console import leadsman

ASKS = """
import os, sys
from bot import home
from bot.errors import UserError
try:
    print(home.resolve(None, os.environ))
except UserError as refused:
    print(refused.text)
    sys.exit(refused.code)
"""

HOLDS = """
import sys
from pathlib import Path
from bot import home
from bot.errors import UserError
try:
    with home.serving(Path(sys.argv[1]), "http://127.0.0.1:1") as lock:
        print(lock.holder.session, flush=True)
        sys.stdin.readline()
except UserError as refused:
    print(refused.text, flush=True)
    sys.exit(refused.code)
"""


class Server:
    """A process that holds the home until it is told to end."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDS, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().strip()

    def end(self) -> int:
        self.process.communicate("\n", timeout=60)
        return self.process.returncode

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=60)


def test_the_home_is_given_or_named_or_the_users_own() -> None:
    environ = {"LEADSMAN_HOME": "/named", "HOME": "/home/ann"}
    assert Path("/given") == home.resolve("/given", environ)
    assert Path("/named") == home.resolve(None, environ)
    assert Path("/home/ann/.local/state/leadsman") == home.resolve(None, {"HOME": "/home/ann", "LEADSMAN_HOME": " "})
    assert Path.cwd() / "here" == home.resolve("here", environ)


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "", "LEADSMAN_HOME": ""}])
def test_without_a_home_variable_the_system_says_where_the_users_own_folder_is(environ: dict[str, str]) -> None:
    assert Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local/state/leadsman" == home.resolve(None, environ)


@pytest.mark.needs("mount")  # as root
@pytest.mark.parametrize("variable", [{}, {"HOME": ""}])
def test_a_user_whom_the_system_does_not_know_is_asked_for_a_home(variable: dict[str, str]) -> None:
    nobody = 987_654
    done = subprocess.run(
        ["setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups", sys.executable, "-c", ASKS],
        cwd="/",
        env={"PYTHONPATH": str(Path(home.__file__).parents[1]), **variable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (2, "") == (done.returncode, done.stderr)
    assert "Name a home with LEADSMAN_HOME or --home." in done.stdout


def test_the_home_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    made = home.make(tmp_path / "a/b")
    assert 0o700 == stat.S_IMODE(made.stat().st_mode)
    made.chmod(0o755)
    assert 0o700 == stat.S_IMODE(home.make(made).stat().st_mode)


def test_a_link_or_a_file_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").touch()
    for name in ("link", "file", "file/below"):
        with pytest.raises(UserError, match=r"can't be used: .* It must be a folder of its own"):
            home.make(tmp_path / name)


def test_a_link_does_not_change_the_folder_behind_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real").chmod(0o755)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(UserError):
        home.make(tmp_path / "link")
    assert 0o755 == stat.S_IMODE((tmp_path / "real").stat().st_mode)


def test_a_folder_of_somebody_else_is_no_home(tmp_path: Path) -> None:
    theirs = Path("/usr")  # root's, and root gives one away
    if os.geteuid() == 0:
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        os.chown(theirs, 12345, 12345)
    with pytest.raises(UserError, match=r"belongs to somebody else \(uid \d+\)"):
        home.make(theirs)


def test_a_second_server_is_refused_with_4_and_told_who_holds_it(tmp_path: Path) -> None:
    first = Server(tmp_path)
    second = Server(tmp_path)
    assert 4 == second.end()
    assert f"is held by pid {first.process.pid} on " in second.said
    assert f"session {first.said}, http://127.0.0.1:1; one server a home." in second.said
    assert 0 == first.end()
    assert "free" == str(home.lock_state(tmp_path))


def test_a_killed_servers_home_is_free_at_once_and_its_note_is_stale(tmp_path: Path) -> None:
    killed = Server(tmp_path)
    killed.kill()
    assert str(home.lock_state(tmp_path)).startswith(f"stale (left by pid {killed.process.pid} on ")
    assert home.held_by(tmp_path) is None
    later = Server(tmp_path)
    holder = home.held_by(tmp_path)
    assert holder is not None
    assert (later.process.pid, later.said) == (holder.pid, holder.session)
    assert 0 == later.end()


def test_of_eight_servers_at_once_one_holds_the_home_in_every_round(tmp_path: Path) -> None:
    for _ in range(3):
        with ThreadPoolExecutor(8) as pool:
            servers = list(pool.map(Server, [tmp_path] * 8))
        holders = [server for server in servers if len(server.said) == 16]
        assert 1 == len(holders)
        holders[0].kill()
        for server in servers:
            server.process.communicate(timeout=60)


def test_whoever_looks_does_not_keep_a_server_from_starting(tmp_path: Path) -> None:
    looks = "import sys\nfrom pathlib import Path\nfrom bot import home\nprint(1, flush=True)\n"
    looks += "while True: home.lock_state(Path(sys.argv[1]))\n"
    lookers = [subprocess.Popen([sys.executable, "-c", looks, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for looker in lookers:
            assert looker.stdout is not None
            looker.stdout.readline()
        for _ in range(5):
            assert 0 == Server(tmp_path).end()
    finally:
        for looker in lookers:
            looker.kill()
            looker.communicate()


@pytest.mark.parametrize("note", ["", "{", "[]", '{"pid": 1}', '{"pid": "x"}'])
def test_a_broken_note_never_makes_a_home_look_held_or_free(note: str, tmp_path: Path) -> None:
    home.sidecar(tmp_path).write_text(note)
    assert "stale (left by a server whose note nobody can read)" == str(home.lock_state(tmp_path))
    server = Server(tmp_path)
    home.sidecar(tmp_path).write_text(note)
    state = home.lock_state(tmp_path)
    assert state.held
    assert "held by a server that has not said who it is" == str(state)
    server.end()


def test_a_home_whose_lock_file_is_taken_away_is_held_all_the_same(tmp_path: Path) -> None:
    with home.serving(tmp_path):
        home.lock_file(tmp_path).unlink()
        assert home.lock_state(tmp_path).held
        with pytest.raises(home.HomeHeld, match=f"is held by pid {os.getpid()} on "), home.serving(tmp_path):
            pass
        assert home.lock_state(tmp_path).held
    assert "free" == str(home.lock_state(tmp_path))


def test_a_home_that_may_not_be_looked_into_is_not_called_free(tmp_path: Path) -> None:
    folder = home.make(tmp_path / "home")
    folder.chmod(0)
    with ExitStack() as undone:
        if os.geteuid() == 0:
            os.seteuid(65534)
            undone.callback(os.seteuid, 0)
        with pytest.raises(UserError, match=r"can't be looked into: Permission denied\. Ask as the user"):
            home.lock_state(folder)
    folder.chmod(0o700)
    assert "free" == str(home.lock_state(folder))


def test_the_lock_is_not_handed_to_the_servers_children(tmp_path: Path) -> None:
    code = HOLDS.replace(
        "print(lock", "import subprocess; child = subprocess.Popen(['sleep', '60'])\n        print(lock"
    )
    code = code.replace("print(lock.holder.session", "print(child.pid")
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        assert home.lock_state(tmp_path).held
        process.kill()
        process.wait(60)
        assert not home.lock_state(tmp_path).held
    finally:
        os.kill(child, signal.SIGKILL)
        process.communicate(timeout=60)


def test_lock_status_says_free_held_or_stale_and_always_ends_with_0(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    assert (0, "free\n", "") == leadsman("lock", "status", cwd=tmp_path)
    assert not folder.exists()
    folder.mkdir()
    server = Server(folder)
    held = leadsman("lock", "status", cwd=tmp_path)
    assert 0 == held.code
    assert held.out.startswith(f"held by pid {server.process.pid} on ")
    found = json.loads(leadsman("--json", "lock", "status", cwd=tmp_path).out)
    assert ("held", server.process.pid, server.said) == (
        found["state"],
        found["holder"]["pid"],
        found["holder"]["session"],
    )
    server.kill()
    stale = leadsman("lock", "status", cwd=tmp_path)
    assert 0 == stale.code
    assert stale.out.startswith("stale (left by ")

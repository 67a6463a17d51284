"""The command as a whole: what it lists, what it refuses, how it ends."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli import failures
from bot.cli.words import Words, read
from bot.errors import Unavailable, UsageError
from tests.bot.console import SCRIPT, leadsman

HEAVY = ("click", "pydantic", "sqlalchemy", "flask", "github", "git", "rich", "argparse", "requests")


@pytest.mark.parametrize(
    "argv", [["--help"], ["lock", "status"], ["status", "--help"], ["handoff", "--help"], ["claims"]]
)
def test_what_must_be_quick_imports_nothing_heavy(argv: list[str]) -> None:
    code = (
        f"import sys; sys.argv[1:] = {argv!r}; from bot.cli import main; main(); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set() == set(HEAVY) & set(done.stderr.split())


def test_no_command_is_refused_with_2_and_the_list(tmp_path: Path) -> None:
    code, out, err = leadsman(cwd=tmp_path)
    assert (2, "") == (code, out)
    assert err.startswith("Usage: leadsman [options] COMMAND")


def test_an_unknown_command_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    assert (2, "", 'There is no command "statsu", did you mean "status"? `leadsman --help` lists them.\n') == leadsman(
        "statsu", cwd=tmp_path
    )
    assert (2, "", 'There is no command "xyzzy". `leadsman --help` lists them.\n') == leadsman("xyzzy", cwd=tmp_path)


@pytest.mark.parametrize("argv", [["--version"], ["budget", "--version"]])
def test_the_version_is_told_before_and_after_a_command(argv: list[str], tmp_path: Path) -> None:
    assert (0, "leadsman 0.1.0\n", "") == leadsman(*argv, cwd=tmp_path)


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        (Words(verb="status", rest=("ID",)), ["status", "ID"]),
        (Words(verb="status", rest=("--json", "ID")), ["--json", "status", "ID"]),
        (Words(verb="status", rest=("ID", "--json")), ["status", "ID", "--json"]),
        (Words(home="H", config="C", verbose=True, verb="x"), ["--home", "H", "-v", "x", "--config=C"]),
        (Words(home="H", verb="x", rest=("a", "b")), ["x", "a", "--home=H", "b"]),
        (Words(verb="x", rest=("-f", "--", "--home", "H", "-v")), ["x", "-f", "--", "--home", "H", "-v"]),
        (Words(help=True), ["--help"]),
        (Words(verb="x", rest=("--help",)), ["x", "--help"]),
        (Words(version=True), ["--version"]),
    ],
)
def test_options_of_every_command_stand_before_or_after_it(words: Words, argv: list[str]) -> None:
    assert words == read(argv)


@pytest.mark.parametrize("argv", [["--home"], ["x", "--config="], ["--hmoe", "x"], ["-q"]])
def test_words_that_are_off_are_refused(argv: list[str]) -> None:
    with pytest.raises(UsageError):
        read(argv)


def test_the_home_can_be_named_before_and_after_the_command(tmp_path: Path) -> None:
    (tmp_path / "h").mkdir()
    (tmp_path / "h/server.json").write_text(
        '{"pid": 1, "pid_started": 1.0, "session": "s", "host": "h", "address": "", "since": "then"}'
    )
    stale = (0, "stale (left by pid 1 on h since then, session s)\n", "")
    assert stale == leadsman("--home", "h", "lock", "status", cwd=tmp_path)
    assert stale == leadsman("lock", "status", "--home=h", cwd=tmp_path)
    assert stale == leadsman("lock", "status", cwd=tmp_path, environ={"LEADSMAN_HOME": "h"})


def test_the_configuration_can_be_named_before_and_after_the_command(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[budget.turns]\nmedium = 1\n")
    before = leadsman("--config", "c.toml", "budget", cwd=tmp_path)
    assert before == leadsman("budget", "--config=c.toml", cwd=tmp_path)
    assert "easy" not in before.out
    assert 2 == leadsman("budget", "--config", "nowhere.toml", cwd=tmp_path).code


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for words in (["--help"], ["pass", "run", "--help"], ["budget", "--json"]):
        done = subprocess.run(
            [SCRIPT, *words], cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60
        )
        assert (141, b"") == (done.returncode, done.stderr)
    os.close(writing)


def test_control_c_ends_with_130_and_no_word(tmp_path: Path) -> None:
    run = ["sh", "-c", "echo begun; exec sleep 60"]
    started = leadsman("handoff", "--driver", "setsid", "--", *run, cwd=tmp_path)
    run_id = started.out.split()[1]
    with subprocess.Popen(
        [SCRIPT, "logs", "-f", run_id],
        env={**os.environ, "LEADSMAN_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as follower:
        assert follower.stdout is not None
        follower.stdout.readline()
        follower.send_signal(signal.SIGINT)
        _, err = follower.communicate(timeout=60)
    leadsman("cancel", run_id, cwd=tmp_path)
    assert (130, b"") == (follower.returncode, err)


def test_a_failure_of_our_own_is_told_briefly_and_kept_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = ZeroDivisionError("in the middle of it")
    code = failures.tell(problem, Words(home=str(tmp_path / "h"), verb="serve"))
    (log,) = (tmp_path / "h/logs").iterdir()
    assert 1 == code
    assert (
        "Something went wrong inside Leadsman, and that is our mistake. "
        f"The details are in {log}; `-v` shows them here.\n"
    ) == capsys.readouterr().err
    assert "ZeroDivisionError: in the middle of it" in log.read_text()
    assert 0o600 == log.stat().st_mode & 0o777


def test_a_failure_that_no_home_can_keep_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert 1 == failures.tell(ZeroDivisionError("it"), Words(home=str(tmp_path / "file")))
    assert "ZeroDivisionError: it" in capsys.readouterr().err


def test_a_failure_of_the_outside_is_its_own_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == failures.tell(Unavailable("github.com did not answer"), Words(home=str(tmp_path)))
    assert (
        "github.com did not answer. Try again later; `leadsman doctor` looks for the cause.\n"
        == capsys.readouterr().err
    )
    assert [] == list(tmp_path.iterdir())


def test_what_this_user_may_not_is_told_as_that_and_not_as_our_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    problem = PermissionError(errno.EACCES, "Permission denied", "/srv/leadsman/leadsman.db")
    assert 1 == failures.tell(problem, Words())
    said = "Call it as the user whom that belongs to, or give this one the right.\n"
    assert f"/srv/leadsman/leadsman.db: Permission denied. {said}" == capsys.readouterr().err


def test_a_full_disk_is_told_as_one_and_not_as_our_mistake(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [SCRIPT, "--home", tmp_path / "home", "config", "explain"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    said = b"What was to be written could not be: No space left on device. Make room, then try again.\n"
    assert (1, said) == (done.returncode, done.stderr)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("words", [("config", "check"), ("--home", "here", "runs"), ("doctor",)], ids=" ".join)
def test_a_folder_that_was_removed_is_told_and_not_as_our_mistake(tmp_path: Path, words: tuple[str, ...]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", SCRIPT, *words],
        cwd=gone,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    said = b"The folder you are in does not exist any more. Go to another one, then try again.\n"
    assert (1, said) == (done.returncode, done.stderr)


def test_it_refuses_to_start_with_a_package_missing_or_of_somebody_else(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    source = Path(__file__).parents[2]
    for name in ("bot", "gitops", "handlers"):
        shutil.copytree(source / name, here / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(source / "bot/cli/entry.py", here / "leadsman.py")
    end = "install Leadsman into a virtual environment of its own.\n"
    assert (1, f"Leadsman can't start: its package `webhooks` is missing in {here}; {end}") == _started(here)
    for name in ("webhooks", "bot"):
        (there / name).mkdir(parents=True)
        (there / name / "__init__.py").touch()
        folders = (here, there) if name == "webhooks" else (there, here)
        said = f"its packages are in {here}, but `{name}` is found in {there}, where something else has that name"
        assert (1, f"Leadsman can't start: {said}; {end}") == _started(*folders)


def _started(*folders: Path) -> tuple[int, str]:
    """Exit code and stderr of Leadsman found in `folders` alone: without the environment's own packages (-S)."""
    paths = [str(folder) for folder in folders]
    code = f"import sys; sys.path[:0] = {paths!r}; from leadsman import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, "--help"], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_failure(closed: str, tmp_path: Path) -> None:
    command = f'"$0" budget {closed}'
    done = subprocess.run(["sh", "-c", command, SCRIPT], cwd=tmp_path, env={"HOME": str(tmp_path)}, check=False)
    assert done.returncode == 0
    assert not (tmp_path / ".local").exists()

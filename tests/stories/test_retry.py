"""`leadsman retry` on a run of the server does what `/retry` does, for whoever sits at the host."""

from __future__ import annotations

import getpass
import json
import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.bot.console import SCRIPT, Ended
from tests.stories.town import BOUND, Town
from tests.world import Pull, Repository


def calling(town: Town, *argv: str) -> subprocess.Popen[str]:
    """The command, in the environment of somebody who has the bot's token."""
    environ = {**os.environ, "LEADSMAN_HOME": str(town.home), "BOT_TOKEN": town.bot.token, "HOOK_SECRET": "y"}
    return subprocess.Popen(
        [SCRIPT, "--config", str(town.folder / "leadsman.toml"), "retry", *argv],
        cwd=town.folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(call: subprocess.Popen[str]) -> Ended:
    out, err = call.communicate(timeout=BOUND)
    return Ended(call.returncode, out, err)


def retry(town: Town, *argv: str) -> Ended:
    return ended(calling(town, *argv))


def one_run(town: Town) -> tuple[Repository, Pull, Path]:
    """A run that has ended, and a server."""
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run fix -- twice")
    town.settled(pull, "**Published** `fix`")
    (run,) = town.until("the run is closed", town.closed)
    return repo, pull, run


def fresh(town: Town, old: Path) -> Path:
    """The one other run, once it is closed."""
    (run,) = [run for run in town.until("both are closed", lambda: town.closed(2)) if run != old]
    return run


def assert_done_once_more(town: Town, repo: Repository, pull: Pull, old: Path) -> Path:
    new = fresh(town, old)
    intent = json.loads((new / "intent.json").read_text())
    assert ["twice"] == intent["args"]
    assert f"{getpass.getuser()} on the command line" == intent["event"]["actor"]["login"]
    town.until("it is reported in a comment of its own", lambda: len(town.answers(pull)) == 2)
    said = town.until("it has ended there", lambda: (now := town.answers(pull)[1]) and "**Published**" in now and now)
    assert new.name in said
    assert f"{getpass.getuser()} on the command line with `leadsman retry {old.name}`" in said
    assert 2 == len(town.run_branches(repo))
    town.assert_nothing_is_left(repo)
    return new


def test_a_server_starts_it_at_once(town: Town) -> None:
    repo, pull, old = one_run(town)
    done = retry(town, old.name[:-3], "--wait", str(BOUND))
    assert (0, "") == (done.code, done.err)
    new = assert_done_once_more(town, repo, pull, old)
    assert [f"waiting {new.name} round 1 {new}", "The server starts it.", f"{new.name} published"] == (
        done.out.splitlines()
    )


def test_without_a_server_the_next_one_starts_it(town: Town) -> None:
    repo, pull, old = one_run(town)
    town.stop()
    done = retry(town, old.name, "--json")
    assert (0, "") == (done.code, done.err)
    record = json.loads(done.out)
    assert ("waiting", "fix", 1) == (record["status"], record["task"], record["round"])
    again = retry(town, old.name)
    assert (1, "") == (again.code, again.out)
    assert f"Run {record['run_id']} of fix has not ended." in again.err
    town.start()
    assert record["run_id"] == assert_done_once_more(town, repo, pull, old).name


def test_a_caller_that_is_killed_has_asked_once_or_not_at_all(town: Town) -> None:
    repo, pull, old = one_run(town)
    assert town.server is not None
    with closing(sqlite3.connect(town.home / "leadsman.db", timeout=30, isolation_level=None)) as connection:
        connection.execute("begin immediate")  # so that it does not stand still in the middle of writing
        town.server.send_signal(signal.SIGSTOP)
        connection.execute("rollback")
    call = calling(town, old.name)
    town.until("it was asked for", lambda: "queued" in town.states())
    call.kill()
    ended(call)
    town.server.send_signal(signal.SIGCONT)
    assert_done_once_more(town, repo, pull, old)


@pytest.mark.parametrize("point", ["decided", "claim:begins", "started", "close:begins"])
def test_a_server_that_is_killed_over_it_starts_it_once(town: Town, point: str) -> None:
    repo, pull, old = one_run(town)
    town.stop()
    town.start(crash=point)
    call = calling(town, old.name)
    town.dies()
    town.start()
    done = ended(call)
    assert (0, "") == (done.code, done.err)
    assert fresh(town, old).name in done.out
    assert_done_once_more(town, repo, pull, old)


def test_what_stands_against_it_is_told(town: Town) -> None:
    _, pull, old = one_run(town)
    town.says(pull, "/hold not now")
    town.until("it is on hold", lambda: any("on hold" in said or "hold" in said for said in town.answers(pull)[1:]))
    done = retry(town, old.name)
    assert (1, "") == (done.code, done.out)
    assert "No new runs start here: `alice` put it on hold (not now). `/unhold` ends that.\n" == done.err
    assert [old] == town.runs()
    with closing(sqlite3.connect(town.home / "leadsman.db")) as connection:
        ((note,),) = connection.execute("select note from deliveries where delivery like 'retry-%'").fetchall()
    assert note.startswith("No new runs start here")

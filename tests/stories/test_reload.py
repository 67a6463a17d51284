"""SIGHUP: a right configuration is taken up; a wrong one leaves the last good one at work, and is said."""

from __future__ import annotations

import ctypes
import functools
import json
import select
import signal
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError

import pytest

from tests.stories.town import BOUND, Town

UNSET = "[forges.github] token_env: NOWHERE is not set. Set it in the server's environment."
PARTS = {
    "unknown table": (lambda text: f"{text}\n[nonsense]\n", "[nonsense]: unknown table"),
    "no toml": (lambda text: f"{text}\n[", "is not TOML"),
    "a token that is not there": (lambda text: text.replace("BOT_TOKEN", "NOWHERE"), UNSET),
}


def readiness(town: Town) -> tuple[int, dict[str, str]]:
    try:
        with urllib.request.urlopen(f"{town.address}/readyz", timeout=60) as answer:
            return answer.status, json.load(answer)["checks"]
    except HTTPError as answer:
        return answer.code, json.load(answer)["checks"]


def reload(town: Town, text: str | None) -> None:
    """The file is changed, or gone, and the server is told."""
    assert town.server is not None
    config = town.folder / "leadsman.toml"
    if text is None:
        config.unlink()
    else:
        config.write_text(text)
    town.server.send_signal(signal.SIGHUP)


def assert_works(town: Town, pull: object) -> None:
    before = len(town.answers(pull))
    town.says(pull, "/help")
    town.until("it answers", lambda: len(town.answers(pull)) > before or None)


def test_a_changed_configuration_is_taken_up(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    town.task("new", ["true"], 'publish = "none"\n')
    reload(town, town.config)
    town.until("it is said", lambda: "The configuration was read anew" in town.log() or None)
    town.says(pull, "/run new")
    town.settled(pull, "**Nothing to publish**")


def test_how_much_may_wait_is_taken_up_too(town: Town) -> None:
    pull = town.pull_of(town.repo())
    town.start()
    reload(town, town.config.replace("[server]\n", "[server]\nqueue_limit = 1\n"))
    town.until("it is said", lambda: "The configuration was read anew" in town.log() or None)
    town.world.down()
    town.says(pull, "/help")  # waits for the forge, first in its queue
    full = pull.comment("alice", "/tasks")
    posted = town.deliver(full)
    assert (503, "full") == (posted.status, json.loads(posted.body)["status"])
    town.world.up()
    town.until("there is room again", lambda: town.deliver(full).status == 202 or None)


@pytest.mark.parametrize("wrong", PARTS)
def test_a_wrong_configuration_leaves_the_last_good_one_at_work_and_is_said(town: Town, wrong: str) -> None:
    spoil: Callable[[str], str]
    spoil, said = PARTS[wrong]
    pull = town.pull_of(town.repo())
    town.start()
    reload(town, spoil(town.config))
    town.until("readiness tells", lambda: readiness(town)[0] == 503 or None)
    assert said in readiness(town)[1]["configuration"]
    assert said in town.log()
    with urllib.request.urlopen(f"{town.address}/", timeout=60) as page:
        assert "the last good one is in force" in page.read().decode()
    assert_works(town, pull)
    reload(town, town.config)
    town.until("it is ready again", lambda: readiness(town)[0] == 200 or None)
    assert_works(town, pull)


def test_a_configuration_that_is_gone_is_a_wrong_one(town: Town) -> None:
    pull = town.pull_of(town.repo())
    town.start()
    reload(town, None)
    town.until("readiness tells", lambda: readiness(town)[0] == 503 or None)
    assert "There is no configuration file" in readiness(town)[1]["configuration"]
    assert_works(town, pull)


def test_a_server_whose_address_is_known_may_be_told_to_reload(town: Town) -> None:
    town.repo()
    for _ in range(5):
        town.start()
        reload(town, town.config)
        town.stop()  # it would have ended by SIGHUP, not well


def switches(pid: int) -> str:
    """How often its main thread has gone to sleep."""
    text = Path(f"/proc/{pid}/task/{pid}/status").read_text()
    return text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]


def rests(pid: int) -> bool:
    before = switches(pid)
    select.select([], [], [], 0.5)
    return before == switches(pid)


def test_a_signal_is_heard_at_once_whichever_thread_the_kernel_gives_it_to(town: Town) -> None:
    town.repo()
    town.start()
    assert town.server is not None
    pid = town.server.pid
    town.until("its main thread is at rest", functools.partial(rests, pid))
    others = {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()} - {pid}
    other = others.pop()  # any but the main one: numbers begin again at the top, so the greatest may be its own
    begun = time.monotonic()
    assert ctypes.CDLL(None).tgkill(pid, other, signal.SIGTERM) == 0
    assert town.server.wait(BOUND) == 0
    assert time.monotonic() - begun < 8  # its loop wakes by itself after ten


def test_a_forge_that_is_taken_away_while_a_run_of_it_works_is_waited_for(town: Town) -> None:
    go = town.folder / "go"
    town.task("wait", ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; echo x > x.txt"])
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run wait")
    town.until("it runs", town.processes)
    reload(town, '[server]\nlisten = "127.0.0.1:0"\n')
    town.until("reloaded", lambda: "was read anew" in town.log() or None)
    go.touch()
    town.until("it says what it waits for", lambda: "[forges.github] is not in the configuration" in town.journal())
    assert "Traceback" not in town.log(), town.log()
    reload(town, town.config)
    town.settled(pull, "**Published**")
    town.until("closed", town.closed)
    town.assert_nothing_is_left(repo)

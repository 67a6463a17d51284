"""The fleet, as an operator and as people on a pull request see it: paused, full, reloaded."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bot.home import own_name
from bot.model import Lease
from bot.store import StoreSettings, hosts, runs, schema
from bot.store.engine import open_store
from bot.store.hosts import HostRow
from tests.bot.console import Ended
from tests.bot.test_slots import intent
from tests.stories.nursery import nursery
from tests.stories.town import FIX, Town


def leadsman(town: Town, *argv: str) -> Ended:
    """A command of the operator's, beside the server."""
    environ = {**os.environ, "LEADSMAN_HOME": str(town.home), "BOT_TOKEN": "x" * 8, "HOOK_SECRET": "y"}
    return nursery().ran(["--config", str(town.folder / "leadsman.toml"), *argv], environ, town.folder)


def fleet(town: Town) -> dict[str, Any]:
    done = leadsman(town, "status", "--json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def state_once(town: Town, what: str, so: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """What `leadsman status` says, once it is so."""

    def look() -> dict[str, Any] | None:
        now = fleet(town)
        return now if so(now) else None

    return town.until(what, look)


def waiter(town: Town, go: Path) -> list[str]:
    return ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; echo x > x.txt"]


def answer(town: Town, thread: Any, word: str) -> str:
    return town.until(f"an answer with {word!r}", lambda: next((b for b in town.answers(thread) if word in b), None))


def test_a_paused_fleet_starts_nothing_through_a_restart_until_it_is_unpaused(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    assert leadsman(town, "pause").out.startswith("New runs are paused by ")
    assert leadsman(town, "pause").out.startswith("New runs were paused already by ")
    town.says(pull, "/run fix")
    answer(town, pull, "paused: New runs are paused")
    town.stop()
    town.start()
    town.until("it is seen to wait", lambda: fleet(town)["pending"] == 1)
    said = leadsman(town, "status").out
    assert "New runs are paused by" in said
    assert "waits: paused: " in said
    assert '"event": "refused"' in town.journal()
    assert town.run_branches(repo) == []
    assert leadsman(town, "unpause").out == "New runs start again.\n"
    assert leadsman(town, "unpause").out == "New runs were not paused.\n"
    town.settled(pull, "**Published**")
    town.until("the run is closed", town.closed)
    town.assert_nothing_is_left(repo)


def test_status_tells_what_runs_what_waits_and_why(town: Town) -> None:
    repo, go = town.repo(), town.folder / "go"
    town.task("wait", waiter(town, go))
    first, second = town.pull_of(repo), town.pull_of(repo, head="other", files={"o.txt": "x"})
    town.start()
    town.says(first, "/run wait")
    state_once(town, "it runs", lambda now: now["running"] == 1 and now["runs"][0]["phase"] == "start")
    town.says(second, "/run fix")
    state = town.until(
        "one waits", lambda: (now := fleet(town))["pending"] == 1 and now["waiting"][0]["reason"] and now
    )
    assert (1, 1, 4, 1, 1, 0) == tuple(
        state[key] for key in ("active_runs", "running", "max_concurrent", "peak", "dispatched", "reports")
    )
    assert state["server"]["state"] == "held"
    (run,), (waiting,) = state["runs"], state["waiting"]
    assert ("wt-1", "wait", "running", "github:acme/shop#1") == tuple(
        run[key] for key in ("slot", "task", "state", "subject")
    )
    assert state["slots"] == {"wt-1": run["run_id"], "wt-2": None, "wt-3": None, "wt-4": None}
    assert (1, "fix") == (waiting["position"], waiting["task"])
    assert waiting["reason"].startswith("repo_busy: 1 of at most 1 runs go on")
    listed = json.loads(leadsman(town, "runs", "--json").out)
    assert [("waiting", 1), ("running", 0)] == [(line["state"], line["position"]) for line in listed]
    town.says(second, "/status")
    full = "On this host 1 of 4 slots are held (1 at most so far), 1 run waits; started in all: 1, reported: 0."
    assert full in answer(town, second, "On this host")
    town.kill()
    go.touch()
    said = town.until(
        "the run has ended", lambda: (now := leadsman(town, "status").out) and "0 runs live (0 running)" in now and now
    )
    assert "stale (left by pid" in said
    assert "1 wait; started in all: 1, reported: 0\n" in said
    town.start()
    town.until("both are closed", lambda: town.closed(2))
    state = state_once(town, "all is counted", lambda now: now["reports"] == 2)
    assert (0, 0, 0, 2) == tuple(state[key] for key in ("active_runs", "running", "pending", "dispatched"))


def test_a_reload_takes_up_a_right_file_and_says_what_is_wrong_with_a_wrong_one(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    assert leadsman(town, "reload").code == 1
    town.start()
    config = town.folder / "leadsman.toml"
    good = config.read_text()
    config.write_text(good + "\n[fleet2]\n")
    wrong = leadsman(town, "reload")
    assert (1, "") == (wrong.code, wrong.out)
    assert "fleet2" in wrong.err
    assert "the last good one stays in force" in wrong.err
    assert "fleet2" in leadsman(town, "status").out
    town.task("late", FIX)
    config.write_text(town.config)
    right = leadsman(town, "reload")
    assert right.code == 0, right.err
    assert "fleet2" not in leadsman(town, "status").out
    town.says(pull, "/run late")
    town.settled(pull, "**Published**")
    assert leadsman(town, "reload").code == 0
    assert state_once(town, "it is read anew", lambda now: now["peak"])["peak"] == 1


@contextmanager
def shared(town: Town) -> Iterator[sa.Connection]:
    """The server's store, as another host would write to it."""
    store = open_store(StoreSettings(), town.home)
    try:
        with store.write() as connection:
            yield connection
    finally:
        store.close()


def test_where_several_hosts_share_the_store_each_is_named_with_its_runs(town: Town) -> None:
    repo, go = town.repo(), town.folder / "go"
    town.task("wait", waiter(town, go))
    pull = town.pull_of(repo)
    town.start()
    assert [] == fleet(town)["hosts"]
    far = intent(1, "acme/far").run_id
    with shared(town) as connection:
        runs.restore(connection, intent(1, "acme/far"), host="zoe", phase="start")
        runs.take_slot(connection, Lease("wt-1", "id", "zoe"), far, "github:acme/far", 1.0)
        hosts.join(connection, HostRow("zoe", 1, None, 2.0, time.time() + 3600))
        hosts.join(connection, HostRow("ben", 3, None, 2.0, 1.0))  # gone long ago, and holds nothing
    town.says(pull, "/run wait")
    state = state_once(town, "it runs, and both are told", lambda now: now["running"] == 1 and len(now["hosts"]) == 2)
    here = own_name(town.home)
    (run,) = state["runs"]
    assert {here: [run["run_id"]], "zoe": [far]} == {
        host["name"]: [one["run_id"] for one in host["runs"]] for host in state["hosts"]
    }
    assert (1, 5) == (state["active_runs"], state["max_concurrent"])
    said = leadsman(town, "status").out
    assert "Host zoe: 1 of 1 slots held\n" in said
    assert f"  wt-1  {far}  fix for github:acme/far#1, start\n" in said
    assert 1 == said.count(run["run_id"])
    page = urllib.request.urlopen(town.address, timeout=30).read().decode()
    assert f"on {here}" in page
    assert "on zoe" in page
    with shared(town) as connection:
        connection.execute(schema.hosts.update().where(schema.hosts.c.name == "zoe").values(seen_at=3600.0))
    go.touch()
    town.until("ours is closed", (town.home / "runs" / run["run_id"] / "closed.json").exists)
    said = town.until("it is gone", lambda: (now := leadsman(town, "status").out) and "gone since" in now and now)
    assert "Host zoe: 1 of 1 slots held, gone since 1970-01-01T01:00:00.000Z" in said
    assert not (town.home / "runs" / far).exists()

"""The fleet, as an operator and as people on a pull request see it: paused, full, reloaded."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bot.console import SCRIPT, Ended
from tests.stories.town import FIX, Town


def leadsman(town: Town, *argv: str) -> Ended:
    """A command of the operator's, beside the server."""
    environ = {**os.environ, "LEADSMAN_HOME": str(town.home), "BOT_TOKEN": "x" * 8, "HOOK_SECRET": "y"}
    done = subprocess.run(
        [SCRIPT, "--config", str(town.folder / "leadsman.toml"), *argv],
        cwd=town.folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


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
    town.until("it runs", lambda: fleet(town)["running"] == 1)
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
    assert "On this host 1 of 4 slots are held (1 at most so far), 1 run waits." in answer(town, second, "On this host")
    town.kill()
    go.touch()
    said = town.until(
        "the run has ended", lambda: (now := leadsman(town, "status").out) and "0 runs live" in now and now
    )
    assert "stale (left by pid" in said
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

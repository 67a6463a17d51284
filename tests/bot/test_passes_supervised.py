"""A supervised command that waits for CPU passes: its time limit begins with the passes, and the wait is told apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.cpus import host_size
from bot.liveness import request_cancel
from bot.masking import Masking
from bot.passes import wrapped
from bot.pool import Pool
from bot.verification import ran_of
from tests.bot.passes_host import ROOT, is_locked, until

LIMIT, WAIT = 2, 2.5
SUPERVISOR = (sys.executable, "-I", "-S", str(ROOT / "bot/supervisor.py"))


def status(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "status.json").read_text())
    return found


@pytest.mark.parametrize(("state", "stop_reason", "sleep"), [("done", None, 0.1), ("failed", "time_limit", 60)])
def test_the_time_limit_begins_once_the_passes_are_held(
    tmp_path: Path, state: str, stop_reason: str | None, sleep: float
) -> None:
    (tmp_path / "pool").mkdir()
    folder = tmp_path / "20260101-000000-abcdef"
    folder.mkdir()
    earlier = {"passes": 1, "waited": 0.5, "held_at": 1.0, "held_monotonic": 1.0}  # of a start before this one
    (folder / "passes.json").write_text(json.dumps(earlier))
    mine = Pool(str(tmp_path / "pool"), host_size()).take(host_size(), "the test", tell=pytest.fail)
    argv, extra = wrapped(("sleep", str(sleep)), "all", label="run", note=folder)
    environ = {"PATH": os.environ["PATH"], "LEADSMAN_POOL_DIR": str(tmp_path / "pool")}
    spec = {"run_id": folder.name, "task": "t", "argv": argv, "cwd": "/", "env": environ, "driver": "setsid"}
    (folder / "spec.json").write_text(json.dumps({**spec, "time_limit": LIMIT, **extra}))
    subprocess.run([*SUPERVISOR, str(folder)], check=True)
    until(lambda: is_locked(tmp_path / "pool" / "turnstile.lock"))  # it waits
    with pytest.raises(AssertionError):
        until(lambda: (folder / "status.json").exists() and "running" != status(folder)["state"], WAIT)
    mine.release()
    until(lambda: "running" != status(folder)["state"])
    ended = status(folder)
    assert (state, stop_reason) == (ended["state"], ended["stop_reason"])
    assert host_size() == ended["passes"]
    assert ended["waited"] > LIMIT
    assert (ended["seconds"] < LIMIT) is (state == "done")


def test_of_a_command_that_was_ended_while_it_waited_the_wait_is_no_duration(tmp_path: Path) -> None:
    (tmp_path / "pool").mkdir()
    folder = tmp_path / "20260101-000000-abcdef"
    folder.mkdir()
    argv, extra = wrapped(("touch", str(tmp_path / "ran")), 1, label="run", note=folder)
    environ = {"PATH": os.environ["PATH"], "LEADSMAN_POOL_DIR": str(tmp_path / "pool")}
    spec = {"run_id": folder.name, "task": "t", "argv": argv, "cwd": "/", "env": environ, "driver": "setsid"}
    (folder / "spec.json").write_text(json.dumps({**spec, "time_limit": LIMIT, **extra}))
    with Pool(str(tmp_path / "pool"), host_size()).take(host_size(), "the test", tell=pytest.fail):
        subprocess.run([*SUPERVISOR, str(folder)], check=True)
        until(lambda: is_locked(tmp_path / "pool" / "turnstile.lock"))
        request_cancel(folder, "alice")
        until(lambda: "running" != status(folder)["state"])
    ended = status(folder)
    assert ("cancelled", None, 0.0, False) == (
        ended["state"],
        ended["passes"],
        ended["seconds"],
        (tmp_path / "ran").exists(),
    )
    assert 0 < ended["waited"]
    ran = ran_of(tmp_path, folder, "the tests", Masking())
    assert (("touch", str(tmp_path / "ran")), 0.0, ended["waited"]) == (ran.argv, ran.seconds, ran.waited)


def test_of_a_status_that_its_run_wrote_no_figure_counts_that_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "20260101-000000-abcdef"
    folder.mkdir()
    forged = {"state": "done", "seconds": "long", "waited": [1], "exit_code": "0", "usage": {"user_seconds": 1.0}}
    (folder / "status.json").write_text(json.dumps(forged))
    ran = ran_of(tmp_path, folder, "the tests", Masking())
    assert (0.0, None, None, None) == (ran.seconds, ran.waited, ran.exit_code, ran.use)

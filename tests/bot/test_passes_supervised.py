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
from bot.passes import wrapped
from bot.pool import Pool
from tests.bot.passes_host import ROOT, is_locked, until

LIMIT, WAIT = 2, 2.5


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
    mine = Pool(str(tmp_path / "pool"), host_size()).take(host_size(), "the test", tell=pytest.fail)
    argv, extra = wrapped(("sleep", str(sleep)), "all", label="run", note=folder)
    environ = {"PATH": os.environ["PATH"], "LEADSMAN_POOL_DIR": str(tmp_path / "pool")}
    spec = {"run_id": folder.name, "task": "t", "argv": argv, "cwd": "/", "env": environ, "driver": "setsid"}
    (folder / "spec.json").write_text(json.dumps({**spec, "time_limit": LIMIT, **extra}))
    subprocess.run([sys.executable, "-I", "-S", str(ROOT / "bot/supervisor.py"), str(folder)], check=True)
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

"""`leadsman demo`, as somebody sees it who has just cloned Leadsman: what it shows, and that it leaves nothing."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
import subprocess
from pathlib import Path

from tests.bot.console import SCRIPT, leadsman

BOUND = 60


def ended(pid: int) -> bool:
    """Ends a process that is no child of ours; whether it does in time."""
    handle = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        return bool(select.select([handle], [], [], BOUND)[0])
    finally:
        os.close(handle)


def test_it_shows_a_published_run_and_one_that_outlives_its_server_and_where_to_look(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    environ = {"HOME": str(tmp_path), "TMPDIR": str(folder)}
    done = leadsman("demo", "--keep", cwd=tmp_path, environ=environ, seconds=280)
    assert (0, "") == (done.code, done.err), done
    assert ended(int(re.findall(r"^and end it with: kill (\d+); rm -r ", done.out, re.MULTILINE)[0]))
    assert "**Published** `fix`" in done.out
    rows = dict(re.findall(r"^(.+?)  +(\S+)$", done.out, re.MULTILINE))
    seen = ("starts of the command", "published branches", "commits on it", "comments of the bot", "outcome")
    assert ["1", "1", "1", "1", "Published"] == [rows[name] for name in seen]
    steps = re.findall(r"^\d\d:\d\d:\d\d\.\d{3}  \d+ +(\w+)$", done.out, re.MULTILINE)
    assert {"delivered", "acknowledged", "started", "ended", "checked", "published", "reported"} == set(steps)
    (listed,) = re.findall(r"^  (.*) runs$", done.out, re.MULTILINE)
    look = subprocess.run([*shlex.split(listed), "runs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert 2 == look.stdout.count("  done  "), look


def test_whoever_ends_it_ends_its_server(tmp_path: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([SCRIPT, "demo"], cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        next(line for line in demo.stdout if line.startswith("Alice comments /run fix"))
        (root,) = tmp_path.glob("leadsman-demo-*")
        server = os.pidfd_open(json.loads((root / "home/server.json").read_text())["pid"])
        demo.send_signal(signal.SIGTERM)
        assert 128 + signal.SIGTERM == demo.wait(BOUND)
    assert select.select([server], [], [], BOUND)[0]
    os.close(server)
    assert [] == list(tmp_path.glob("leadsman-demo-*"))

"""A throw-away home with a small real repository in it: its test fails, and a task repairs it."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bot.config import load
from bot.errors import UserError
from bot.forges import Around
from bot.forges import local as local_forge
from bot.forges.local import Local, People
from bot.launchers.server import Child
from bot.liveness import end, is_over, reading
from bot.model import Event, RunId
from bot.rundir import all_runs, read_json
from bot.store import runs
from bot.store.engine import Store, open_store
from gitops.git import Git, Identity
from webhooks.sources import local as local_source

Seen = TypeVar("Seen")
BOUND = 60.0
LOOK = 0.05

CONFIG = """\
[server]
listen = "127.0.0.1:0"

[forges.local]
kind = "local"
root = "repositories"
users = { alice = "write" }

[fleet]
max_load_per_cpu = 1000.0    # it is to be seen on a busy host, too

[[project]]
name = "abacus"
forge = "local"
repository = "demo/abacus"

[[task]]
name = "fix"
run = ["python3", "tools/fix.py"]
help = "repairs the code and commits"

[[task.verify]]
run = ["python3", "-m", "unittest", "-q"]

[[task]]
name = "slow-fix"
run = ["python3", "tools/fix.py", "--slowly"]
help = "the same, with time to kill the server meanwhile"

[[task.verify]]
run = ["python3", "-m", "unittest", "-q"]
"""

FILES = {
    "abacus.py": '"""Adds."""\n\n\ndef add(one: int, other: int) -> int:\n    return one - other\n',
    "test_abacus.py": (
        "import unittest\n\nfrom abacus import add\n\n\nclass Adding(unittest.TestCase):\n"
        "    def test_two_and_two_are_four(self) -> None:\n        self.assertEqual(4, add(2, 2))\n"
    ),
    "tools/fix.py": (
        "import pathlib\nimport subprocess\nimport sys\nimport time\n\n"
        'print("looking at abacus.py", flush=True)\n'
        'if "--slowly" in sys.argv:\n'
        "    for second in range(3):\n"
        "        time.sleep(1)\n"
        '        print(f"thinking for {second + 1} s", flush=True)\n'
        'file = pathlib.Path("abacus.py")\n'
        'file.write_text(file.read_text().replace("one - other", "one + other"))\n'
        'subprocess.run(["git", "commit", "-qam", "Add instead of subtracting"], check=True)\n'
        'print("repaired and committed", flush=True)\n'
    ),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the demonstration lives."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def config(self) -> Path:
        return self.root / "leadsman.toml"

    @property
    def repository(self) -> Path:
        return self.root / "repositories" / "demo" / "abacus.git"

    @property
    def log(self) -> Path:
        return self.root / "server.log"

    def run(self, run_id: str) -> Path:
        return self.home / "runs" / run_id


class Demo:
    """The world, with what people do in it and what can be seen of it."""

    def __init__(self, place: Place, environ: Mapping[str, str]) -> None:
        self.place = place
        self._environ = environ
        self._server: Child | None = None
        place.home.mkdir(mode=0o700)
        place.config.write_text(CONFIG)
        config = load(place.config, environ, home=place.home)
        self.store: Store = open_store(config.store, place.home)
        settings = config.forges["local"]
        around = Around(
            store=self.store,
            home=place.home,
            base=config.base,
            environ=environ,
            public_url="http://127.0.0.1",
            clock=time.time,
        )
        if not isinstance(settings, local_forge.Settings):
            raise TypeError(type(settings))
        self._forge: Local = local_forge.connect("local", settings, around)
        self._secret = local_forge.webhook_secrets("local", settings, around)[0]
        self.people = People(self._forge)
        self._make_repository()

    def _make_repository(self) -> None:
        self.people.make_repository("demo/abacus", source=None, author="alice")
        self._branch("main", {name: text for name, text in FILES.items() if name != "test_abacus.py"}, "An abacus")
        self._branch("test-adding", {"test_abacus.py": FILES["test_abacus.py"]}, "Test that two and two are four")
        self.people.open_pull("demo/abacus", head="test-adding", base=None, title="Test adding", author="alice")

    def _branch(self, branch: str, files: Mapping[str, str], message: str) -> None:
        """A commit on main, and a branch that holds it, made without a working tree."""
        git = Git(self.place.repository)
        identity = Identity("Alice", "alice@localhost")
        base = git.run("rev-parse", "HEAD").text
        index = {"GIT_INDEX_FILE": str(self.place.root / "index")}
        git.run("read-tree", base, environment=index)
        for name, text in files.items():
            blob = git.run("hash-object", "-w", "--stdin", stdin=text.encode()).text
            git.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", environment=index)
        tree = git.run("write-tree", environment=index).text
        commit = git.run("commit-tree", tree, "-p", base, "-m", message, environment=identity.environment()).text
        git.run("update-ref", f"refs/heads/{branch}", commit)

    # ── what happens ─────────────────────────────────────────────────────────────────────────────────────────────

    def serve(self) -> str:
        """Starts the server; returns its address once it listens."""
        child = self._server = Child(self.place.home, self.place.config, self.place.log, self._environ)
        return self.seen("the server's address", lambda: self._address(child.pid))

    def kill(self) -> int:
        """Kills the server as if the power had gone; returns the pid that it had."""
        server, self._server = self._server, None
        if server is None:
            raise UserError("No server of the demonstration runs. Start the demonstration anew.")
        server.kill()
        return server.pid

    def _address(self, pid: int) -> str | None:
        note = read_json(self.place.home / "server.json") or {}
        return str(note["address"]) if note.get("pid") == pid and note.get("address") else None

    def comment(self, address: str, text: str) -> tuple[Event, float]:
        """Alice comments; the delivery is signed and posted as the forge would. Returns the event and the moment."""
        event = self.people.comment("demo/abacus", 1, author="alice", text=text).event
        headers, body = local_source.write(event, self._secret)
        url = f"{address}/webhooks/local"
        request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310  # our own server on loopback
        began = time.time()
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            if answer.status != 202:
                raise UserError(f"The server answered {answer.status} to a signed delivery.")
        return event, began

    # ── what can be seen ─────────────────────────────────────────────────────────────────────────────────────────

    def seen(self, what: str, look: Callable[[], Seen | None]) -> Seen:
        """Looks until there is something; raises `UserError` that names what was missed and the last lines logged."""
        end = time.monotonic() + BOUND
        while time.monotonic() < end:
            if (found := look()) is not None:
                return found
            time.sleep(LOOK)
        log = self.place.log.read_text(errors="replace").splitlines()[-5:] if self.place.log.exists() else []
        raise UserError(f"{what} was not seen within {BOUND:g} s. The server's last lines:\n" + "\n".join(log))

    def run_of(self, task: str) -> RunId | None:
        with self.store.read() as connection:
            return next((row.run_id for row in runs.recent(connection) if row.task == task), None)

    def phase(self, run_id: str) -> str:
        with self.store.read() as connection:
            row = runs.get(connection, run_id)
        return row.phase if row else "?"

    def status(self, run_id: str) -> dict[str, Any]:
        return read_json(self.place.run(run_id) / "status.json") or {}

    def comments(self) -> list[tuple[str, str, str]]:
        said = self._forge.threads.conversation("demo/abacus", 1)
        return [(one.author, one.body, one.updated_at.isoformat()) for one in said]

    def branches(self) -> dict[str, str]:
        return {name: str(sha) for name, sha in self._forge.bares.branches("demo/abacus").items()}

    def log_of(self, branch: str) -> str:
        return Git(self.place.repository).run("log", "--format=%h %an: %s", f"main..refs/heads/{branch}").text

    def close(self, *, keep: bool = False) -> None:
        """Ends the server and the runs; `keep`: nothing but what looks at them from here."""
        if not keep:
            if self._server is not None:
                self._server.stop()
            for run in all_runs(self.place.home / "runs"):
                if not is_over(reading(run.path)):
                    end(run.path, by="the end of the demonstration")
        self.store.close()


def environment(root: Path) -> dict[str, str]:
    """What the demonstration's server gets: nothing of the user's configuration, and CPU passes of its own."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LANG": "C.UTF-8",
        "HOME": "/nonexistent",
        "LEADSMAN_POOL_DIR": str(root / "passes"),
    }


def events(home: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
    except FileNotFoundError:
        return []

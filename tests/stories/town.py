"""A town: a GitHub, a home, and a real server process between them, which can be killed and started again."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from bot.rundir import read_json
from gitops.git import Git
from tests.stories.nursery import Server, nursery
from tests.world import Delivery, Pull, Repository, World
from tests.world.world import Posted

Seen = TypeVar("Seen")
BOUND = 60.0
REPOSITORY = Path(__file__).parents[2]

CONFIG = """\
[server]
listen = "127.0.0.1:{port}"

[forges.github]
kind = "github"
api_url = "{api_url}"
token_env = "BOT_TOKEN"
webhook_secret_env = ["HOOK_SECRET"]
write_pause_seconds = 0
poll_seconds = {poll_seconds}

[fleet]
slots = {slots}
max_load_per_cpu = 1000.0
"""

PROJECT = """
[[project]]
name = "{name}"
forge = "github"
repository = "{repository}"
"""

TASK = """
[[task]]
name = "{name}"
run = {run}
"""

FIX = ["sh", "-c", "echo fixed > fixed.txt && git add fixed.txt && git commit -qm 'Fix it'"]


class Town:
    """Everything a story needs. `crash` names the point at which the next server kills itself."""

    def __init__(self, folder: Path, world: World, *, slots: int = 4, poll_seconds: int = 0, port: int = 0) -> None:
        self.folder = folder
        self.world = world
        self.home = folder / "home"
        self.home.mkdir(mode=0o700, parents=True)
        self.config = CONFIG.format(api_url=world.api_url, slots=slots, poll_seconds=poll_seconds, port=port)
        self.bot = world.user("leadsman-bot")
        self.variables: dict[str, str] = {}
        """Of the server's environment, beside the rest."""
        self.server: Server | None = None
        self.address = ""

    # ── what is there ────────────────────────────────────────────────────────────────────────────────────────────

    def repo(self, name: str = "acme/shop", *, files: Mapping[str, str] | None = None, **project: Any) -> Repository:
        """A repository in which the bot and alice may write, and a project of the bot."""
        repo = self.world.repo(name, files=dict(files or {"README.md": "hello\n"}))
        repo.allow("alice", "write").allow("leadsman-bot", "write")
        self.config += PROJECT.format(name=name.replace("/", "-"), repository=name)
        self.config += "".join(f"{key} = {json.dumps(value)}\n" for key, value in project.items())
        return repo

    def task(self, name: str, run: list[str], more: str = "") -> None:
        self.config += TASK.format(name=name, run=json.dumps(run)) + more

    def script(self, name: str, text: str) -> str:
        """A program of the operator's, for a task to run."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    # ── the server ───────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, *, crash: str = "") -> None:
        """Starts the server; with `crash` (see tests/stories/mortal.py) one that kills itself at that point."""
        config = self.folder / "leadsman.toml"
        config.write_text(self.config)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "nobody"),
            "BOT_TOKEN": self.bot.token,
            "HOOK_SECRET": self.world.secret,
            "LEADSMAN_POOL_DIR": str(self.folder / "pool"),
            "PYTHONPATH": str(REPOSITORY),
            **self.variables,
        }
        with (self.folder / "server.log").open("ab") as log:
            self.server = nursery().born([str(self.home), str(config), crash], environment, log.fileno())
        self.address = self.until("the server listens", self._address)

    def _address(self) -> str | None:
        assert self.server is not None
        if self.server.poll() is not None:
            return "gone"  # killed itself before it could say where it listens
        note = read_json(self.home / "server.json") or {}
        return str(note["address"]) if note.get("pid") == self.server.pid and note.get("address") else None

    def dies(self) -> None:
        """Waits until the server has killed itself."""
        assert self.server is not None
        assert self.server.wait(BOUND) == -signal.SIGKILL, self.log()

    def kill(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.server.wait(BOUND)

    def stop(self) -> None:
        if self.server is not None and self.server.poll() is None:
            self.server.terminate()
            assert self.server.wait(BOUND) == 0, self.log()
        self.server = None

    def close(self) -> None:
        """Ends what a failed test may leave behind: the server, and the runs' processes, by what they carry."""
        if self.server is not None and self.server.poll() is None:
            self.server.kill()
            self.server.wait(BOUND)
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    # ── what happens ─────────────────────────────────────────────────────────────────────────────────────────────

    def deliver(self, delivery: Delivery) -> Posted:
        return self.world.deliver(delivery, to=f"{self.address}/webhooks/github")

    def says(self, pull: Any, text: str, *, who: str = "alice") -> Delivery:
        """Somebody comments, and the forge tells the server."""
        delivery: Delivery = pull.comment(who, text)
        posted = self.deliver(delivery)
        assert posted.status == 202, posted
        return delivery

    # ── what can be seen ─────────────────────────────────────────────────────────────────────────────────────────

    def until(self, what: str, look: Callable[[], Seen | None]) -> Seen:
        """Looks until it is so; fails naming what was waited for and what the server logged last."""
        end = time.monotonic() + BOUND
        while time.monotonic() < end:
            found = look()
            if found is not None and found is not False:
                return found
            time.sleep(0.02)
        raise AssertionError(f"not seen within {BOUND:g} s: {what}\n{self.log()[-4000:]}\n{self.journal()[-2000:]}")

    def journal(self) -> str:
        path = self.home / "events.jsonl"
        return path.read_text() if path.exists() else ""

    def runs(self) -> list[Path]:
        folder = self.home / "runs"
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def closed(self, count: int = 1) -> list[Path] | None:
        """All runs, once there are `count` and nothing of them is left to do."""
        found = self.runs()
        return found if len(found) >= count and all((run / "closed.json").exists() for run in found) else None

    def answers(self, thread: Any) -> list[str]:
        """The bot's comments on it."""
        with self.world.lock:
            return [one.body for one in thread.comments if one.author is self.bot]

    def settled(self, thread: Any, word: str) -> str:
        """The bot's one comment, once it says `word`."""
        said = self.until(
            f"a comment with {word!r}", lambda: next((b for b in self.answers(thread) if word in b), None)
        )
        assert len(self.answers(thread)) == 1, self.answers(thread)
        return said

    def reactions(self, delivery: Delivery) -> set[str]:
        assert delivery.comment is not None
        with self.world.lock:
            return {reaction.content for reaction in delivery.comment.reactions}

    def open_runs(self) -> int:
        """How many runs are open by the index."""
        with closing(sqlite3.connect(self.home / "leadsman.db")) as connection:
            (count,) = connection.execute("select count(*) from runs where closed_at is null").fetchone()
        return int(count)

    def states(self) -> list[str]:
        """The states of the deliveries, as the store has them."""
        with closing(sqlite3.connect(self.home / "leadsman.db")) as connection:
            return [state for (state,) in connection.execute("select state from deliveries")]

    def processes(self) -> list[int]:
        """Processes of runs of this town: they carry its home in their environment."""
        found = []
        needle = f"LEADSMAN_RUN_DIR={self.home}".encode()
        for folder in Path("/proc").iterdir():
            try:
                if folder.name.isdigit() and needle in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def refs(self, repo: Repository) -> dict[str, str]:
        lines = Git(repo.git.path).run("for-each-ref", "--format=%(refname) %(objectname)").text.splitlines()
        return dict(line.split(" ", 1) for line in lines if line)

    def run_branches(self, repo: Repository) -> list[str]:
        return [ref for ref in self.refs(repo) if ref.startswith("refs/heads/leadsman/run/")]

    def assert_nothing_is_left(self, repo: Repository) -> None:
        """No claim, no worktree, no checkout, no process, no lease, no lock."""
        assert [ref for ref in self.refs(repo) if "claims" in ref] == []
        for name in ("worktrees", "checkouts"):
            assert list((self.home / name).iterdir()) == [], name
        self.until("no process of a run is left", lambda: not self.processes())
        for run in self.runs():
            assert _lock_is_free(run / "alive.lock")

    @staticmethod
    def pull_of(repo: Repository, **about: Any) -> Pull:
        return repo.pull(**{"head": "topic", "files": {"topic.txt": "x\n"}, "author": "alice"} | about)


def _lock_is_free(path: Path) -> bool:
    import fcntl

    if not path.exists():
        return True
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True

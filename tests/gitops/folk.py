"""Who takes part: people who work by hand, and bots in processes of their own."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from gitops.git import Identity
from gitops.mirror import Mirror

ROOT = Path(__file__).parents[2]
BOT = Identity("Leadsman", "leadsman@bot.example")


@dataclass(frozen=True)
class Folder:
    """A repository that somebody works in by hand, with whatever git thinks best."""

    path: Path

    def git(self, *args: str, check: bool = True, environment: Mapping[str, str] = MappingProxyType({})) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=self.path,
            check=False,
            capture_output=True,
            env={
                **os.environ,
                "GIT_AUTHOR_NAME": "Ada",
                "GIT_AUTHOR_EMAIL": "ada@example.org",
                "GIT_COMMITTER_NAME": "Ada",
                "GIT_COMMITTER_EMAIL": "ada@example.org",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                **environment,
            },
        )
        assert not check or done.returncode == 0, done.stderr.decode()
        return os.fsdecode(done.stdout).strip()

    def write(self, name: str, text: str = "text\n") -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, files: dict[str, str], message: str = "Change") -> str:
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def push(self, refspec: str, *more: str) -> None:
        self.git("push", "-q", *more, "origin", refspec)


@dataclass(frozen=True)
class Actor:
    """A bot in a process of its own (`tests/gitops/actor.py`)."""

    process: subprocess.Popen[str]

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def says(self) -> object:
        """Its next line; what it said on stderr is the failure's text if there is none."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read() if self.process.stderr else ""
        return json.loads(line)

    def kill(self) -> None:
        """SIGKILL to it alone: the git it started goes on."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def race(actors: list[Actor]) -> list[object]:
    """Let them all begin at once; what each came to."""
    assert ["ready"] * len(actors) == [actor.says() for actor in actors]
    for actor in actors:
        actor.go()
    return [actor.says() for actor in actors]


@dataclass(frozen=True)
class Stop:
    """A git that halts at the call that has `word` among its arguments, `before` or `after` it did it."""

    folder: Path
    word: str
    when: str

    def prepare(self) -> Path:
        """Write it; gives the folder that has to come first in PATH."""
        self.folder.mkdir()
        os.mkfifo(self.folder / "reached")
        os.mkfifo(self.folder / "held")
        halt = f"echo $$ >{self.folder}/reached; read -r _ <{self.folder}/held"
        real = f'{shutil.which("git")} "$@"'
        steps = f"{halt}; exec {real}" if self.when == "before" else f"{real}; code=$?; {halt}; exit $code"
        script = self.folder / "git"
        script.write_text(f'#!/bin/sh\ncase " $* " in *" {self.word} "*) {steps};; esac\nexec {real}\n')
        script.chmod(0o755)
        return self.folder

    def reached(self, actor: Actor) -> int | None:
        """Wait until it halts; its process id, which leads its session. None if the actor was through before."""
        assert actor.process.stdout is not None
        says = actor.process.stdout.fileno()
        descriptor = os.open(self.folder / "reached", os.O_RDWR)
        try:
            ready, _, _ = select.select([descriptor, says], [], [], 60)
            return int(os.read(descriptor, 32)) if descriptor in ready else None
        finally:
            os.close(descriptor)

    def go_on(self) -> None:
        (self.folder / "held").write_text("\n")


Start = Callable[..., Actor]


def start_actor(action: str, mirror: Mirror, *, stop: Stop | None = None, **spec: object) -> Actor:
    """A bot that waits for its `go()`."""
    path = os.environ["PATH"] if stop is None else f"{stop.prepare()}:{os.environ['PATH']}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.gitops.actor", action, mirror.path, mirror.remote.url, json.dumps(spec)],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Actor(process)


def kill_at(actor: Actor, stop: Stop) -> None:
    """Let `actor` begin, and kill it and its git where `stop` says."""
    assert actor.says() == "ready"
    actor.go()
    git = stop.reached(actor)
    assert git is not None, f"it never came to {stop.word}"
    actor.kill()
    os.killpg(git, signal.SIGKILL)

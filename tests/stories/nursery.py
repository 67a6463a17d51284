"""Where servers and commands are born grown up: forked from a process that has imported all of Leadsman, and no more.

Importing takes most of their start, and hundreds are started. Each is a process of its own all the same, which reads
its own configuration, opens its own store and is killed for itself. What a start from nothing is like is seen by the
tests of tests/bot.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

from tests.bot.console import Ended

ROOT = Path(__file__).parents[2]


class Server:
    """A process that was born, as `subprocess` would show it."""

    def __init__(self, told: int, what: str) -> None:
        self._told = told
        self._what = what
        self._words = b""
        self.returncode: int | None = None
        self.pid = int(self._line(60) or self._nothing())

    def _nothing(self) -> int:
        raise AssertionError(f"The nursery has died; {self._what} was not born")

    def _line(self, seconds: float) -> str:
        """The next that its midwife tells; empty where she does not within that time."""
        end = time.monotonic() + seconds
        while b"\n" not in self._words:
            if not select.select([self._told], [], [], max(0.0, end - time.monotonic()))[0]:
                return ""
            self._words += os.read(self._told, 100) or b"-9\n"
        line, _, self._words = self._words.partition(b"\n")
        return line.decode()

    def poll(self) -> int | None:
        if self.returncode is None and (line := self._line(0)):
            self.returncode = int(line)
            os.close(self._told)
        return self.returncode

    def wait(self, seconds: float) -> int:
        if self.returncode is None:
            select.select([self._told], [], [], seconds)
        if self.poll() is None:
            raise subprocess.TimeoutExpired(self._what, seconds)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Nursery:
    """The process from which servers are forked."""

    def __init__(self) -> None:
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environ = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PYTHONPATH": str(ROOT)}
        with theirs:
            argv = [sys.executable, "-m", "tests.stories.nursery", str(theirs.fileno())]
            self._process = subprocess.Popen(
                argv, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )

    def born(self, argv: Sequence[str], environ: Mapping[str, str], log: int) -> Server:
        """`python -m tests.stories.mortal ARGV` with that environment, and `log` for its output."""
        return self._fork("mortal", argv, environ, ROOT, (log, log))

    def ran(self, argv: Sequence[str], environ: Mapping[str, str], cwd: Path, *, seconds: float = 90) -> Ended:
        """`leadsman ARGV` in that folder, to its end."""
        with TemporaryFile() as out, TemporaryFile() as err:
            process = self._fork("leadsman", argv, environ, cwd, (out.fileno(), err.fileno()))
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            out.seek(0)
            err.seek(0)
            return Ended(code, out.read().decode(), err.read().decode())

    def _fork(
        self, program: str, argv: Sequence[str], environ: Mapping[str, str], cwd: Path, streams: tuple[int, int]
    ) -> Server:
        told, tells = os.pipe()
        letter = json.dumps([program, [*map(str, argv)], dict(environ), str(cwd)])
        socket.send_fds(self._door, [letter.encode()], [*streams, tells])
        os.close(tells)
        return Server(told, f"{program} {argv}")

    def close(self) -> None:
        self._door.close()
        self._process.wait()


@cache
def nursery() -> Nursery:
    """This process's own; it ends with it."""
    made = Nursery()
    atexit.register(made.close)
    return made


def leadsman(*argv: str, cwd: Path, environ: Mapping[str, str] | None = None) -> Ended:
    """As `tests.bot.console.leadsman`, without the time that a program of its own takes to start."""
    return nursery().ran(argv, {**os.environ, "LEADSMAN_HOME": str(cwd / "home"), **(environ or {})}, cwd)


def _birth(door: socket.socket) -> list[str] | None:
    """Returns in each that is born, with its arguments; None in the nursery, once nobody wants it any more."""
    while True:
        letter, handles, _, _ = socket.recv_fds(door, 1 << 20, 3)
        _collect()
        if not letter:
            return None
        program, argv, environ, cwd = json.loads(letter)
        if os.fork() == 0:  # the midwife, who waits for the one that is born, and tells
            door.close()
            pid = os.fork()
            if pid == 0:
                _settle_in(environ, cwd, *handles)
                return [program, *argv]
            *streams, tells = handles
            for stream in streams:
                os.close(stream)
            os.write(tells, b"%d\n" % pid)
            os.write(tells, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            os._exit(0)
        for handle in handles:
            os.close(handle)


def _collect() -> None:
    """Midwives who have done their work."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def _settle_in(environ: Mapping[str, str], cwd: str, out: int, err: int, tells: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)
    for handle in (out, err, tells):
        os.close(handle)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)


def _grow_up() -> None:
    """Imports what a server imports sooner or later."""
    from bot.forges import FORGES
    from bot.trackers import TRACKERS
    from tests.stories import mortal

    assert mortal.main
    for name in (*FORGES.values(), *TRACKERS.values()):
        import_module(name)
    gc.freeze()


def main() -> int:
    door = socket.socket(fileno=int(sys.argv[1]))
    _grow_up()
    argv = _birth(door)
    if argv is None:
        return 0
    from bot.cli import main as leadsman
    from tests.stories import mortal

    sys.argv = argv
    Path("/proc/self/comm").write_text("leadsman")
    return mortal.main() if argv[0] == "mortal" else leadsman()


if __name__ == "__main__":
    sys.exit(main())

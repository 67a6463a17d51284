"""Starts a server of our own as a child: for the demo, which kills it and starts it again."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Mapping
from pathlib import Path


class Child:
    """A `leadsman serve` that was started here."""

    def __init__(self, home: Path, config: Path, log: Path, environ: Mapping[str, str]) -> None:
        argv = [sys.executable, "-I", "-c", _MAIN, "--home", str(home), "--config", str(config), "serve"]
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                argv,
                dict(environ),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, output, 1),
                    (os.POSIX_SPAWN_DUP2, output, 2),
                ],
                setpgroup=0,
            )
        finally:
            os.close(output)
        self._handle = os.pidfd_open(self.pid)

    def kill(self) -> None:
        """As if the power had gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As an operator does."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        signal.pidfd_send_signal(self._handle, number)
        select.select([self._handle], [], [], 15)
        os.waitpid(self.pid, 0)
        os.close(self._handle)


_MAIN = "import sys; from bot.cli import main; sys.exit(main())"
"""What the console script does, found without looking at the working directory or PYTHONPATH."""

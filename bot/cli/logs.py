"""`leadsman logs`: a run's output."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import BinaryIO

from bot.cli.options import read
from bot.errors import UserError
from bot.liveness import is_forgotten, is_over, reading
from bot.logs import masked
from bot.masking import Masking
from bot.rundir import RunDir, find, read_json
from bot.secret import named_as_secrets
from bot.statefiles import open_plain

LONG = 4096
"""Bytes of a line that is not waited for any longer."""

USAGE = """Usage: leadsman logs ID [--store DIR] [-f]

Prints what the run has written; what looks like a secret, and the values of its secret variables, as asterisks. With -f
it goes on, line by line, until the run has ended.

  leadsman logs 20260105-0900 -f
"""


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, flags=("-f", "--follow"), words=(1, 1))
    if options is None:
        return 0
    run = find(options.store, options.words[0])
    out = sys.stdout.buffer
    if options.flags:
        follow(run, out)
        return 0
    log = open_plain(run.worker_log)
    if log is None:
        raise UserError(f"Run {run.run_id} has written nothing yet. `leadsman status {run.run_id}` says why.")
    with os.fdopen(log, "rb"):
        grows = not is_over(reading(run.path))
        _copy(log, 0, os.fstat(log).st_size, out, _masking(run), grows=grows)
    return 0


def _masking(run: RunDir) -> Masking:
    """For a log that may not be put right yet (`bot.logs`). The server's own secrets are none of its variables."""
    environ = (read_json(run.spec) or {}).get("env")
    return Masking(named_as_secrets(environ if isinstance(environ, dict) else {}))


def follow(run: RunDir, out: BinaryIO) -> None:
    """Copies the log to `out` as it grows, until the run has ended: all of it then, whatever came last.

    Until then whole lines of it: half a secret is not known for one.
    """
    from bot.cli.watching import Watch

    log, position, masking = None, 0, _masking(run)
    with Watch(run) as watch, ExitStack() as opened:
        while True:
            status = reading(run.path)
            # Asked first: what it wrote before its end is copied below.
            over = is_over(status) or is_forgotten(run.path, status)
            if log is None and (log := open_plain(run.worker_log)) is not None:
                # Kept: once the run has ended, the server may put another file there, without secrets and shorter.
                opened.callback(os.close, log)
            if log is not None:
                size = os.fstat(log).st_size
                stop = size if over else _last_end(log, position, size)
                position = _copy(log, position, stop, out, masking, grows=not over)
            if over:
                return
            watch.pause()


def _copy(log: int, start: int, stop: int, out: BinaryIO, masking: Masking, *, grows: bool) -> int:
    for piece in masked(log, start, stop, masking, grows=grows):
        out.write(piece)
        start += len(piece)
    out.flush()
    return start


def _last_end(log: int, position: int, size: int) -> int:
    """Where the last whole line ends; of a line that goes on for long, the place where it is now."""
    begin = max(position, size - LONG)
    raw = os.pread(log, size - begin, begin)
    ended = max(raw.rfind(b"\n"), raw.rfind(b"\r")) + 1
    return begin + ended if ended or begin == position else size

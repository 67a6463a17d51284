"""`leadsman logs`: a run's output."""

from __future__ import annotations

import os
import shutil
import sys
from typing import BinaryIO

from bot.cli.options import read
from bot.errors import UserError
from bot.rundir import RunDir, find
from bot.statefiles import open_plain

USAGE = """Usage: leadsman logs ID [--store DIR] [-f]

Prints what the run has written. With -f it goes on until the run has ended.

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
    with os.fdopen(log, "rb") as file:
        shutil.copyfileobj(file, out)
    return 0


def follow(run: RunDir, out: BinaryIO) -> None:
    """Copies the log to `out` as it grows, until the run has ended: all of it then, whatever came last."""
    from bot.cli.watching import Watch
    from bot.liveness import is_over, reading

    position = 0
    with Watch(run) as watch:
        while True:
            over = is_over(reading(run.path))  # asked first: what it wrote before its end is copied below
            position = _copy(run, position, out)
            if over:
                return
            watch.pause()


def _copy(run: RunDir, position: int, out: BinaryIO) -> int:
    log = open_plain(run.worker_log)
    if log is None:
        return position
    with os.fdopen(log, "rb") as file:
        file.seek(position)
        shutil.copyfileobj(file, out)
        out.flush()
        return file.tell()

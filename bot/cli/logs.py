"""`leadsman logs`: a run's output."""

from __future__ import annotations

import os
import shutil
import sys
from typing import BinaryIO

from bot.cli.options import read
from bot.errors import UserError
from bot.rundir import RunDir, find

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
    try:
        with run.worker_log.open("rb") as log:
            shutil.copyfileobj(log, out)
    except FileNotFoundError:
        raise UserError(f"Run {run.run_id} has written nothing yet. `leadsman status {run.run_id}` says why.") from None
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
    try:
        log = os.open(run.worker_log, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return position
    with os.fdopen(log, "rb") as file:
        file.seek(position)
        shutil.copyfileobj(file, out)
        out.flush()
        return file.tell()

"""What a command that failed says: a person's mistake in its own words, ours briefly, with the whole in a file."""

from __future__ import annotations

import errno
import os
import sys
import time
import traceback
from pathlib import Path

from bot import home
from bot.cli.options import printable
from bot.cli.words import Words
from bot.errors import Forbidden, Gone, Unavailable, UserError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
"""A disk that takes no more, be it the home's or the one that our output goes to."""


def tell(problem: Exception, words: Words) -> int:
    """Writes it to stderr and answers the exit code."""
    if isinstance(problem, UserError):
        print(problem.text, file=sys.stderr)
        return problem.code
    if words.verbose:
        traceback.print_exception(problem)
    if isinstance(problem, Unavailable | Gone | Forbidden):
        # The outside failed, not we: its own sentence is all there is to know.
        print(f"{problem}. Try again later; `leadsman doctor` looks for the cause.".replace("..", "."), file=sys.stderr)
        return 1
    if isinstance(problem, OSError) and problem.errno in _NO_ROOM:
        where = f" ({problem.filename})" if problem.filename else ""
        print(
            f"What was to be written could not be: {problem.strerror}{where}. Make room, then try again.",
            file=sys.stderr,
        )
        return 1
    if isinstance(problem, PermissionError) and problem.filename:
        whose = "Call it as the user whom that belongs to, or give this one the right"
        print(f"{printable(os.fsdecode(problem.filename))}: {problem.strerror}. {whose}.", file=sys.stderr)
        return 1
    if isinstance(problem, FileNotFoundError) and _is_nowhere():
        print("The folder you are in does not exist any more. Go to another one, then try again.", file=sys.stderr)
        return 1
    print(f"Something went wrong inside Leadsman, and that is our mistake. {_kept(problem, words)}", file=sys.stderr)
    return 1


def _is_nowhere() -> bool:
    """Was the folder removed that we were started in? Every relative name fails there."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _kept(problem: Exception, words: Words) -> str:
    """Keeps the traceback in the home and answers where."""
    text = "".join(traceback.format_exception(problem))
    name = f"failure-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}.log"
    try:
        folder = home.make(home.resolve(words.home, os.environ)) / "logs"
        folder.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as log:
            log.write(f"leadsman {words.verb or ''}\n{text}")
    except (OSError, UserError):
        return f"The home could not keep the details, so here they are:\n{text}"
    return f"The details are in {folder / name}; `-v` shows them here."

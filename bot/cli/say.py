"""`leadsman say`: a word of a run about itself, for its status log."""

from __future__ import annotations

import os
import time
from pathlib import Path

from bot.cli.options import read
from bot.errors import UsageError, UserError
from bot.words import VERBS, Words, spoken

USAGE = f"""Usage: leadsman say VERB [TEXT...]

Inside a run: tells how it goes, as a line in $LEADSMAN_STATUS_LOG.

VERB is one of {", ".join(VERBS)}, or round with n or n/m for TEXT.
Whatever stands behind VERB is TEXT; a `--` between them is none of it.

  leadsman say working "the tests of the parser"
  leadsman say needs-decision "drop the old table, or keep it?"
  leadsman say round 2/5
"""


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, words=(1, 1 << 20), text=True)
    if options is None:
        return 0
    verb, *text = options.words
    text = text[1:] if text[:1] == ["--"] else text
    if verb not in (*VERBS, "round"):
        from bot.nearest import did_you_mean

        known = ", ".join((*VERBS, "round"))
        raise UsageError(f"There is no verb {verb}{did_you_mean(verb, (*VERBS, 'round')) or '.'} There are {known}.")
    if verb == "round" and not Words().hear(f"round: {' '.join(text)}"):
        raise UsageError("The round is a number, or two: `leadsman say round 2/5`.")
    log = os.environ.get("LEADSMAN_STATUS_LOG")
    if not log:
        raise UsageError("LEADSMAN_STATUS_LOG is not set: `leadsman say` works inside a run, which has it.")
    line = spoken(verb, " ".join(text), time.time()).encode("utf-8", "surrogateescape")
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)  # one write: two that speak at once don't mix their lines
        finally:
            os.close(descriptor)
    except OSError as problem:
        raise UserError(
            f"The word was not kept: {log}, which LEADSMAN_STATUS_LOG names: {problem.strerror}."
        ) from problem
    if folder := os.environ.get("LEADSMAN_RUN_DIR"):
        from bot.liveness import say_something_happened

        say_something_happened(Path(folder))
    return 0

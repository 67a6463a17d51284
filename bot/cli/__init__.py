"""`leadsman`: finds the verb, hands it the rest, and turns what comes back into an exit code.

Nothing heavy is imported here: a command costs only what it needs itself.
"""

from __future__ import annotations

import io
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.cli.commands import Command
    from bot.cli.words import Words

EXIT_OK, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_PIPE = 0, 2, 130, 141


def main() -> int:
    """What the console script, `bot.cli.entry`, comes to. Answers the exit code."""
    if sys.argv[1:3] == ["pass", "run"] and sys.argv[3:4] not in (["-h"], ["--help"]):
        # It stands before commands that take milliseconds themselves: even finding the verb would cost as much again.
        from bot.cli import pass_

        return pass_.main(sys.argv[2:])
    _open_what_is_closed()
    _write_what_can_be_written()
    _wait_for_our_own_children()
    try:
        return _guarded(sys.argv[1:])
    except BrokenPipeError:
        # Who read our output has gone; Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _open_what_is_closed() -> None:
    """A caller may have closed a standard stream (`>&-`): what we open next would take its number, and our words."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def _wait_for_our_own_children() -> None:
    """A caller may ignore SIGCHLD, and so would we: the kernel then takes a child away before we know how it ended."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _write_what_can_be_written() -> None:
    """A letter that the output's encoding has not is written out, and no reason to end."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _guarded(argv: Sequence[str]) -> int:
    from bot.cli.words import Words, read

    words = Words()
    try:
        words = read(argv)
        code = _run(words)
        sys.stdout.flush()
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as problem:  # noqa: BLE001 - the border: a person's mistake is told, ours is kept for the log
        from bot.cli import failures

        code = failures.tell(problem, words)
    return code


def _run(words: Words) -> int:
    if words.version:
        from importlib.metadata import version

        print(f"leadsman {version('leadsman')}")
        return EXIT_OK
    if words.verb is None:
        from bot.cli import overview

        (sys.stdout if words.help else sys.stderr).write(overview.page())
        return EXIT_OK if words.help else EXIT_USAGE
    from bot.cli.commands import COMMANDS

    command = COMMANDS.get(words.verb)
    if command is None:
        from bot.errors import UsageError
        from bot.nearest import did_you_mean

        meant = did_you_mean(words.verb, COMMANDS) or "."
        raise UsageError(f'There is no command "{words.verb}"{meant} `leadsman --help` lists them.')
    if words.home is not None:
        from pathlib import Path

        # Where a child of ours, or a module that knows only the environment, looks for the home, too.
        os.environ["LEADSMAN_HOME"] = str(Path(words.home).absolute())
    return _dispatch(command, words)


def _dispatch(command: Command, words: Words) -> int:
    from importlib import import_module

    module = import_module(command.module)
    if command.quick:
        given = ["--config", words.config] if command.configured and words.config else []
        return int(module.main([*given, *words.rest]))
    from bot.cli import clicked

    return clicked.run(module.command, words)

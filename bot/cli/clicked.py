"""Runs a click command as one verb of ours, and what such a command gets from before the verb."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from bot import home
from bot.cli.words import Words
from bot.config import Config, load


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a command works: given to it by `@click.pass_obj`."""

    home: Path
    config_file: Path | None
    """As given with --config; None = the usual places."""
    verbose: bool

    def config(self) -> Config:
        """The configuration. Raises `UserError` (2) for a wrong one."""
        return load(self.config_file, os.environ, home=self.home)


json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")
"""The `--json` of every command that has something to tell; stands before the verb as well."""


def examples(*calls: str, note: str = "") -> str:
    """The end of a command's help: calls as a person would copy them, a line each, and what else there is to know."""
    title = "Example:" if len(calls) == 1 else "Examples:"
    as_it_is = "\b"  # click breaks no line of a paragraph that begins so
    return "\n".join([as_it_is, title, *(f"  {call}" for call in calls), "", note])


def run(command: click.Command, words: Words) -> int:
    """Answers the exit code: what the command returns, 0 for nothing, 2 for words that are off."""
    setting = Setting(
        home=home.resolve(words.home, os.environ),
        config_file=Path(words.config) if words.config else None,
        verbose=words.verbose,
    )
    args = _json_inside(command, list(words.rest))
    try:
        # Not `command.main`: a reader that has gone is 1 there, a Ctrl-C an empty line.
        with command.make_context(
            f"leadsman {words.verb}", args, obj=setting, help_option_names=["-h", "--help"]
        ) as context:
            code = command.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return 130
    except click.ClickException as problem:
        problem.show(sys.stderr)
        return problem.exit_code
    return code if isinstance(code, int) else 0


def _json_inside(command: click.Command, args: list[str]) -> list[str]:
    """A `--json` from before the verb goes on to the command of a group that takes none itself."""
    takes_json = any("--json" in parameter.opts for parameter in command.params)
    if isinstance(command, click.Group) and args[:1] == ["--json"] and not takes_json:
        return [*args[1:2], "--json", *args[2:]]
    return args

"""Every command there is: its module, and one line about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Command(NamedTuple):
    """A verb. A quick one has `main(argv) -> int` and no heavy import; the others have `command`, a click command."""

    module: str
    about: str
    quick: bool = False
    configured: bool = False
    """A quick one that may need the configuration: it gets `--config FILE` where that was given."""


GROUPS: Mapping[str, Mapping[str, Command]] = {
    "Server": {
        "serve": Command("bot.cli.serve", "the server: door, dispatcher, pages"),
        "demo": Command("bot.cli.demo", "a whole comment-to-commit road on this machine, without any account"),
        "doctor": Command("bot.cli.doctor", "looks for what is not in order, and says what to do"),
        "reload": Command("bot.cli.reload", "has the server read its configuration anew", quick=True),
        "pause": Command("bot.cli.pause", "no new runs until `unpause`"),
        "unpause": Command("bot.cli.unpause", "new runs start again"),
        "lock": Command("bot.cli.lock", "does a server hold the home, and which", quick=True),
        "deliveries": Command("bot.cli.deliveries", "what the forges delivered: list, show, replay"),
    },
    "Runs": {
        "event": Command("bot.cli.event", "works one event from a file, without a server: for a CI step"),
        "handoff": Command("bot.cli.handoff", "starts a command that outlives whatever started it", quick=True),
        "runs": Command("bot.cli.runs", "the runs there are, the newest first", quick=True, configured=True),
        "status": Command("bot.cli.status", "the state of a run; without one, of the fleet", quick=True),
        "verify": Command("bot.cli.verify", "checks a report again: signature, commit, figures, logs"),
        "report": Command("bot.cli.report", "a run's report: for people, for programs, as a page"),
        "risk": Command("bot.cli.risk", "the risk tier of a change, by the rules of its base"),
        "board": Command("bot.cli.board", "publishes what runs, waits and came of it, as files of the repository"),
        "key": Command("bot.cli.key", "the public key that reports are signed with"),
        "show": Command("bot.cli.show", "what a run did: report, changes", quick=True),
        "logs": Command("bot.cli.logs", "a run's output, -f to follow it", quick=True),
        "attach": Command("bot.cli.attach", "a run's live terminal", quick=True),
        "wait": Command("bot.cli.wait", "waits for a run's end", quick=True),
        "cancel": Command("bot.cli.cancel", "ends a run and everything it started", quick=True),
        "resume": Command("bot.cli.resume", "starts an ended run again, in its own worktree", quick=True),
        "retry": Command("bot.cli.retry", "starts an ended run again, from its beginning", quick=True, configured=True),
        "say": Command("bot.cli.say", "inside a run: tells how it goes", quick=True),
    },
    "Tickets": {
        "scan": Command("bot.cli.scan", "takes claimable tickets: once, or on and on without a door"),
        "claims": Command(
            "bot.cli.claims",
            "what is claimed, what became of claims, and how one is given back",
            quick=True,
            configured=True,
        ),
    },
    "This host": {
        "pass": Command("bot.cli.pass_", "CPU passes: run a command while holding some", quick=True),
        "load": Command("bot.cli.load", "the host's load: record, watch, report", quick=True, configured=True),
    },
    "Local forge": {
        "local": Command("bot.cli.local", "repositories, pull requests and issues without any account"),
        "comment": Command("bot.cli.comment", "writes a comment, as a person would"),
    },
    "Configuration": {
        "config": Command("bot.cli.config", "checks and explains leadsman.toml"),
        "budget": Command("bot.cli.budget", "turns and seconds of each difficulty"),
        "completion": Command("bot.cli.completion", "completion for bash, zsh or fish", quick=True),
    },
}

COMMANDS: Mapping[str, Command] = {name: command for group in GROUPS.values() for name, command in group.items()}

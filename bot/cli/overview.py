"""`leadsman --help`: every command, in groups, with examples."""

from __future__ import annotations

from bot.cli.commands import COMMANDS, GROUPS

EXAMPLES = (
    ("leadsman demo", "see the whole road, on this machine alone"),
    ("leadsman config check", "is leadsman.toml right"),
    ("leadsman serve", "answer comments, run tasks, publish"),
    ("leadsman handoff -- make test", "a run that outlives this terminal"),
    ("leadsman logs -f 2026", "follow it; ids may be shortened"),
)

OPTIONS = (
    ("--home DIR", "where everything is kept; default: $LEADSMAN_HOME, else ~/.local/state/leadsman"),
    ("--config FILE", "default: ./leadsman.toml, else ~/.config/leadsman/leadsman.toml"),
    ("--json", "for programs, where a command has something to tell"),
    ("-v, --verbose", "with a failure of Leadsman's own, the traceback"),
    ("--version", ""),
    ("-h, --help", "behind a command: about that command"),
)


def page() -> str:
    """The whole text, ending in a newline."""
    width = max(map(len, COMMANDS))
    lines = ["Usage: leadsman [options] COMMAND [options]", ""]
    lines += [
        "A slash command becomes an isolated worktree run, its commits a publish branch, its report evidence.",
        "",
    ]
    for group, commands in GROUPS.items():
        lines += [f"{group}:", *(f"  {name:<{width}}  {command.about}" for name, command in commands.items()), ""]
    lines += ["Options, before or after the command:", *_columns(OPTIONS), ""]
    lines += ["Examples:", *_columns(EXAMPLES)]
    return "\n".join(lines) + "\n"


def _columns(rows: tuple[tuple[str, str], ...]) -> list[str]:
    width = max(len(left) for left, _ in rows)
    return [f"  {left:<{width}}  {right}".rstrip() for left, right in rows]

"""`leadsman completion bash|zsh|fish`: prints a script that the shell reads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from bot.cli.commands import COMMANDS
from bot.errors import UsageError

USAGE = """Usage: leadsman completion bash|zsh|fish

Prints a script that completes commands, their words, and the ids of runs.

  source <(leadsman completion bash)
  leadsman completion zsh > ~/.zfunc/_leadsman
  leadsman completion fish > ~/.config/fish/completions/leadsman.fish
"""

GLOBAL = ("--home", "--config", "--json", "--verbose", "--version", "--help")
RUNS = '"${LEADSMAN_HOME:-$HOME/.local/state/leadsman}/runs"'
TAKES_RUN = ("status", "show", "logs", "attach", "wait", "cancel", "resume", "retry")
"""Commands that are about a run: its id is completed from the folder of runs."""


def main(argv: list[str]) -> int:
    if any(word in ("-h", "--help") for word in argv):
        sys.stdout.write(USAGE)
        return 0
    if len(argv) != 1 or argv[0] not in SHELLS:
        raise UsageError(f"Name one shell: `leadsman completion {'|'.join(SHELLS)}`.")
    sys.stdout.write(SHELLS[argv[0]](_words()))
    return 0


def _words() -> dict[str, tuple[str, ...]]:
    """command -> what may stand behind it."""
    known = {name: _inside(command.module) for name, command in COMMANDS.items() if not command.quick}
    return {
        **known,
        "completion": tuple(SHELLS),
        "claims": ("log", "release"),
        "lock": ("status",),
        "pass": ("run", "status", "size"),
        "load": ("record", "watch", "report"),
    }


def _inside(module: str) -> tuple[str, ...]:
    from click import Command, Group

    command: Command = import_module(module).command
    options = tuple(option for parameter in command.params for option in parameter.opts if option.startswith("--"))
    return (*sorted(command.commands), *options) if isinstance(command, Group) else options


def _bash(words: Mapping[str, tuple[str, ...]]) -> str:
    cases = "\n".join(f'        {name}) words="{" ".join(inside)}" ;;' for name, inside in words.items() if inside)
    return f"""_leadsman() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" verb="" words="" place
    for ((place = 1; place < COMP_CWORD; place++)); do
        case "${{COMP_WORDS[place]}}" in
        --home | --config) ((place++)) ;;
        -*) ;;
        *) verb="${{COMP_WORDS[place]}}" && break ;;
        esac
    done
    case "$verb" in
        "") words="{" ".join(COMMANDS)} {" ".join(GLOBAL)}" ;;
{cases}
        {"|".join(TAKES_RUN)}) words="$(command ls {RUNS} 2>/dev/null)" ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _leadsman leadsman
"""


def _zsh(words: Mapping[str, tuple[str, ...]]) -> str:
    about = "\n".join(f"        {_quoted(f'{name}:{command.about}')}" for name, command in COMMANDS.items())
    cases = "\n".join(f"        {name}) compadd -- {' '.join(inside)} ;;" for name, inside in words.items() if inside)
    return f"""#compdef leadsman
_leadsman() {{
    local -a verbs
    verbs=(
{about}
    )
    if ((CURRENT == 2)); then
        _describe command verbs
        compadd -- {" ".join(GLOBAL)}
        return
    fi
    case "$words[2]" in
{cases}
        {"|".join(TAKES_RUN)}) compadd -- $(command ls {RUNS} 2>/dev/null) ;;
        *) _files ;;
    esac
}}
compdef _leadsman leadsman
"""


def _fish(words: Mapping[str, tuple[str, ...]]) -> str:
    lines = [
        f"complete -c leadsman -f -n __fish_use_subcommand -a {name} -d {_quoted(command.about)}"
        for name, command in COMMANDS.items()
    ]
    lines += [
        f"complete -c leadsman -n '__fish_seen_subcommand_from {name}' -a '{' '.join(inside)}'"
        for name, inside in words.items()
        if inside
    ]
    home = "(set -q LEADSMAN_HOME; and echo $LEADSMAN_HOME; or echo $HOME/.local/state/leadsman)"
    lines.append(
        f"complete -c leadsman -f -n '__fish_seen_subcommand_from {' '.join(TAKES_RUN)}' "
        f"-a '(command ls {home}/runs 2>/dev/null)'"
    )
    lines += [f"complete -c leadsman -l {option.removeprefix('--')}" for option in GLOBAL]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS: Mapping[str, Callable[[Mapping[str, tuple[str, ...]]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}

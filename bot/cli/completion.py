"""`leadsman completion bash|zsh|fish`: prints a script that the shell reads."""

from __future__ import annotations

import re
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
VALUED = "--home | --config | --store"
"""What takes a value before a command, as a pattern of the shells."""

OPTION = re.compile(r"(?:\[|\| ?|^ +)(--[a-z][a-z-]+)", re.MULTILINE)
"""One as a help names it, in brackets or at the beginning of a line; those of examples are others'."""

TAKES_RUN = ("status", "show", "report", "logs", "attach", "wait", "cancel", "resume", "retry")
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
    known = {
        name: _named(command.module) if command.quick else _inside(command.module) for name, command in COMMANDS.items()
    }
    first = {
        "completion": tuple(SHELLS),
        "claims": ("log", "release"),
        "lock": ("status",),
        "pass": ("run", "status", "size"),
        "load": ("record", "watch", "report"),
    }
    return {name: (*first.get(name, ()), *words) for name, words in known.items()}


def _inside(module: str) -> tuple[str, ...]:
    from click import Command, Group

    command: Command = import_module(module).command
    options = tuple(option for parameter in command.params for option in parameter.opts if option.startswith("--"))
    within = command.commands if isinstance(command, Group) else {}
    return (*sorted(name for name, one in within.items() if not one.hidden), *options)


def _named(module: str) -> tuple[str, ...]:
    """The options of a quick command, which are written in its help alone."""
    return tuple(dict.fromkeys(OPTION.findall(import_module(module).USAGE)))


def _cases(words: Mapping[str, tuple[str, ...]], line: Callable[[str, str], str]) -> str:
    """`name) ... ;;` for each command that something may stand behind."""
    runs = f"$(command ls {RUNS} 2>/dev/null)"
    behind = {name: " ".join([*inside, *([runs] if name in TAKES_RUN else ())]) for name, inside in words.items()}
    return "\n".join(f"        {line(name, text)} ;;" for name, text in behind.items() if text)


def _bash(words: Mapping[str, tuple[str, ...]]) -> str:
    cases = _cases(words, lambda name, text: f'{name}) words="{text}"')
    return f"""_leadsman() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" verb="" words="" place
    for ((place = 1; place < COMP_CWORD; place++)); do
        case "${{COMP_WORDS[place]}}" in
        {VALUED}) ((place++)); [[ ${{COMP_WORDS[place]}} == = ]] && ((place++)) ;;
        -*) ;;
        *) verb="${{COMP_WORDS[place]}}" && break ;;
        esac
    done
    ((place > COMP_CWORD)) && return
    case "$verb" in
        "") words="{" ".join(COMMANDS)} {" ".join(GLOBAL)}" ;;
{cases}
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _leadsman leadsman
"""


def _zsh(words: Mapping[str, tuple[str, ...]]) -> str:
    about = "\n".join(f"        {_quoted(f'{name}:{command.about}')}" for name, command in COMMANDS.items())
    cases = _cases(words, lambda name, text: f"{name}) compadd -- {text}")
    return f"""#compdef leadsman
_leadsman() {{
    local -a verbs
    local verb="" place
    verbs=(
{about}
    )
    for ((place = 2; place < CURRENT; place++)); do
        case "$words[place]" in
        {VALUED}) ((place++)) ;;
        -*) ;;
        *) verb="$words[place]"; break ;;
        esac
    done
    ((place > CURRENT)) && {{ _files; return; }}
    case "$verb" in
        "")
            _describe command verbs
            compadd -- {" ".join(GLOBAL)}
            ;;
{cases}
        *) _files ;;
    esac
}}
# A file in $fpath is read when it is first needed: then it is to complete, too.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _leadsman "$@"; else compdef _leadsman leadsman; fi
"""


def _fish(words: Mapping[str, tuple[str, ...]]) -> str:
    verb = f"""function __leadsman_verb
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case {VALUED.replace(" |", "")}
                set -e words[1]
            case '-*'
            case '*'
                echo $words[1]
                return 0
        end
        set -e words[1]
    end
    return 1
end"""
    lines = [
        f"complete -c leadsman -f -n 'not __leadsman_verb >/dev/null' -a {name} -d {_quoted(command.about)}"
        for name, command in COMMANDS.items()
    ]
    lines += [
        f"complete -c leadsman -n 'contains -- (__leadsman_verb) {name}' -a '{' '.join(inside)}'"
        for name, inside in words.items()
        if inside
    ]
    home = "(set -q LEADSMAN_HOME; and echo $LEADSMAN_HOME; or echo $HOME/.local/state/leadsman)"
    lines.append(
        f"complete -c leadsman -f -n 'contains -- (__leadsman_verb) {' '.join(TAKES_RUN)}' "
        f"-a '(command ls {home}/runs 2>/dev/null)'"
    )
    lines += [
        f"complete -c leadsman -l {option.removeprefix('--')}{' -r' if option in VALUED.split(' | ') else ''}"
        for option in GLOBAL
    ]
    return "\n".join([verb, *lines]) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS: Mapping[str, Callable[[Mapping[str, tuple[str, ...]]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}

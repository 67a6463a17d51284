"""Completion, as the shells themselves read it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bot.cli.commands import COMMANDS
from bot.cli.completion import GLOBAL
from tests.bot.console import leadsman


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        (folder / shell).write_text(leadsman("completion", shell, cwd=folder).out)
    (folder / "home/runs/20260105-090000-abcdef").mkdir(parents=True)
    return folder


def bash(scripts: Path, *words: str) -> set[str]:
    """What bash offers for the last of `words`."""
    line = " ".join(f"'{word}'" for word in words)
    script = (
        f'source "$1"; LEADSMAN_HOME="$2"; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; '
        '_leadsman; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script, "-", scripts / "bash", scripts / "home"], capture_output=True, text=True, check=True
    )
    assert "" == done.stderr
    return set(done.stdout.split())


def test_bash_completes_commands_their_words_and_runs(scripts: Path) -> None:
    assert set(COMMANDS) < bash(scripts, "leadsman", "")
    assert {"config", "comment", "completion"} == bash(scripts, "leadsman", "co")
    assert {"check", "explain", "schema"} <= bash(scripts, "leadsman", "config", "")
    assert {"config"} == bash(scripts, "leadsman", "--home", "x", "--config", "y", "conf")
    assert {"--json"} == bash(scripts, "leadsman", "-v", "budget", "--j")
    assert {"config"} == bash(scripts, "leadsman", "--home", "=", "x", "conf")  # as bash takes --home=x apart
    assert set() == bash(scripts, "leadsman", "--config", "conf")  # a file is wanted: readline's own
    assert {"20260105-090000-abcdef"} == bash(scripts, "leadsman", "logs", "2026")
    assert {"--timeout"} == bash(scripts, "leadsman", "wait", "--t")
    assert {"--store", "--driver", "--wait", "--timeout", "--adopt", "--json"} == bash(
        scripts, "leadsman", "handoff", ""
    )
    assert set() == bash(scripts, "leadsman", "xyzzy", "")


@pytest.mark.needs("zsh")
def test_zsh_takes_its_script_and_knows_every_command(scripts: Path) -> None:
    (scripts / "_leadsman").write_text((scripts / "zsh").read_text())
    stubs = "compdef() { :; }; _describe() { print -l ${(P)2%%:*}; }; compadd() { shift; print -l -- $@; }; "
    ask = "CURRENT=$#words; _leadsman; "
    sourced = f'source "$1"; words=(leadsman ""); {ask}'
    # The first time that it is needed, and with options before the command.
    needed = f'fpath=("$2"); autoload -Uz _leadsman; words=(leadsman --home x -v config ""); {ask}'
    for script, expected in ((sourced, {*COMMANDS, *GLOBAL}), (needed, {"check", "explain", "schema"})):
        done = subprocess.run(
            ["zsh", "-f", "-c", f"{stubs}{script}", "-", scripts / "zsh", scripts],
            capture_output=True,
            text=True,
            check=True,
        )
        assert ("", expected) == (done.stderr, set(done.stdout.split()))


@pytest.mark.needs("fish")
def test_fish_completes_commands_and_their_words(scripts: Path) -> None:
    lines = ("leadsman ", "leadsman -v --home x config ", "leadsman logs 2026")
    ask = "; ".join(["source $argv[1]", *(f"complete -C '{line}'" for line in lines)])
    done = subprocess.run(
        ["fish", "--no-config", "-c", ask, scripts / "fish"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(scripts), "LEADSMAN_HOME": str(scripts / "home")},
        capture_output=True,
        text=True,
        check=True,
    )
    offered = {line.split("\t")[0] for line in done.stdout.splitlines()}
    assert {*COMMANDS, "check", "explain", "schema", "20260105-090000-abcdef"} <= offered


def test_another_shell_is_refused(scripts: Path) -> None:
    assert (2, "", "Name one shell: `leadsman completion bash|zsh|fish`.\n") == leadsman(
        "completion", "tcsh", cwd=scripts
    )

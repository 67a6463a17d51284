"""Tables: ruled for a person at a terminal, plain in a pipe."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from bot.cli.table import plain
from tests.bot.console import SCRIPT, leadsman


def at_a_terminal(*argv: str, cwd: Path) -> str:
    """What a terminal of 100 columns gets to see."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "LEADSMAN_HOME": str(cwd / "home"), "TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen([SCRIPT, *argv], cwd=cwd, env=environ, stdout=theirs, stdin=subprocess.DEVNULL) as command:
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 65536):
                seen += part
        except OSError:  # Linux ends a terminal that nobody writes to any more with EIO
            pass
        os.close(ours)
    assert 0 == command.returncode
    return seen.decode()


def test_a_terminal_gets_rules_and_colour(tmp_path: Path) -> None:
    seen = at_a_terminal("budget", cwd=tmp_path)
    assert "\x1b[1m" in seen
    assert "\u2500\u2500" in seen
    assert "diploma" in seen


def test_a_pipe_gets_plain_columns(tmp_path: Path) -> None:
    out = leadsman("budget", cwd=tmp_path).out
    assert out.isascii()
    assert "\x1b" not in out


def test_a_letter_that_the_output_has_not_is_written_out(tmp_path: Path) -> None:
    (tmp_path / "leadsman.toml").write_text('[[task]]\nname = "caf\u00e9"\nrun = ["x"]\nhelp = "\u2026"\n')
    seen = leadsman("config", "explain", cwd=tmp_path, environ={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})
    assert 0 == seen.code, seen
    assert "\\u2026" in seen.out


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a  b", []),
        ("a  b\nx  [red]y[/red]", [("x", "[red]y[/red]")]),
        ("a     b\nlong", [("long", "")]),
    ],
)
def test_plain_columns_are_as_wide_as_their_widest_cell(text: str, rows: list[tuple[str, str]]) -> None:
    assert text == plain(("a", "b"), rows)

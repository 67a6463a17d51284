"""Tables: ruled for a person at a terminal, plain in a pipe."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli.table import plain, show
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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [20, 60, 80, 100, 200])
def test_no_terminal_is_too_narrow_for_the_id_of_a_run(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "20260105-090000-abcdef", "local:demo/abacus#1", "2026-01-05T09:00:00.000Z", "host_overloaded:"
    run, on, at, why = words
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", seen := Terminal())
    show(("RUN", "FOR", "SINCE", "WHY"), [(run, on, at, f"{why} the load is 9.9 on 2 CPUs"), (run, on, at, "")])
    text = re.sub(r"\x1b\[[0-9;]*m", "", seen.getvalue())
    assert [2, 2, 2, 1] == [text.count(word) for word in words]
    assert "\u2500" not in text or max(map(len, text.splitlines())) <= columns


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

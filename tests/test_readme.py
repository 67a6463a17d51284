"""What the README shows works: its configuration is taken, its commands exist, its files are there.

A TOML example is the server's file, unless its first line says `# .leadsman.toml`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli.commands import COMMANDS
from bot.config import load, repository_file

ROOT = Path(__file__).parents[1]
FLAGS = re.MULTILINE | re.DOTALL
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```", README, FLAGS)
SHELL = "\n".join(text for language, text in FENCES if language in ("sh", "bash", "shell", "console"))
PROSE = re.sub(r"^```.*?^```", "", README, flags=FLAGS)


def code() -> str:
    """What a reader would type: the shell blocks, and the code spans of the text."""
    return "\n".join([SHELL, *re.findall(r"`([^`\n]+)`", PROSE)])


def examples(language: str) -> list[str]:
    return [text for found, text in FENCES if found == language]


def test_there_is_a_configuration_to_begin_with() -> None:
    assert examples("toml")


@pytest.mark.parametrize("text", examples("toml"))
def test_every_configuration_it_shows_is_taken(text: str, tmp_path: Path) -> None:
    file = tmp_path / "leadsman.toml"
    if text.startswith("# .leadsman.toml"):
        file.touch()
        assert () == repository_file(text.encode(), "README.md", load(file, {}, home=tmp_path)).warnings
        return
    file.write_text(text)
    file.chmod(0o600)
    assert load(file, {}, home=tmp_path).projects


def test_the_forge_without_an_account_works_as_it_is_shown(tmp_path: Path) -> None:
    config, script = re.findall(r"^## Without any account$.*?```toml\n(.*?)```.*?```sh\n(.*?)```", README, FLAGS)[0]
    (tmp_path / "leadsman.toml").write_text(f'{config}\n[server]\nlisten = "127.0.0.1:0"\n')
    source = tmp_path / "src/abacus"
    source.mkdir(parents=True)
    (source / "Makefile").write_text("test:\n\techo tested\n")
    for argv in (
        ["init", "-qb", "main"],
        ["add", "."],
        ["commit", "-qm", "First"],
        ["checkout", "-qb", "topic"],
        ["commit", "-qm", "More", "--allow-empty"],
        ["checkout", "-q", "main"],
    ):
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b", *argv], cwd=source, check=True)
    environment = {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LEADSMAN_POOL_DIR": str(tmp_path / "pool"),
    }
    ended = subprocess.run(
        ["bash", "-ec", f"trap 'kill %1' EXIT\n{script}"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert 0 == ended.returncode, ended
    assert "| the task's command | `make test` | exit 0 |" in ended.stdout


def test_every_command_it_shows_exists() -> None:
    shown = set(re.findall(r"(?:^|[\s`]|bin/)leadsman ((?!-)[\w-]+)", code()))
    assert shown
    assert set() == shown - set(COMMANDS)


def test_every_make_target_it_shows_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    shown = set(re.findall(r"\bmake ([a-z]+)", code()))
    assert shown
    assert set() == shown - set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def test_every_file_it_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", PROSE)
    assert [] == [link for link in links if not (ROOT / link).exists()]

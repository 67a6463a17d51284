"""The help of every command, and each example in it, taken as the command itself takes it. All of it in this process:
a page each in a process of its own would take longer than all that they say."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

import click
import pytest

from bot import passes
from bot.cli import _run
from bot.cli.commands import COMMANDS
from bot.cli.words import read
from bot.errors import UsageError, UserError

EXAMPLE = re.compile(r"^ +(leadsman [^\[\n]+)$", re.MULTILINE)
"""A line of its own. What holds a bracket is the rule, not a case of it."""

WITHOUT_END = "leadsman load watch"

Page = Callable[..., str]


@pytest.fixture
def page(capsys: pytest.CaptureFixture[str]) -> Page:
    def shown(*argv: str) -> str:
        assert 0 == _run(read(argv))
        return capsys.readouterr().out

    return shown


def inside(name: str) -> list[str]:
    """The commands within the command `name`."""
    command = None if COMMANDS[name].quick else import_module(COMMANDS[name].module).command
    found = command.commands if isinstance(command, click.Group) else {}
    return [one for one, within in found.items() if not within.hidden]


def calls() -> Iterator[tuple[str, ...]]:
    for name in COMMANDS:
        yield (name,)
        yield from ((name, within) for within in inside(name))


def examples(text: str) -> list[str]:
    return [found.partition("  ")[0] for found in EXAMPLE.findall(text)]


def test_every_command_tells_how_it_is_used_and_gives_an_example(page: Page) -> None:
    for call in calls():
        text = page(*call, "--help")
        assert text == page(*call, "-h"), call
        assert f"leadsman {' '.join(call)}" in text, call
        assert not re.search(r"Examples?: *\S", text), f"an example of {call} shares its line"
        assert examples(text) or "source <(leadsman completion bash)" in text, call


def test_help_lists_every_command(page: Page) -> None:
    text = page("--help")
    for name, command in COMMANDS.items():
        assert f"  {name:<10}  {command.about}\n" in text
    assert len(examples(text)) >= 5


def test_every_example_is_taken(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src/shop").mkdir(parents=True)
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LEADSMAN_HOME", str(tmp_path))
    monkeypatch.setenv("LEADSMAN_STATUS_LOG", str(tmp_path / "status.log"))
    pages = [page("--help"), *(page(*call, "--help") for call in calls())]
    found = {example for text in pages for example in examples(text)}
    assert len(found) > 60
    for example in sorted(found):
        words = read(shlex.split(re.sub(r" [>|] .*| 2>.*", "", example).replace("~", str(tmp_path)))[1:])
        assert words.verb is not None
        if not COMMANDS[words.verb].quick:
            taken_by(import_module(COMMANDS[words.verb].module).command, words.verb, words.rest)
        elif not example.startswith(WITHOUT_END):
            assert is_taken(words.verb, list(words.rest)), example


def taken_by(command: click.Command, name: str, words: Sequence[str]) -> None:
    """Raises click's own complaint for words that are off."""
    if isinstance(command, click.Group) and words and words[0] in command.commands:
        taken_by(command.commands[words[0]], words[0], words[1:])
    else:
        command.make_context(name, list(words))


def is_taken(verb: str, words: list[str]) -> bool:
    """Called in a home without anything: what it asks for is not there, and the call itself is well."""
    main = import_module(COMMANDS[verb].module).main
    match verb, words:
        case "pass", ["run", *rest]:
            return bool(passes.read(rest).command)
        case "handoff", [*options, "--", _]:
            return main([*options, "--help"]) == 0
        case "handoff", _:
            at = words.index("--")
            return bool(words[at + 1 :]) and main([*words[:at], "--help"]) == 0
    try:
        return main(words) in (0, 1)
    except UsageError as problem:
        return problem.text.startswith(("There is no run ", "Nothing is known in "))
    except UserError:
        return True

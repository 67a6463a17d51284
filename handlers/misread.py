"""What can be wrong with a command's words: values here, sentences in `bot.wording`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from bot import wording


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """Addressed to the bot by name, and no command of it. `word` is empty where nothing stood behind the name."""

    word: str
    nearest: str | None


@dataclass(frozen=True, slots=True)
class HiddenCharacters:
    """Control, direction or filler characters: what a reader sees is not what would run."""

    characters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TooLong:
    """The line, its paragraph or the comment is longer than what is read with care."""

    what: str
    limit: int


@dataclass(frozen=True, slots=True)
class UnknownArgument:
    word: str
    nearest: str | None


@dataclass(frozen=True, slots=True)
class MissingValue:
    argument: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    argument: str


@dataclass(frozen=True, slots=True)
class UnclosedQuote:
    pass


Problem = UnknownCommand | HiddenCharacters | TooLong | UnknownArgument | MissingValue | Duplicate | UnclosedQuote


def explain(problem: Problem, *, usage: str, passes_on: bool) -> str:
    """The sentence that a person reads, in Markdown. `passes_on`: words behind `--` would reach the task."""
    match problem:
        case UnknownCommand(word, nearest):
            return wording.unknown_command(word, nearest)
        case HiddenCharacters(characters):
            return wording.hidden_characters(characters)
        case TooLong(what, limit):
            return wording.too_long(what, limit)
        case UnknownArgument(word, nearest):
            return wording.unknown_argument(word, nearest, usage=usage, passes_on=passes_on)
        case MissingValue(argument):
            return wording.missing_value(argument, usage=usage)
        case Duplicate(argument):
            return wording.duplicate_argument(argument, usage=usage)
        case UnclosedQuote():
            return wording.unclosed_quote()
        case _:
            assert_never(problem)

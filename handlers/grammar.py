"""Which lines of a comment are commands: CommonMark decides what is plain text, a line's start decides the rest."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

from bot.invisible import hidden_in, without_hidden
from bot.nearest import nearest
from handlers.misread import HiddenCharacters, Problem, TooLong, UnknownCommand

MAX_COMMANDS = 10
MAX_COMMENT = 65_536
"""Characters; what the forges themselves take."""
MAX_PARAGRAPH = 20_000
"""Characters. A regular expression of the parser is quadratic in a paragraph: 4 s for 65,536, 0.4 s for this."""
MAX_LINE = 8_192
"""Characters. All of it may become one argument of a program; Linux takes 131,072 bytes."""

PREFIX = "leadsman"
_START = re.compile(r" {0,3}(?:/([A-Za-z][A-Za-z0-9-]*)|@([A-Za-z0-9][A-Za-z0-9._-]*(?:\[bot\])?))(.*)", re.DOTALL)
_WORD = re.compile(r"[ \t]*/?([^ \t]*)(.*)", re.DOTALL)
_LINE_ENDS = re.compile(r"\r\n?")


@dataclass(frozen=True, slots=True)
class Line:
    """A command as written. `text` and `occurrence` (0 for the first line of this text) tell it from all others."""

    text: str
    occurrence: int
    name: str
    rest: str


@dataclass(frozen=True, slots=True)
class Misread:
    """A line that is addressed to the bot and can't be obeyed, and why."""

    text: str
    occurrence: int
    why: Problem


@dataclass(frozen=True, slots=True)
class Reading:
    """The commands of a comment that are new, in order, at most `MAX_COMMANDS`; `left_out` is how many came after."""

    commands: tuple[Line | Misread, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Words:
    """What makes a line a command: the names of the commands (lower case) and the logins of the bot."""

    names: Collection[str]
    bot_names: Collection[str]


def read(text: str, words: Words, *, before: str | None = None) -> Reading:
    """The commands that `text` holds and `before` (the comment until it was edited) did not."""
    old = Counter(written.text for written in commands_in(before, words)) if before is not None else Counter[str]()
    new = [written for written in commands_in(text, words) if written.occurrence >= old[written.text]]
    return Reading(tuple(new[:MAX_COMMANDS]), max(0, len(new) - MAX_COMMANDS))


def commands_in(text: str, words: Words) -> tuple[Line | Misread, ...]:
    """All commands that `text` holds, in order. Takes time in proportion to its length, whatever stands in it."""
    seen: Counter[str] = Counter()
    found: list[Line | Misread] = []
    for line, trouble in _plain_lines(_LINE_ENDS.sub("\n", text), words):
        stripped = line.strip(" \t")
        written = _written(line, stripped, seen[stripped], trouble, words)
        if written is not None:
            found.append(written)
            seen[stripped] += 1
    return tuple(found)


def _written(line: str, text: str, occurrence: int, trouble: Problem | None, words: Words) -> Line | Misread | None:
    """The command on a line of plain text, if there is one."""
    # What can't be seen is looked through first: "/ru<zero width space>n" reads as a command, so it is answered as one.
    visible = without_hidden(line)
    parts = _split(visible, words)
    if parts is None:
        return None
    name, rest, by_name = parts
    if name not in words.names and not by_name:
        return None  # another bot's
    # A no-break space and its kin are fine inside of a text, but no shell takes them for the end of a word.
    odd_spaces = tuple(c for c in visible[: len(visible) - len(rest) + 1] if c.isspace() and c not in " \t")
    if trouble is None and (hidden := hidden_in(text) + odd_spaces):
        trouble = HiddenCharacters(hidden)
    if trouble is None and len(text) > MAX_LINE:
        trouble = TooLong("line", MAX_LINE)
    if trouble is None and name not in words.names:
        trouble = UnknownCommand(name, nearest(name, words.names))
    if trouble is not None:
        return Misread(text, occurrence, trouble)
    return Line(text, occurrence, name, rest.strip(" \t"))


def _split(line: str, words: Words) -> tuple[str, str, bool] | None:
    """(name, what follows, was the bot addressed by name), or None for a line that starts with neither / nor @bot."""
    start = _START.match(line)
    if start is None:
        return None
    slashed, mentioned, rest = start.groups()
    if rest and not rest[0].isspace():
        return None  # a path, a sentence's end, another word
    if mentioned is not None:
        if mentioned.lower() not in {name.lower() for name in words.bot_names}:
            return None
    elif slashed.lower() != PREFIX:
        return slashed.lower(), rest, False
    word = _WORD.fullmatch(rest)
    return (word[1].lower(), word[2], True) if word else None


def _may_be_command(line: str, words: Words) -> bool:
    parts = _split(without_hidden(line), words)
    return parts is not None and (parts[0] in words.names or parts[2])


def _plain_lines(text: str, words: Words) -> Iterator[tuple[str, Problem | None]]:
    """The lines that may be commands and start in plain text; with the problem where that can't be told."""
    lines = text.split("\n")
    candidates = {number for number, line in enumerate(lines) if _may_be_command(line, words)}
    if not candidates:
        return
    if len(text) > MAX_COMMENT:
        # Whether it stands in plain text is not known: one answer, for the first.
        yield lines[min(candidates)], TooLong("comment", MAX_COMMENT)
        return
    parser = _parser()
    env: EnvType = {}
    quotes = 0
    for token in parser.parse(text, env):
        quotes += token.nesting if token.type.startswith("blockquote_") else 0
        if token.type == "paragraph_open" and not quotes:
            yield from _lines_of(token, lines, candidates, parser, env)


def _lines_of(
    paragraph: Token, lines: list[str], candidates: set[int], parser: MarkdownIt, env: EnvType
) -> Iterator[tuple[str, Problem | None]]:
    """The candidates among a paragraph's lines.

    A paragraph inside a list counts as well: CommonMark takes the line right below a list into its last item, and
    who writes a command there means it. One that stands behind a bullet does not start its line, and doesn't count.
    """
    first, end = paragraph.map or (0, 0)
    wanted = [number for number in range(first, end) if number in candidates]
    if not wanted:
        return
    source = "\n".join(lines[first:end])
    if len(source) > MAX_PARAGRAPH:
        yield lines[wanted[0]], TooLong("paragraph", MAX_PARAGRAPH)
        return
    plain = _starts_in_text(source, parser, env)
    offset = 0
    for number in range(first, end):
        if number in candidates and offset in plain:
            yield lines[number], None
        offset += len(lines[number]) + 1


def _starts_in_text(source: str, parser: MarkdownIt, env: EnvType) -> set[int]:
    """Offsets of the lines of a paragraph that start in text: not in code, a link, an image or a tag."""
    starts = {0}
    state = StateInline(source, parser, {**env, _STARTS: starts}, [])
    parser.inline.tokenize(state)
    return starts


_STARTS = "leadsman_line_starts"


def _note_line_start(state: StateInline, silent: bool) -> bool:
    """An inline rule that takes nothing: it sees each line's end that is text, and notes where the next one starts."""
    here = state.src[state.pos : state.pos + 2]
    if not silent and state.linkLevel <= 0:
        if here.startswith("\n"):
            state.env[_STARTS].add(state.pos + 1)
        elif here == "\\\n":  # a hard line break
            state.env[_STARTS].add(state.pos + 2)
    return False


class _OuterText(ParserInline):
    """Looks at a paragraph's own text only. The parser calls this for the text of an image, whose line ends would be
    noted as if they were the paragraph's; and no command can stand in there."""

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:  # noqa: ARG002
        return tokens


@functools.cache
def _parser() -> MarkdownIt:
    """CommonMark and tables, which every forge knows: what people see as a cell is no line of text."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.disable(["inline", "text_join"])
    parser.inline = _OuterText()
    # Emphasis is only looks: `*` and `_` belong to the words.
    parser.inline.ruler.disable(["linkify", "strikethrough", "emphasis", "entity"])
    parser.inline.ruler.before("newline", "line_start", _note_line_start)
    return parser

"""Which lines of a comment are commands."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from handlers.grammar import MAX_COMMANDS, MAX_LINE, MAX_PARAGRAPH, Line, Misread, Words, commands_in, read
from handlers.misread import HiddenCharacters, TooLong, UnknownCommand

WORDS = Words({"run", "help", "cancel", "ok-to-test"}, {"leadsman", "leadsman[bot]"})


def named(text: str) -> list[tuple[str, str]]:
    """(name, rest) of each command that `text` holds; a misread one has the kind of its trouble as name."""
    return [
        (written.name, written.rest) if isinstance(written, Line) else (type(written.why).__name__, written.text)
        for written in commands_in(text, WORDS)
    ]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ([("run", "fix")], "/run fix"),
        ([("run", "fix")], "   /run fix"),
        ([("run", "fix")], "/Run   fix  "),
        ([("run", "Fix")], "/RUN\tFix"),
        ([("help", "")], "/help"),
        ([("ok-to-test", "1" * 40)], "/OK-to-test " + "1" * 40),
        ([("run", "fix")], "/leadsman run fix"),
        ([("run", "fix")], "/Leadsman RUN fix"),
        ([("run", "fix")], "@leadsman run fix"),
        ([("run", "fix")], "@LeadsMan /run fix"),
        ([("run", "fix")], "@leadsman[bot] run fix"),
        ([("run", "fix")], "Please:\n/run fix\nThank you."),
        ([("run", "a"), ("cancel", ""), ("run", "b")], "/run a\n/cancel\n/run b"),
        ([("run", "a"), ("run", "b")], "/run a\r\n\r\n/run b\r\n"),
        ([("run", "a"), ("run", "b")], "/run a\r/run b"),
        ([("run", "fix")], "two spaces  \n/run fix"),
        ([("run", "fix")], "a hard line break\\\n/run fix"),
        ([("run", "fix")], "```\ncode\n```\n/run fix"),
        ([("run", "fix")], "> quoted\n\n/run fix"),
        ([("run", "fix")], "# Heading\n/run fix"),
        ([("run", "fix")], "<!-- hidden -->\n\n/run fix"),
        ([("run", "fix")], "seen <!-- hidden --> \n/run fix"),
        ([("run", "fix")], "a line<br>\n/run fix"),
        ([("run", "fix")], "`code`\n/run fix"),
        ([("run", "fix")], "an open ` only\n/run fix"),
        ([("run", "fix")], "[link](http://example.org)\n/run fix"),
        ([("run", "fix")], "[not a link\n/run fix"),
        ([("run", "fix")], "[a]: /url\n\n/run fix"),
        ([("run", "fix")], "[a]: /url\n/run fix"),
        ([("run", "fix")], "---\n/run fix"),
        ([("run", "*a* _b_ **c**")], "/run *a* _b_ **c**"),
        ([("run", "fix `x`")], "/run fix `x`"),
        ([("run", "fix | cat")], "/run fix | cat"),
        ([("run", "a")], "\t\n/run a"),
        ([("run", "fix")], "\u3000\n/run fix"),
        ([("run", "fix")], "  one\n    two\n/run fix"),
        # In a list: what starts its own line counts, what stands behind the bullet doesn't.
        ([("run", "fix")], "- a\n- b\n/run fix"),
        ([("run", "fix")], "- a\n  /run fix"),
        ([("run", "fix")], "1. a\n\n   /run fix"),
        ([], "- /run fix"),
        ([], "1. /run fix"),
        ([], "- a\n\n      /run fix"),
        ([], "> - a\n/run fix"),
        ([], "- > a\n/run fix"),
        # Not at the start of a line, or another's.
        ([], "please /run fix"),
        ([], "    /run fix"),
        ([], "\t/run fix"),
        ([], "text\n    /run fix"),
        ([], "/runs fix"),
        ([], "/run/fix"),
        ([], "/run: fix"),
        ([], "/run."),
        ([], "//run fix"),
        ([], "/ run fix"),
        ([], "/approve"),
        ([], "/lgtm cancel"),
        ([], "@somebody run fix"),
        ([], "@leadsman-2 run fix"),
        ([], "@leadsman, run fix"),
        ([], "run fix"),
        ([], "\\/run fix"),
        ([], "&#47;run fix"),
        ([], "**/run fix**"),
        # Code.
        ([], "```\n/run fix\n```"),
        ([], "~~~\n/run fix\n~~~"),
        ([], "````\n```\n/run fix\n```\n````"),
        ([], "```\n/run fix"),
        ([], "   ```sh\n/run fix\n   ```"),
        ([], "~~~~ `x`\n~~~\n/run fix"),
        ([], "`\n/run fix\n`"),
        ([], "a ``b\n/run fix\n`` c"),
        ([], "a `b\r\n/run fix\r\n` c"),
        ([], "- ```\n  /run fix\n  ```"),
        # Quotes.
        ([], "> /run fix"),
        ([], ">/run fix"),
        ([], "> said\n/run fix"),
        ([], ">> said\n/run fix"),
        ([], "> ```\n> /run fix\n> ```"),
        # HTML and comments.
        ([], "<!--\n/run fix\n-->"),
        ([], "<!-- \n\n/run fix\n\n-->"),
        ([], "seen <!--\n/run fix\n--> seen"),
        ([], "<div>\n/run fix\n</div>"),
        ([], "<details><summary>more</summary>\n/run fix\n</details>"),
        ([], "<pre>\n\n/run fix\n\n</pre>"),
        ([], "<script>\n/run fix\n</script>"),
        ([], "a <b title='\n/run fix\n'>c</b>"),
        ([], "a <a href='x'>\n/run fix\n</a>"),
        ([], "a <?\n/run fix\n?>"),
        ([], "a <![CDATA[\n/run fix\n]]>"),
        # Headings.
        ([], "# /run fix"),
        ([], "/run fix\n---"),
        ([], "/run fix\n==="),
        ([], "title\n/run fix\n==="),
        # Links and images: text, destination, title, definition.
        ([], "[text\n/run fix\n](http://example.org)"),
        ([], "[text](\n/run\n)"),
        ([], "[text](/x '\n/run fix\n')"),
        ([], "[text\n/run fix\n][a]\n\n[a]: /url"),
        ([], "[\n/run fix\n]\n\n[ /run fix ]: /url"),
        ([], "[a]:\n/run"),
        ([], "[a]: /url '\n/run fix\n'"),
        ([], "![alt\n/run fix\n](x.png)"),
        ([], "`aa\n/run fix` ![aaa\nb](x.png)"),
        ([], "![alt [b](c)\n/run fix\n](x.png)"),
        ([], "![alt\n/run fix\n][a]\n\n[a]: /url"),
        # Tables, as every forge draws them.
        ([], "a | b\n--|--\n/run fix | c"),
        ([], "/run a | b\n--|--"),
    ],
)
def test_only_a_line_of_plain_text_that_starts_with_a_command_is_one(expected: object, text: str) -> None:
    assert expected == named(text)


@pytest.mark.parametrize(
    ("text", "word", "nearest"),
    [
        ("/leadsman rn fix", "rn", "run"),
        ("@leadsman halp", "halp", "help"),
        ("/leadsman xyzzy", "xyzzy", None),
        ("/leadsman", "", None),
        ("@leadsman", "", None),
    ],
)
def test_an_unknown_word_behind_the_bots_name_is_answered(text: str, word: str, nearest: str | None) -> None:
    assert (Misread(text, 0, UnknownCommand(word, nearest)),) == commands_in(text, WORDS)


@pytest.mark.parametrize(
    ("text", "characters"),
    [
        ("/run \u202efix", "\u202e"),
        ("/run fix\u200b", "\u200b"),
        ("/r\u200bun fix", "\u200b"),
        ("\ufeff/run fix", "\ufeff"),
        ("/run a\u2066b\u2069", "\u2066\u2069"),
        ("/run a\u00adb", "\u00ad"),
        ("/run a\x1b[31m", "\x1b"),
        ("/run a\x00b", "\x00"),
        ("/run a\x85b", "\x85"),
        ("/run a\u2028b", "\u2028"),
        ("/run a\U000e0041", "\U000e0041"),
        ("/run a\ufe0f", "\ufe0f"),
        ("/run a\u3164b", "\u3164"),
        ("/run a\ud800b", "\ud800"),
        ("/run\u00a0fix", "\u00a0"),
        ("/leadsman\u00a0run fix", "\u00a0"),
        ("/leadsman run\u202ffix", "\u202f"),
        ("@leadsman r\u200dun", "\u200d"),
    ],
)
def test_a_command_with_characters_that_cannot_be_seen_is_refused(text: str, characters: str) -> None:
    (written,) = commands_in(text, WORDS)
    assert isinstance(written, Misread)
    assert HiddenCharacters(tuple(characters)) == written.why


@pytest.mark.parametrize(
    "text",
    [
        "/run fix naïve",
        "/run \u65e5\u672c\u8a9e",
        "/run caf\u00e9 \u00ab a\u00a0b \u00bb",
        "/run \U0001f600",
        "/run \u0645\u0631\u062d\u0628\u0627",
    ],
)
def test_letters_of_every_script_are_fine(text: str) -> None:
    assert [("run", text.removeprefix("/run "))] == named(text)


def test_hidden_characters_elsewhere_are_nobodys_business() -> None:
    assert [("run", "fix")] == named("a\u200bb\n/run fix\n\u202eabc")
    assert [] == named("`\n/run \u202efix\n`")


def test_ten_commands_are_read_and_the_rest_is_counted() -> None:
    reading = read("\n".join(f"/run t{n}" for n in range(13)), WORDS)
    assert [f"/run t{n}" for n in range(10)] == [written.text for written in reading.commands]
    assert 3 == reading.left_out


def test_the_same_line_twice_is_two_commands_with_numbers() -> None:
    assert [("/run a", 0), ("/run b", 0), ("/run a", 1)] == [
        (written.text, written.occurrence) for written in commands_in("/run a\n/run b\n  /run a ", WORDS)
    ]


@pytest.mark.parametrize(
    ("expected", "before", "after"),
    [
        ([], "/run a", "/run a"),
        ([], "/run a", "a word first\n\n/run a"),
        ([], "/run a\n/run b", "/run b\n/run a"),
        ([("/run b", 0)], "/run a", "/run b\n/run a"),
        ([("/run a", 1)], "/run a", "/run a\n/run a"),
        ([], "/run a\n/run a", "/run a"),
        ([("/run a", 0)], "`/run a`", "/run a"),
        ([("/run a", 0)], "```\n/run a\n```", "/run a"),
        ([("/run a", 0)], "/run ab", "/run a"),
        ([("/run a", 0)], "", "/run a"),
    ],
)
def test_an_edit_asks_only_for_what_was_not_there_before(expected: object, before: str, after: str) -> None:
    commands = read(after, WORDS, before=before).commands
    assert expected == [(written.text, written.occurrence) for written in commands]


def test_an_edit_of_a_long_list_leaves_room_for_new_ones() -> None:
    before = "\n".join(f"/run t{n}" for n in range(MAX_COMMANDS))
    reading = read(f"{before}\n/run new", WORDS, before=before)
    assert ["/run new"] == [written.text for written in reading.commands]
    assert 0 == reading.left_out


def test_a_line_that_is_too_long_to_be_an_argument_is_refused() -> None:
    long = "/run " + "x" * MAX_LINE
    assert (Misread(long, 0, TooLong("line", MAX_LINE)),) == commands_in(long, WORDS)


def test_a_paragraph_or_comment_that_is_too_long_is_answered_once() -> None:
    filler = "x" * MAX_PARAGRAPH
    assert [("run", "a")] == named(f"{filler}\n\n/run a\n")
    assert [("TooLong", "/run a")] == named(f"{filler}\n/run a\n/run b")
    assert [("TooLong", "/run a")] == named(f"{filler}\n\n" * 4 + "/run a\n/run b")
    assert [] == named(f"{filler}\n\n" * 4)


# What has been slow in parsers of Markdown before: each is as long as a comment may be.
SIZE = 65_000
SLOW = {
    "backticks of all lengths": "".join("`" * n + " " for n in range(1, 400)),
    "brackets": "[" * SIZE,
    "image brackets": "![" * SIZE,
    "links never closed": "[a](b " * SIZE,
    "links with angle brackets": "[a](<b" * SIZE,
    "titles never closed": '[a](b "' * SIZE,
    "images in images": "![a" * 2_800 + "](u)" * 2_800,
    "comments never closed": "a <!--" * SIZE,
    "comments closed once": "a <!--" * 3_300 + "-->",
    "CDATA": "a<![CDATA[" * SIZE,
    "declarations": "a<!A " * SIZE,
    "attributes": "<a" + " b" * SIZE,
    "quoted attributes": '<a b="' * SIZE,
    "nested quotes": "> " * SIZE,
    "quotes of many depths": "".join(">" * (n % 20 + 1) + "a\n" for n in range(5_500)),
    "lazy lines": "> > > > > > > a\n" + "a\n" * SIZE,
    "nested lists": "".join("  " * n + "- a\n" for n in range(250)),
    "list lines": "- a\n" * SIZE,
    "definitions": "[a]: u\n" * SIZE,
    "open definitions": "[a\n" * SIZE,
    "references": "[a]: u\n\n" + "[a][b" * SIZE,
    "tables": "a|b\n-|-\n" * SIZE,
    "wide tables": "|a" * 600 + "\n" + "|-" * 600 + "\n" + "|\n" * SIZE,
    "escapes": "\\" * SIZE,
    "emphasis": "*a_ " * SIZE,
    "entities": "&#" * SIZE,
    "fences": "a\n```\n" * SIZE,
    "blank lines": "\n" * SIZE,
    "commands": "/run\n" * SIZE,
    "half commands": "/leadsman \n" * SIZE,
    "hidden": "/run \u200b" * SIZE,
}


@pytest.mark.parametrize("glue", ["\n", "\n\n"], ids=["in its paragraph", "below it"])
@pytest.mark.parametrize("name", SLOW)
def test_a_hostile_comment_of_full_length_is_read_in_bounded_time(name: str, glue: str) -> None:
    text = SLOW[name][:SIZE] + glue + "/run fix"
    began = time.process_time()
    commands_in(text, WORDS)
    assert time.process_time() - began < 15


@pytest.mark.parametrize("name", SLOW)
def test_a_hostile_paragraph_just_below_the_limit_is_read_in_bounded_time(name: str) -> None:
    text = SLOW[name][: MAX_PARAGRAPH - 20].replace("\n\n", "\n") + "\n/run fix"
    began = time.process_time()
    commands_in(text, WORDS)
    assert time.process_time() - began < 15


def test_a_command_below_hostile_text_in_its_paragraph_is_found() -> None:
    for name in ("images in images", "comments closed once", "brackets", "links never closed", "attributes"):
        text = "a" + SLOW[name][: MAX_PARAGRAPH - 20] + "\n/run fix"
        assert [("run", "fix")] == named(text), name


MARKS = ["`", "``", "```", "~~~", ">", "- ", "1. ", "#", "<!--", "-->", "<div>", "[", "](u)", "![", "]", ": /u", "<a>"]
REST = [
    "/run fix",
    "/help",
    "@leadsman run x",
    "\n",
    "\n\n",
    "\r\n",
    " ",
    "    ",
    "\t",
    "text",
    "\\",
    "|",
    "---",
    "\u200b",
    '"',
]
pieces = st.sampled_from([*MARKS, *REST])
scraps = st.lists(pieces, max_size=25).map("".join)


@given(scraps)
def test_every_command_is_a_line_of_the_text(text: str) -> None:
    lines = {line.strip(" \t") for line in text.replace("\r\n", "\n").split("\n")}
    for written in commands_in(text, WORDS):
        assert written.text in lines


@given(scraps)
def test_nothing_inside_a_fence_is_a_command(text: str) -> None:
    fence = "~" * 30
    assert () == commands_in(f"{fence}\n{text}\n{fence}", WORDS)


@given(scraps)
def test_nothing_indented_as_code_is_a_command(text: str) -> None:
    code = "\n".join("    " + line for line in text.replace("\r\n", "\n").split("\n"))
    assert () == commands_in(code, WORDS)


@given(scraps)
def test_nothing_in_a_quote_is_a_command(text: str) -> None:
    quoted = "\n".join("> " + line for line in text.replace("\r\n", "\n").split("\n"))
    assert () == commands_in(quoted, WORDS)


@given(scraps.filter(lambda text: "-->" not in text))
def test_nothing_in_an_html_comment_is_a_command(text: str) -> None:
    assert () == commands_in(f"<!-- {text}\n-->", WORDS)


@given(scraps, scraps)
def test_an_edit_that_adds_text_above_repeats_nothing(above: str, text: str) -> None:
    before = commands_in(text, WORDS)
    new = read(f"{above}\n\n{text}", WORDS, before=text).commands
    assert not {(w.text, w.occurrence) for w in before} & {(w.text, w.occurrence) for w in new}


@settings(max_examples=200)
@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    commands_in(text + "\n/run fix", WORDS)


def seen_as_text(text: str) -> int:
    """How many lines of plain text start with "/run x" in what the parser makes of the whole `text`."""
    found = quotes = links = 0
    in_paragraph = False
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        quotes += token.nesting if token.type.startswith("blockquote") else 0
        in_paragraph = token.type == "paragraph_open" or (in_paragraph and token.type != "paragraph_close")
        if token.type != "inline" or not in_paragraph or quotes or token.map is None:
            continue
        at_start = text.split("\n")[token.map[0]].lstrip(" ").startswith("/")  # not behind a bullet
        links = 0
        for piece in filter(lambda piece: piece.type != "text" or piece.content, token.children or []):
            links += {"link_open": 1, "link_close": -1}.get(piece.type, 0)
            links += {"<a>": 1, "</a>": -1}.get(piece.content if piece.type == "html_inline" else "", 0)
            found += at_start and piece.type == "text" and piece.content.startswith("/run x")
            at_start = piece.type in {"softbreak", "hardbreak"} and links <= 0
    return found


lines = st.sampled_from(["/run x", "/run x", "/run x", "\n", "\n", "\n\n"])
marks = st.sampled_from(
    [*MARKS, "# ", "[x]", "[x]: u\n", "<b>", "</b>", "</a>", "'", "(", ")", "<", "===", "a|b\n-|-\n"]
)


@settings(max_examples=300)
@given(st.lists(marks | lines | lines, max_size=20).map("".join))
def test_a_command_is_what_the_parser_shows_as_text_at_a_lines_start(text: str) -> None:
    assert seen_as_text(text) == len(commands_in(text, WORDS))

"""Text from outside stays text, wherever it is put."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.invisible import hidden_in, made_visible
from bot.markdown import block, cell, code, inline

forge = MarkdownIt("commonmark").enable(["table", "strikethrough"])
hostile = st.text(
    st.sampled_from("`*_[]()<>#!|\\~-+=.&@/:; \n\r\tab19\u202e\u200b\x1b\x00\u2028$'\"") | st.characters(), max_size=40
)


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", made_visible(text, keep="\n\r\t")).strip()


@given(hostile)
def test_inline_text_is_seen_as_it_was(text: str) -> None:
    shown = forge.render(f"{inline(text)}\n")
    expected = html.escape(one_line(text), quote=False)
    assert (f"<p>{expected}</p>\n" if expected else "") == shown.replace("\u200b", "").replace("&quot;", '"')


@given(hostile)
def test_a_code_span_holds_any_text(text: str) -> None:
    expected = html.escape(one_line(text) or " ", quote=False)
    shown = forge.render(f"x {code(text)} y").replace("&quot;", '"')
    assert f"<p>x <code>{expected}</code> y</p>\n" == shown


@given(hostile)
def test_a_block_ends_where_we_end_it(text: str) -> None:
    shown = forge.render(f"{block(text)}\nafter")
    assert shown.startswith("<pre><code>")
    assert shown.endswith("</code></pre>\n<p>after</p>\n")
    assert 1 == shown.count("</code>")


@given(hostile, hostile)
def test_a_cell_stays_a_cell(left: str, right: str) -> None:
    row = f"| {cell(code(left))} | {cell(inline(right))} |"
    shown = forge.render(f"| a | b |\n|---|---|\n{row}\n")
    assert 2 == shown.count("<td>")
    assert 1 == shown.count("<code>")


@given(hostile)
def test_nothing_that_cannot_be_seen_is_left(text: str) -> None:
    assert () == hidden_in(code(text))
    assert () == hidden_in(inline(text).replace("\u200b", ""))
    assert () == hidden_in(block(text).replace("\n", ""))


@pytest.mark.parametrize("text", ["@ann", "a @ann-b c", "#12", "acme/shop#12", "@acme/team", "(@ann)"])
def test_nobody_is_mentioned_and_nothing_is_referred_to(text: str) -> None:
    assert re.search(r"[@#]\w", inline(text)) is None


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("``` a ```", "``` a ```"),
        ("~~~", "~~~"),
        ("red", "\x1b[31mred\x1b[0m"),
        ("link", "\x1b]8;;http://x\x07link\x1b]8;;\x07"),
        ("\\u202eabc", "\u202eabc"),
        ("\\U000e0041", "\U000e0041"),
        ("\\ud800", "\ud800"),
        ("a\nb", "a\r\nb\r\n"),
    ],
)
def test_a_block_shows_what_is_hidden_and_drops_colours(expected: str, text: str) -> None:
    assert expected == "\n".join(block(text).split("\n")[1:-1])


@pytest.mark.parametrize(
    ("expected", "markdown"),
    [("a\\|b", "a|b"), ("a\\|b", "a\\|b"), ("a\\\\\\|b", "a\\\\|b"), ("\\|\\|", "||"), ("`\\|`", "`|`")],
)
def test_a_bar_in_a_cell_has_an_odd_number_of_backslashes(expected: str, markdown: str) -> None:
    """GitHub pairs them from the left: behind an even number the bar would end the cell."""
    assert expected == cell(markdown)

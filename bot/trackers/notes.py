"""Notes as a tracker takes them, in Markdown or Textile: nothing in them mails people, or links by accident."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

_FENCES = re.compile(r"(^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\2[`~]* *$)", re.DOTALL | re.MULTILINE)
_MENTION = re.compile(r"(?<!\w)@(?=[A-Za-z0-9_])")
_REFERENCE = re.compile(r"(?:(?<=[\s(,\-\[>])|^)([a-z0-9_-]*:?(?:[a-z]+)?##?)(?=\d|note)", re.MULTILINE)
_BREAK = "\u200b"
_SURROGATES = re.compile("[\ud800-\udfff]")

_MARKUP = re.compile(r"[*_\-+^~@%!\"|=?:.\[\]{}()#\\`]")
_MARKS = {"bullet_list_open": "*", "ordered_list_open": "#"}
_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def clean(text: str) -> str:
    """`text` as every database takes it: PostgreSQL refuses NUL, and UTF-8 knows no half characters."""
    return _SURROGATES.sub("\ufffd", text).replace("\0", "\ufffd")


def neutral(markdown: str) -> str:
    """`markdown` without what a tracker acts on: `@name` mails, `#7` links to its own ticket 7, `{{macro}}` includes
    pages. Mentions in inline code mail, too; those in fences do not."""
    parts = _FENCES.split(markdown)
    # `split` gives text, fence, the fence's own characters, text, ...
    return "".join(_harmless(part) if n % 3 == 0 else part for n, part in enumerate(parts) if n % 3 != 2)


def _harmless(text: str) -> str:
    text = _MENTION.sub(f"@{_BREAK}", text)
    return _REFERENCE.sub(lambda found: f"{found[1]}{_BREAK}", text).replace("{{", f"{{{_BREAK}{{")


def in_textile(markdown: str) -> str:
    """`markdown` in Redmine's Textile, as far as our own texts go: headings, paragraphs, lists, tables, code, links."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    return "\n\n".join(_blocks(iter(tokens))).strip() + "\n"


def _blocks(tokens: Iterator[Token]) -> Iterator[str]:
    for token in tokens:
        match token.type:
            case "heading_open":
                yield f"h{token.tag[1]}. {_inline(next(tokens))}"
            case "paragraph_open":
                yield _inline(next(tokens))
            case "fence" | "code_block":
                yield _pre(token.content)
            case "bullet_list_open" | "ordered_list_open":
                yield "\n".join(_items(tokens, _MARKS[token.type]))
            case "table_open":
                yield "\n".join(_rows(tokens))
            case "hr":
                yield "---"
            case _:  # a quote's paragraphs stand by themselves, and HTML, our own comments, is left out
                pass


def _items(tokens: Iterator[Token], mark: str) -> Iterator[str]:
    """The lines of a list; a list in it has one mark more."""
    for token in tokens:
        match token.type:
            case "bullet_list_close" | "ordered_list_close":
                return
            case "inline":
                yield f"{mark} {_inline(token)}"
            case "bullet_list_open" | "ordered_list_open":
                yield from _items(tokens, mark + _MARKS[token.type])
            case "fence" | "code_block":
                yield _pre(token.content)
            case _:
                pass


def _rows(tokens: Iterator[Token]) -> Iterator[str]:
    cells: list[str] = []
    for token in tokens:
        match token.type:
            case "table_close":
                return
            case "th_open" | "td_open":
                content = _inline(next(tokens)).replace("\n", " ")
                cells.append(f"_. {content}" if token.type == "th_open" else f" {content} ")
            case "tr_close":
                if any(cell.strip("_. ") for cell in cells):  # a table without headings has an empty row of them
                    yield f"|{'|'.join(cells)}|"
                cells = []
            case _:
                pass


def _inline(token: Token) -> str:
    return "".join(_spans(token.children or ()))


def _spans(children: Sequence[Token]) -> Iterator[str]:
    links: list[str] = []
    for child in children:
        match child.type:
            case "text":
                yield _plain(child.content)
            case "code_inline":
                yield f"<code>{_coded(child.content)}</code>"
            case "strong_open" | "strong_close":
                yield "*"
            case "em_open" | "em_close":
                yield "_"
            case "link_open":
                links.append(str(child.attrGet("href") or ""))
                yield '"'
            case "link_close":
                yield f'":{links.pop()}'
            case "softbreak" | "hardbreak":
                yield "\n" if child.type == "hardbreak" else " "
            case _:
                pass


def _plain(text: str) -> str:
    """Text that stays text: each character that Textile could act on is written as its number."""
    escaped = "".join(_SPECIAL.get(character, character) for character in text)
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};" if found[0] not in ".:()=?-#" else found[0], escaped)


def _coded(text: str) -> str:
    return re.sub(r"(?i)</(code|pre)", rf"<{_BREAK}/\1", text)


def _pre(text: str) -> str:
    body = re.sub(r"(?i)<(/?pre)", rf"<{_BREAK}\1", text.rstrip("\n"))
    return f"<pre>\n{body}\n</pre>"

"""Turns what others wrote into what a page may show: Markdown without HTML, times and sizes in words."""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from bot.invisible import made_visible

MAX_MARKDOWN = 100_000
"""Characters that are parsed as Markdown; a longer text is shown as it is."""

# The only HTML that is kept, letter for letter: what folds a log away. `summary` and `details` can't carry anything.
_TAG_OR_COMMENT = re.compile(r"<!--.*?-->|</?(?:details|summary)>", re.DOTALL)


def _html(_renderer: RendererHTML, tokens: Sequence[Token], index: int, *_: Any) -> str:
    """HTML in a text: comments (the bot's own markers) vanish, the fold's tags stay, all else is shown as text."""
    text, shown, end = tokens[index].content, [], 0
    for match in _TAG_OR_COMMENT.finditer(text):
        shown += [escape(text[end : match.start()]), "" if match[0].startswith("<!--") else match[0]]
        end = match.end()
    return "".join([*shown, escape(text[end:])])


def _link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
) -> str:
    tokens[index].attrSet("rel", "nofollow noopener noreferrer")
    return renderer.renderToken(tokens, index, options, env)


def _reader() -> MarkdownIt:
    # HTML is read as such, so that it can be told from text, and then not let through. Images are shown as links:
    # a page that fetched them would tell a stranger who is looking.
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).disable("image")
    for kind in ("html_block", "html_inline"):
        reader.add_render_rule(kind, _html)
    reader.add_render_rule("link_open", _link)
    return reader


_READER = _reader()


def markdown(text: str) -> Markup:
    """`text` as HTML in which nothing is live but links to http, https and mailto."""
    # The bot parts `@` and `#` from what follows with a blank of no width, for forges that would make a link of it.
    text = plain(text.replace("\u200b", ""))
    if len(text) > MAX_MARKDOWN:
        return Markup("<pre>{}</pre>").format(text)
    return Markup(_READER.render(text))  # noqa: S704 - the renderer above lets no HTML through


def plain(log: str) -> str:
    """A log's text without the codes that colour a terminal, and with what can't be seen written out."""
    return made_visible(log.replace("\r\n", "\n"), keep="\n")


def line(text: str) -> str:
    """`text` on one line, with what can't be seen written out."""
    return made_visible(" ".join(text.split()))


def duration(length: timedelta | float) -> str:
    """ "42 s", "3 min 5 s", "2 h 10 min", "4 d 1 h"."""
    seconds = int(length.total_seconds() if isinstance(length, timedelta) else length)
    for size, unit, smaller, small in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{seconds // size} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{max(seconds, 0)} s"


def took(length: timedelta | float) -> str:
    """As `duration`, with tenths of a second below ten."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    return f"{max(seconds, 0.0):.1f} s" if seconds < 10 else duration(seconds)


def moment(at: datetime) -> str:
    """ "2026-01-31 09:05:12 UTC"."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(at: datetime, now: datetime) -> str:
    """ "now", "12 s ago", "3 min ago", "2 h ago", "4 d ago"."""
    return " ".join([*duration(now - at).split()[:2], "ago"]) if now - at >= timedelta(seconds=1) else "now"


def size(count: int) -> str:
    """ "812 B", "4.1 kB", "3.0 MB"."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"

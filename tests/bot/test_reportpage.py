"""The page of a report: needs nothing beside it, and holds nothing live of what strangers wrote."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser

import pytest

from bot.dashboard.reportpage import page
from bot.masking import Masking
from bot.signing import SigningKey
from bot.statement import carried_in, read, signed
from tests.bot.reporting import hostile_report, report

HEAD = ("html", "head", "meta", "title", "style", "body", "header", "span", "svg", "path", "nav", "time", "main")
TEXT = ("div", "h1", "h2", "code", "p", "dl", "dt", "dd", "section", "i", "pre", "br", "a", "strong", "em")
TABLES = ("table", "thead", "tr", "th", "tbody", "td", "details", "summary")


class Seen(HTMLParser):
    """Which tags there are, where they lead, and what else they do."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.doing: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links |= {value or "" for name, value in attrs if name in ("href", "src")}
        self.doing |= {name for name, _ in attrs if name.startswith("on")}


def seen(text: str) -> Seen:
    parser = Seen()
    parser.feed(text)
    return parser


@pytest.mark.parametrize("seed", range(40))
def test_nothing_that_strangers_wrote_is_live(seed: int, key: SigningKey) -> None:
    envelope = signed(hostile_report(random.Random(seed)), key, Masking())
    statement = read(envelope)
    found = seen(page(statement, envelope))
    assert found.tags <= {*HEAD, *TEXT, *TABLES}
    assert not found.doing
    links = statement.report.links
    assert found.links <= {links.run, links.base, links.tip, links.ref}


def test_a_page_needs_nothing_beside_it_and_carries_the_report(key: SigningKey) -> None:
    envelope = signed(report(), key, Masking())
    text = page(read(envelope), envelope)
    assert [envelope] == list(carried_in(text))
    assert "1 of 1" in text
    assert "12 passed, 1 skipped (pytest)" in text
    assert not re.search(r"@import|url\(|<link|<script|<img", text)

"""Reports and answers read the same on a site with Markdown and on one with Textile."""

from __future__ import annotations

import re

import pytest

from bot.trackers.notes import clean, in_textile, neutral
from tests.redmine.site import Site, client
from tests.redmine.town import TicketTown

REPORT = """\
**Published** `fix`: [`0123456789ab`](http://127.0.0.1:1/commit/0123) on [`leadsman/run/x`](http://127.0.0.1:1/tree/x).

| | |
|---|---|
| asked by | dana with `/run fix -- a\\|b` |
| base | `aaaa`: the head of main \\*now\\* |

**Ran**

| what | result |
|---|---|
| `make test` | exit 0 |

- `src/a.py` +1 -0
- two &lt;b&gt;words&lt;/b&gt;, 3 \\* 4 = 12, a_b_c, @\u200bdana

```
if a < b: print("|x|") # </pre> *no* _markup_
```
"""


def shown(site: Site, text: str, **settings: str) -> str:
    """The HTML of the last note, as the ticket's page shows it, without what is not text or structure."""
    number = site.ticket()
    client(site, **settings).post(site.ref(number), text)
    page = site.page(number)
    found = re.search(r'id="journal-\d+-notes".*?>(.*?)</div>\s*</div>\s*</div>', page, re.DOTALL)
    assert found is not None, page
    return found[1]


@pytest.mark.needs("redmine")
@pytest.mark.parametrize(("format_", "setting"), [("common_mark", "markdown"), ("textile", "textile")])
def test_a_report_looks_right(site: Site, format_: str, setting: str) -> None:
    site.formatting(format_)
    html = shown(site, REPORT, formatting=setting)
    html = re.sub(r"&#(\d+);", lambda number: chr(int(number[1])), html)  # a browser shows the character
    assert "<strong>Published</strong>" in html
    assert re.search(r'<a href="http://127.0.0.1:1/commit/0123"[^>]*><code>0123456789ab</code></a>', html)
    assert re.search(r"<td>\s*<code>make test</code>\s*</td>\s*<td>\s*exit 0\s*</td>", html)
    assert re.search(r"<td>\s*dana with <code>/run fix -- a\|b</code>\s*</td>", html)
    assert re.search(r"<th>\s*what\s*</th>", html)
    assert "the head of main *now*" in html
    assert re.search(r"<li>\s*<code>src/a.py</code> \+1 -0\s*</li>", html)
    assert "two &lt;b&gt;words&lt;/b&gt;, 3 * 4 = 12, a_b_c" in html
    pre = re.search(r"<pre>(.*?)</pre>", html, re.DOTALL)
    assert pre is not None
    plain = re.sub(r"<[^>]+>", "", pre[1]).replace("\u200b", "")
    assert plain.strip() == 'if a &lt; b: print("|x|") # &lt;/pre&gt; *no* _markup_'
    assert html.count("<pre>") == 1


@pytest.mark.needs("redmine")
@pytest.mark.parametrize(("format_", "sign"), [("common_mark", "<code>fix</code>"), ("textile", "<code>fix</code>")])
def test_auto_finds_out_how_notes_are_read(town: TicketTown, format_: str, sign: str) -> None:
    town.site.formatting(format_)
    town.config = town.config.replace('formatting = "markdown"', 'formatting = "auto"')
    town.shop()
    town.start()
    number = town.site.ticket()
    town.site.change(number, notes="/run fix")
    town.poll()
    report = town.note(number, "# REPORT -")
    assert ("<code>fix</code>" in report) == (format_ == "textile")
    assert sign in town.site.page(number)
    assert report.startswith("# REPORT - run ")


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("hello @dana", "hello @\u200bdana"),
        ("`@dana`", "`@\u200bdana`"),
        ("dana@example.org", "dana@example.org"),
        ("see #7, (#8) and issue#9", "see #\u200b7, (#\u200b8) and issue#\u200b9"),
        ("##12 and #note-3", "##\u200b12 and #\u200bnote-3"),
        ("http://x/issues/7#note-3", "http://x/issues/7#note-3"),
        ("# Heading", "# Heading"),
        ("demo:#7", "demo:#\u200b7"),
        ("{{include(Page)}}", "{\u200b{include(Page)}}"),
        ("```\n@dana #7 {{x}}\n```\n@dana", "```\n@dana #7 {{x}}\n```\n@\u200bdana"),
        ("~~~~\n@dana\n~~~\n@devi\n~~~~\n#7", "~~~~\n@dana\n~~~\n@devi\n~~~~\n#\u200b7"),
        ("```\n@dana", "```\n@\u200bdana"),
    ],
)
def test_what_a_tracker_acts_on_is_made_harmless(text: str, harmless: str) -> None:
    assert neutral(text) == harmless


def test_nul_and_half_characters_are_replaced() -> None:
    assert clean("a\0b\ud800c") == "a\ufffdb\ufffdc"


@pytest.mark.parametrize(
    ("markdown", "textile"),
    [
        ("# One\n\ntwo", "h1. One\n\ntwo\n"),
        ("- a\n  - b\n- c", "* a\n** b\n* c\n"),
        ("1. a\n2. b", "# a\n# b\n"),
        ("> quoted", "quoted\n"),
        ("<!-- hidden -->\nx", "x\n"),
        ("a\nb  \nc", "a b\nc\n"),
        ("`a</code>b`", "<code>a<\u200b/code>b</code>\n"),
        ("![x](y) *z*", " _z_\n"),
        ("---", "---\n"),
    ],
)
def test_markdown_becomes_textile(markdown: str, textile: str) -> None:
    assert in_textile(markdown) == textile.lstrip(" ")

"""The page of a report in a real browser: it fits the screen, is styled, and runs nothing that strangers wrote."""

from __future__ import annotations

import html
import json
import random
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.dashboard.reportpage import page
from bot.masking import Masking
from bot.reports import Report
from bot.signing import SigningKey
from bot.statement import read, signed
from tests import browser
from tests.bot.reporting import hostile_report, report

pytestmark = pytest.mark.needs("chromium")

MEASURE = """
const seen = [...document.querySelectorAll("iframe")].map(frame => {
  const page = frame.contentDocument, root = page.documentElement, verdict = page.querySelector(".verdict");
  return {
    overflow: root.scrollWidth - root.clientWidth,
    border: getComputedStyle(verdict).borderLeftWidth,
    hidden: [...page.querySelectorAll("main *")].filter(one => one.getBoundingClientRect().left < 0).length,
    scripts: page.scripts.length, owned: Boolean(window.owned || frame.contentWindow.owned), title: page.title,
  };
});
document.body.textContent = "seen:" + JSON.stringify(seen) + ":seen";
"""


def shown(pages: Mapping[str, int], tmp_path: Path) -> tuple[list[dict[str, object]], str]:
    """What the browser makes of each of `pages` in a window of so many pixels, and what it complained about."""
    frames = "".join(
        f'<iframe width="{width}" height="800" srcdoc="{html.escape(text)}"></iframe>' for text, width in pages.items()
    )
    file = tmp_path / "frames.html"
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><body>{frames}<script>onload = () => {{{MEASURE}}}</script>',
        errors="replace",
    )
    document, said = browser.document(file, tmp_path)
    found = re.search(r"seen:(.*):seen", document)
    assert found is not None, said
    return json.loads(html.unescape(found[1])), said


def test_reports_fit_a_telephone_and_a_desk_and_run_nothing(key: SigningKey, tmp_path: Path) -> None:
    def text(of: Report) -> str:
        envelope = signed(of, key, Masking())
        return page(read(envelope), envelope)

    attack = "</pre></script><script>parent.owned = 1</script><img src=x onerror='parent.owned = 1'>" + "x" * 3_000
    plain = text(report(host="tower"))
    attacked = text(report(task=attack, subject=attack, asked_by=attack, does_not_close=attack))
    others = [text(hostile_report(random.Random(seed), commands=1)) for seed in range(8)]
    pages = {plain: 390, text(report(host="desk")): 1280, attacked: 390, **dict.fromkeys(others, 390)}
    seen, complaints = shown(pages, tmp_path)
    assert len(pages) == len(seen)
    for each in seen:
        assert each | {"overflow": 0, "border": "4px", "hidden": 0, "scripts": 0, "owned": False} == each
    assert "fix published · Leadsman" == seen[0]["title"]
    assert "CONSOLE" not in complaints, complaints

"""Where a key stands: every table and key of a text has its line, and no other."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from bot.config.places import Path, places

EVERYTHING = '''\
# a comment with [brackets] and "quotes
title = "a # b"   # c
[server]
listen = "x"
"quoted key".inner = 1
 [ forges . "git.hub" ]   # blanks around the parts
kind = 'lit\\eral'

[[task]]
name = "one"
run = [
  "a",  # "]"
  """b
]""", 'c',
]
env = { A = 1, B = { C = [ 1, { D = 2 } ] } }
  [[task.verify]]
  run = ["x"]
  [[task.verify]]
  run = ["y"]
[[task]]
name = \'\'\'two
lines\'\'\'
text = """five quotes: \\""" and ""\"""
verify = [ { run = ["z"] } ]
after = 2026-01-05T09:00:00Z
[task.deep.er]
at = -1.5e3
'''


def paths(value: Any, above: Path = ()) -> Iterator[Path]:
    """Every path of a TOML document, by the parser's own account."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield (*above, step)
        yield from paths(inner, (*above, step))


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (2, ("title",)),
        (3, ("server",)),
        (4, ("server", "listen")),
        (5, ("server", "quoted key")),
        (5, ("server", "quoted key", "inner")),
        (6, ("forges", "git.hub")),
        (7, ("forges", "git.hub", "kind")),
        (9, ("task", 0)),
        (11, ("task", 0, "run")),
        (12, ("task", 0, "run", 0)),
        (13, ("task", 0, "run", 1)),
        (14, ("task", 0, "run", 2)),
        (16, ("task", 0, "env", "B", "C", 1, "D")),
        (17, ("task", 0, "verify", 0)),
        (20, ("task", 0, "verify", 1, "run")),
        (21, ("task", 1)),
        (22, ("task", 1, "name")),
        (24, ("task", 1, "text")),
        (25, ("task", 1, "verify", 0, "run")),
        (26, ("task", 1, "after")),
        (27, ("task", 1, "deep", "er")),
        (28, ("task", 1, "deep", "er", "at")),
    ],
)
def test_a_key_stands_where_a_person_sees_it(line: int, path: Path) -> None:
    assert line == places(EVERYTHING)[path]


@pytest.mark.parametrize(
    "text",
    [
        EVERYTHING,
        "",
        "a=1",
        "a.b.c = 1\na.d = 2\n[e.f]\n[e]\n",
        "x = []\ny = {}\nz = [ [ ], [ [ 1 ] ] ]\n",
        's = ""\nt = \'\'\nu = """"""\nv = """\\\\"""\n',
        '"" = 1\n"a\\"b" = 2\n"\\u00e4" = 3\n',
        "a = { b.c = 1, 'd e' = [ 2 ] }",
        "[a]\r\nb = 1\r\n[[c]]\r\n",
        "n = nan\ni = +inf\nd = 2026-01-05 09:00:00\nt = 09:00:00 # x\n",
    ],
)
def test_every_key_the_parser_knows_has_a_place_and_no_other(text: str) -> None:
    assert set(paths(tomllib.loads(text))) == set(places(text))

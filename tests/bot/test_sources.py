"""Where a report to be checked comes from."""

from __future__ import annotations

import pytest

from bot import sources


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://github.com/a/b/pull/7#issuecomment-9", "https://api.github.com/repos/a/b/issues/comments/9"),
        ("https://git.example/a/b/issues/7#issuecomment-9", "https://git.example/api/v3/repos/a/b/issues/comments/9"),
        ("http://127.0.0.1:8780/local/a/b/7#comment-9", "http://127.0.0.1:8780/local/a/b/7/comments/9"),
        ("https://bot.example/under/local/a/b/7#comment-9", "https://bot.example/under/local/a/b/7/comments/9"),
        ("https://github.com/a/b/pull/7", None),
        ("https://github.com/a/b/pull/7#issuecomment-x", None),
        ("https://github.com/a/b/wiki/7#issuecomment-9", None),
        ("https://github.com/x/a/b/pull/7#issuecomment-9", None),
        ("https://bot.example/remote/a/b/7#comment-9", None),
        ("https://bot.example#comment-9", None),
    ],
)
def test_a_comment_is_asked_for_where_its_forge_tells_it_whole(url: str, asked: str | None) -> None:
    assert asked == sources.api_address(url)

"""The signature of a delivery."""

from __future__ import annotations

import pytest

from bot.secret import Secret
from webhooks.signature import Key, sign, verify

BODY = b"Hello, World!"
PUBLISHED = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
KEY = Key(Secret("It's a Secret to Everybody"))


def test_githubs_published_example_is_signed_as_published() -> None:
    assert sign(BODY, KEY.secret) == PUBLISHED
    assert verify(BODY, f"sha256={PUBLISHED}", [KEY]) == (KEY,)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "sha256=",
        PUBLISHED,
        f"sha1={PUBLISHED}",
        f"SHA256={PUBLISHED}",
        f"sha256={PUBLISHED[:-1]}",
        f"sha256={PUBLISHED}0",
        f"sha256={PUBLISHED.upper()}",
        f"sha256={PUBLISHED}, sha256={PUBLISHED}",
        f" sha256={PUBLISHED}",
        "sha256=" + "é" * 64,
        "sha256=" + "\U0001f600" * 64,
        "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59",
    ],
)
def test_anything_else_is_no_signature(header: str) -> None:
    assert verify(BODY, header, [KEY]) == ()


def test_the_body_is_signed_byte_by_byte() -> None:
    assert verify(BODY + b"\n", f"sha256={PUBLISHED}", [KEY]) == ()


def test_while_secrets_rotate_either_signs_and_it_is_known_which() -> None:
    new = Key(Secret("new"))
    assert verify(BODY, f"sha256={PUBLISHED}", [new, KEY]) == (KEY,)
    assert verify(BODY, f"sha256={sign(BODY, new.secret)}", [new, KEY]) == (new,)
    assert verify(BODY, f"sha256={PUBLISHED}", [new]) == ()


def test_without_a_secret_nothing_is_signed() -> None:
    assert verify(BODY, f"sha256={PUBLISHED}", []) == ()


def test_a_bare_signature_is_read_where_the_source_sends_one() -> None:
    assert verify(BODY, PUBLISHED, [KEY], prefix="") == (KEY,)
    assert verify(BODY, f"sha256={PUBLISHED}", [KEY], prefix="") == ()

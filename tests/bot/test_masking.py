"""No secret leaves: neither a configured one in any form it travels in, nor what looks like one."""

from __future__ import annotations

import pytest

from bot.masking import Masking
from bot.secret import Secret


@pytest.mark.parametrize(
    "text",
    [
        "token hunter2-hunter2 end",
        "https://x:hunter2-hunter2@host/",
        "q=hunter2-hunter2&x=1",
        "aHVudGVyMi1odW50ZXIy",
    ],
)
def test_a_configured_secret_is_masked_in_every_form(text: str) -> None:
    masked = Masking([Secret("hunter2-hunter2")])(text)
    assert "hunter2" not in masked
    assert "aHVudGVyMi" not in masked
    assert "***" in masked


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a" * 36,
        "github_pat_" + "B" * 40,
        "glpat-" + "c" * 20,
        "AKIA" + "D" * 16,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_secret_is_masked(secret: str) -> None:
    assert Masking()(f"before {secret} after") == "before *** after"


def test_credentials_in_a_url_are_masked_and_the_url_stays_readable() -> None:
    assert Masking()("git clone https://bot:pw@host.example/x.git") == "git clone https://***@host.example/x.git"


def test_ordinary_text_and_short_secrets_are_left_alone() -> None:
    text = "exit 0 after 3 tries, see https://host.example/path and a@b"
    assert text == Masking([Secret("3"), Secret("")])(text)

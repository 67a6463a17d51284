"""No secret leaves: neither a configured one in any form it travels in, nor what looks like one."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode

import pytest

from bot.invisible import made_visible
from bot.markdown import inline
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
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQ\n-----END PGP PRIVATE KEY BLOCK-----",
        "AIza" + "e" * 35,
        "npm_" + "f" * 36,
        "pypi-AgEI" + "g" * 60,
        "sk-" + "h" * 24,
    ],
)
def test_what_looks_like_a_secret_is_masked(secret: str) -> None:
    assert Masking()(f"before {secret} after") == "before *** after"


@pytest.mark.parametrize("credentials", ["bot:pw", ":token", "token:", "token", "x-oauth-basic:" + "j" * 900, "a:b:c"])
def test_credentials_in_a_url_are_masked_and_the_url_stays_readable(credentials: str) -> None:
    text = f"git clone https://{credentials}@host.example/x.git"
    assert Masking()(text) == "git clone https://***@host.example/x.git"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("authorization: bearer abc", "authorization: bearer ***"),
        ("curl -H 'Authorization: Bearer abc' x", "curl -H 'Authorization: Bearer ***' x"),
        ('{"Authorization": "token abc"}', '{"Authorization": "token ***"}'),
    ],
)
def test_what_stands_behind_authorization_is_masked(text: str, expected: str) -> None:
    assert expected == Masking()(text)


HIDDEN = "ghp_" + "a" * 36


@pytest.mark.parametrize(
    "text",
    [
        f"\x1b[32m{HIDDEN}\x1b[0m",
        f"\x1b[01;31mghp_\x1b[m\x1b[K{HIDDEN[4:]}",
        f"hunter2\x1b[1m-hunter2 {HIDDEN}",
        inline(f"it says {HIDDEN} and hunter2-hunter2"),
        f'{{"text": "one\\n{HIDDEN}\\tsk-{"b" * 30}"}}',
    ],
)
def test_a_secret_is_found_as_it_will_be_seen(text: str) -> None:
    masked = made_visible(Masking([Secret("hunter2-hunter2")])(text))
    assert "aaaa" not in masked
    assert "bbbb" not in masked
    assert "hunter2-" not in masked


def test_a_configured_secret_of_signs_is_found_once_they_are_escaped() -> None:
    assert "it is ***" == Masking([Secret("a@x_y*z#1")])(inline("it is a@x_y*z#1"))


def test_words_that_end_like_the_start_of_a_key_are_left_alone() -> None:
    text = "task-with-a-long-name-that-goes-on, disk-0123456789abcdefghijkl"
    assert text == Masking()(text)


def test_each_line_of_a_configured_key_is_masked() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKC\nAQEAwJ5dzGFx\n-----END RSA PRIVATE KEY-----"
    masking = Masking([Secret(key)])
    assert "it is *** then ***" == masking("it is AQEAwJ5dzGFx then MIIEpAIBAAKC")
    other = "-----BEGIN RSA PRIVATE KEY-----\nother\n-----END RSA PRIVATE KEY-----"
    assert "***" == masking(other), "its first line alone is no secret: it would hide that another key begins"


@pytest.mark.parametrize("before", ["", "u", "us", "use", "x-access-token"])
def test_a_configured_secret_is_found_inside_of_what_basic_authentication_sends(before: str) -> None:
    sent = b64encode(f"{before}:hunter2-hunter2".encode()).decode()
    masked = Masking([Secret("hunter2-hunter2")])(f"header {sent} end")
    assert "***" in masked
    for found in re.findall(r"[A-Za-z0-9+/]{4,}", masked):
        assert b"hunter" not in b64decode(found + "=" * (-len(found) % 4)), masked


@pytest.mark.parametrize("text", [f"a {HIDDEN} é\nhttps://u:pä@host/ b", "plain é", f"\x1b[31m{HIDDEN}\x1b[0m\nend"])
def test_masked_in_place_a_text_is_as_long_as_before_and_so_is_what_follows(text: str) -> None:
    masked = Masking().in_place(text)
    assert len(text.encode()) == len(masked.encode())
    assert text.encode()[-4:] == masked.encode()[-4:]
    assert "aaa" not in masked
    assert "pä" not in masked


@pytest.mark.parametrize(
    "begun",
    ["ghp_aa", "hunter2-", "https://bot:p", "eyJhbGciOiJI.eyJz", "AKIAAAAA", "x\n-----BEGIN PRIVATE KEY-----\nMI"],
)
def test_a_secret_that_was_half_written_is_masked_where_more_is_to_come(begun: str) -> None:
    masking = Masking([Secret("hunter2-hunter2")])
    masked = masking.in_place(f"it is {begun}", more_to_come=True)
    assert len(masked) == len(f"it is {begun}")
    assert masked.endswith("**")
    assert f"it is {begun}\n" == masking.in_place(f"it is {begun}\n", more_to_come=True) or "BEGIN" in begun


def test_ordinary_text_and_short_secrets_are_left_alone() -> None:
    text = "exit 0 after 3 tries, see https://host.example/path and a@b"
    assert text == Masking([Secret("3"), Secret("")])(text)

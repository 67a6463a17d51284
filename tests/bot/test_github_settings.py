"""`[forges.<name>] kind = "github"`: what it takes, what it refuses, and where its secrets come from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bot.errors import UserError
from bot.forges.github import Settings, connect, webhook_secrets
from bot.secret import Secret
from tests.bot.surroundings import around

TOKEN = {"kind": "github", "token_env": "TOKEN"}


def settings(**table: Any) -> Settings:
    return Settings.model_validate(TOKEN | table)


WEB = [
    ({}, "https://github.com"),
    ({"api_url": "https://api.github.com/"}, "https://github.com"),
    ({"api_url": "https://ghe.example.org/api/v3"}, "https://ghe.example.org"),
    ({"api_url": "https://ghe.example.org:8443/api/v3/"}, "https://ghe.example.org:8443"),
    ({"api_url": "https://api.acme.ghe.com"}, "https://acme.ghe.com"),
    ({"api_url": "http://127.0.0.1:9/api/v3"}, "http://127.0.0.1:9"),
    ({"clone_url": "https://git.example.org/"}, "https://git.example.org"),
]


@pytest.mark.parametrize(("table", "expected"), WEB)
def test_git_and_people_go_to_the_apis_host_or_where_it_is_said(table: dict[str, Any], expected: str) -> None:
    assert expected == settings(**table).web_url


ONE_WAY = "needs exactly one of token_env, token_file, or app_id with private_key_file"
BOTH = "app_id and private_key_file belong together"

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"kind": "github"}, ONE_WAY),
    (TOKEN | {"token_file": "token"}, ONE_WAY),
    (TOKEN | {"app_id": 7, "private_key_file": "key.pem"}, ONE_WAY),
    ({"kind": "github", "app_id": 7}, BOTH),
    ({"kind": "github", "private_key_file": "key.pem"}, BOTH),
    (TOKEN | {"token": "ghp_123"}, "Extra inputs"),
    (TOKEN | {"webhook_secret": "x"}, "Extra inputs"),
    ({"kind": "github", "token_env": "ghp_0123456789"}, "holds a token; it takes the NAME"),
    ({"kind": "github", "token_env": "github_pat_11AAAA"}, "holds a token; it takes the NAME"),
    ({"kind": "github", "token_env": "A TOKEN"}, "should match pattern"),
    (TOKEN | {"webhook_secret_env": ["gho_123"]}, "holds a token"),
    (TOKEN | {"api_url": "http://ghe.example.org/api/v3"}, "must begin with https"),
    (TOKEN | {"clone_url": "http://ghe.example.org"}, "must begin with https"),
    (TOKEN | {"api_url": "https://user:pass@ghe.example.org"}, "must be an address"),
    (TOKEN | {"write_pause_seconds": -1}, "greater than or equal"),
    (TOKEN | {"timeout_seconds": 0}, "greater than"),
    (TOKEN | {"app_id": "7"}, "valid integer"),
]


@pytest.mark.parametrize(("table", "why"), REFUSED)
def test_a_table_that_is_wrong_is_refused(table: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Settings.model_validate(table)


def test_every_key_says_what_it_means() -> None:
    assert [] == [name for name, field in Settings.model_fields.items() if not field.description]


def test_a_token_comes_from_its_variable_or_its_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("ghp_file\n")
    from bot.forges.github.settings import token

    by_file = Settings(kind="github", token_file="token")
    assert Secret("ghp_env") == token("gh", settings(), environ={"TOKEN": "ghp_env"}, base=tmp_path)
    assert Secret("ghp_file") == token("gh", by_file, environ={}, base=tmp_path)


MISSING: list[tuple[dict[str, Any], str]] = [
    ({"token_env": "TOKEN"}, r"\[forges.gh\] token_env: TOKEN is not set"),
    ({"token_file": "none"}, r"\[forges.gh\] token_file: .*none can't be read \(No such file"),
    ({"token_file": "empty"}, r"\[forges.gh\] token_file: .*empty is empty"),
    ({"token_file": "binary"}, r"binary can't be read \(it is no text\)"),
    ({"token_file": "lines"}, "has spaces or other characters"),
    ({"app_id": 7, "private_key_file": "none"}, r"\[forges.gh\] private_key_file: .*none can't be read"),
]


@pytest.mark.parametrize(("table", "why"), MISSING)
def test_a_secret_that_is_not_there_is_told_by_table_and_key(tmp_path: Path, table: dict[str, Any], why: str) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "lines").write_text("ghp_one\r\nX-Header: two")
    with pytest.raises(UserError, match=why) as caught:
        connect("gh", Settings.model_validate({"kind": "github"} | table), around(tmp_path))
    assert "ghp_one" not in caught.value.text


def test_webhook_secrets_are_all_that_are_named(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("three\n")
    table = settings(webhook_secret_env=["ONE", "TWO"], webhook_secret_file="secret")
    environ = {"ONE": "one", "TWO": "two"}
    assert tuple(map(Secret, ("one", "two", "three"))) == webhook_secrets(
        "gh", table, around(tmp_path, environ=environ)
    )
    assert () == webhook_secrets("gh", settings(), around(tmp_path))
    with pytest.raises(UserError, match=r"\[forges.gh\] webhook_secret_env: TWO is not set"):
        webhook_secrets("gh", table, around(tmp_path, environ={"ONE": "one"}))


def test_reading_a_configuration_loads_no_client() -> None:
    code = "import sys, bot.forges.github; sys.exit('github' in sys.modules or 'requests' in sys.modules)"
    assert 0 == subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode

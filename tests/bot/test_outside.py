"""What the configuration names of the outside: who may deliver with which secret, and what is never shown."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bot.config import load
from bot.errors import UserError
from bot.journal import Journal
from bot.secret import Secret
from bot.store import StoreSettings
from bot.store.engine import Store, open_store
from bot.wiring.outside import Outside, World, reach
from webhooks.signature import Key

NAMED = """\
[forges.hub]
kind = "github"
token_env = "TOKEN"
webhook_secret_env = ["HOOK"]

[[project]]
name = "shop"
forge = "hub"
repository = "acme/shop"
webhook_secret_env = ["SHOPS", "SHOPS_OLD"]
"""
IN_FILES = '[forges.hub]\nkind = "github"\ntoken_file = "token"\nwebhook_secret_file = "hook"\n'
SECRETS = {"TOKEN": "0a" * 20, "HOOK": "1b" * 20, "SHOPS": "2c" * 20, "SHOPS_OLD": "3d" * 20}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(StoreSettings(), tmp_path)
    yield opened
    opened.close()


def reached(folder: Path, store: Store, text: str, environ: Mapping[str, str]) -> Outside:
    file = folder / "leadsman.toml"
    file.touch(mode=0o600)
    file.write_text(text)
    journal = Journal(folder / "events.jsonl", time.time)
    return reach(load(file, environ, home=folder), World(home=folder, environ=environ), store, journal)


def test_a_repositorys_own_secrets_stand_beside_its_forges(tmp_path: Path, store: Store) -> None:
    assert (
        Key(Secret(SECRETS["HOOK"])),
        Key(Secret(SECRETS["SHOPS"]), "acme/shop"),
        Key(Secret(SECRETS["SHOPS_OLD"]), "acme/shop"),
    ) == reached(tmp_path, store, NAMED, SECRETS).tables["hub"].keys


def test_a_repositorys_secret_that_is_not_there_is_told(tmp_path: Path, store: Store) -> None:
    with pytest.raises(UserError, match=r"^\[\[project\]\] shop, webhook_secret_env: SHOPS_OLD is not set\. Set it"):
        reached(tmp_path, store, NAMED, SECRETS | {"SHOPS_OLD": " "})


@pytest.mark.parametrize(
    ("text", "environ", "hidden"),
    [
        (NAMED, SECRETS, list(SECRETS)),
        (NAMED, {name: f"{secret}\n" for name, secret in SECRETS.items()}, list(SECRETS)),
        (IN_FILES, {}, ["TOKEN", "HOOK"]),
    ],
    ids=["variables", "variables with a line's end", "files"],
)
def test_no_secret_is_shown_wherever_it_is_kept(
    tmp_path: Path, store: Store, text: str, environ: dict[str, str], hidden: list[str]
) -> None:
    for name in ("token", "hook"):
        (tmp_path / name).write_text(SECRETS[name.upper()] + "\n")
    masking = reached(tmp_path, store, text, environ).masking
    assert dict.fromkeys(hidden, "***") == {name: masking(SECRETS[name]) for name in hidden}

"""What must never be shown is known, wherever it comes from."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bot.config import load
from bot.journal import Journal
from bot.store.engine import open_store
from bot.wiring.outside import World, reach

CONFIG = """
[forges.github]
kind = "github"
token_file = "token"
webhook_secret_file = "hook"

[trackers.tickets]
kind = "redmine"
url = "http://127.0.0.1:1"
api_key_env = "REDMINE_KEY"
"""

LINES = ("b3BlbnNzaC1rZXktdjEAAAAA", "AAAAC3NzaC1lZDI1NTE5AAAA")
KEY = "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *LINES, "-----END OPENSSH PRIVATE KEY-----"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("token-in-a-file", "***"),
        ("hook-in-a-file", "***"),
        ("key-with-a-line-end", "***"),
        ("secret-of-a-run", "***"),
        ("AAAAC3NzaC1lZDI1NTE5AAAA", "***"),
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        ("/run/agent.sock", "/run/agent.sock"),
    ],
)
def test_each_secret_that_the_server_or_a_run_may_have_is_masked(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "token").write_text("token-in-a-file\n")
    (tmp_path / "hook").write_text("hook-in-a-file\n")
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "leadsman.toml").write_text(f'{CONFIG}\n[publish]\nsign_key_file = "{tmp_path / "key"}"\n')
    (tmp_path / "leadsman.toml").chmod(0o600)
    environ = {
        "REDMINE_KEY": "key-with-a-line-end\n",
        "MODEL_API_KEY": "secret-of-a-run",
        "PATH": "/usr/bin:/bin",
        "SSH_AUTH_SOCK": "/run/agent.sock",
    }
    config = load(tmp_path / "leadsman.toml", environ, home=tmp_path)
    store = open_store(config.store, tmp_path)
    try:
        journal = Journal(tmp_path / "events.jsonl", time.time)
        masking = reach(config, World(home=tmp_path, environ=environ), store, journal).masking
    finally:
        store.close()
    assert f"it is {expected}" == masking(f"it is {text}")

"""`leadsman event` beside others that want the same home."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bot import home
from bot.cli import main
from tests.webhooks.senders import comment


def test_an_event_waits_for_another_that_holds_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "leadsman.toml").write_text('[forges.github]\nkind = "github"\ntoken_env = "TOKEN"\n')
    (tmp_path / "event.json").write_bytes(comment("/run fix"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "0a" * 20)
    monkeypatch.setenv("LEADSMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "argv", ["leadsman", "event", "event.json", "--source=github", "--event=issue_comment"])
    said, end = "", time.monotonic() + 60
    with ThreadPoolExecutor(1) as pool:
        with home.serving(home.make(tmp_path / "home")):
            ended = pool.submit(main)
            while "Waiting for its end." not in said and time.monotonic() < end:
                said += capsys.readouterr().err
                time.sleep(0.02)
        assert 0 == ended.result(60)
    assert f"{tmp_path / 'home'} is held by pid " in said
    why = "github:acme/shop is in no [[project]] of the configuration."
    assert f"ignored: {why}\nNo run was started.\n" == capsys.readouterr().out

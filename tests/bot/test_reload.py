"""A reload that fails inside Leadsman is one that is said, and the server goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.cli.server import Serving
from bot.config import Config, load


def test_a_failure_of_our_own_leaves_the_bot_at_work_and_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "leadsman.toml").touch()
    config = load(tmp_path / "leadsman.toml", {}, home=tmp_path)

    def fails() -> Config:
        raise ZeroDivisionError("in the middle of it")

    serving = Serving(config, tmp_path, {"PATH": ""}, reread=fails)
    serving.start()
    bot = serving.bot
    serving.reload()
    assert bot is serving.bot
    assert "in the middle of it" in serving.checks()["configuration"]
    assert "Traceback" in caplog.text
    serving.stop()

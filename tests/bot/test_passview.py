"""Who holds the host's passes, for those who only look."""

from __future__ import annotations

import os
from pathlib import Path

from bot.cpus import host_size
from bot.passview import passes
from bot.pool import FOLDER, open_pool


def test_a_look_names_the_holders_and_takes_nothing(tmp_path: Path) -> None:
    environ = {FOLDER: str(tmp_path / "pool"), "PATH": os.environ["PATH"]}
    assert str(passes(environ)) == f"CPU passes: 0 of {host_size()} held"
    hold = open_pool(environ, host_size()).take(1, "fix 20261129-230446-6bedda", tell=print)
    assert str(passes(environ)) == f"CPU passes: 1 of {host_size()} held by fix 20261129-230446-6bedda"
    assert len(passes(environ).holders) == 1
    hold.release()
    assert passes(environ).holders == ()


def test_a_pool_that_cant_be_used_says_why(tmp_path: Path) -> None:
    (tmp_path / "pool").write_text("")
    assert "unavailable" in str(passes({FOLDER: str(tmp_path / "pool")}))

"""What admission sees of the load: recorded once a minute, and known again after a restart."""

from __future__ import annotations

from pathlib import Path

from bot import load
from bot.hostload import ENOUGH, LoadWindow

NOW = 1_800_000_000.0


def recorded(home: Path, *loads: float, at: float = NOW) -> None:
    for load1 in loads:
        load.record(home / load.FILE, load.Sample(at, load1, 0.0, 0.0, 2, None, None))


def test_few_samples_bound_nothing(tmp_path: Path) -> None:
    recorded(tmp_path, *[9.0] * (ENOUGH - 1))
    assert LoadWindow(tmp_path, {}, lambda: NOW).p95()[0] is None


def test_a_restarted_server_knows_the_last_quarter_of_an_hour(tmp_path: Path) -> None:
    recorded(tmp_path, *[100.0] * 9, at=NOW - 901)
    recorded(tmp_path, 1.0, 2.0, 3.0, 4.0, 5.0, at=NOW - 60)
    assert LoadWindow(tmp_path, {}, lambda: NOW).p95()[0] == 5.0


def test_a_sample_is_recorded_for_the_load_report(tmp_path: Path) -> None:
    window = LoadWindow(tmp_path, {"HOME": str(tmp_path)}, lambda: NOW)
    assert window.sample() == 60.0
    (taken,) = load.read(tmp_path / load.FILE).samples
    assert int(NOW) == taken.at

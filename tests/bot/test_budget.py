"""Turns and seconds: what fits, what is refused, and where a run's limit comes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.budget import BudgetSettings
from bot.errors import UserError
from bot.model import Limit
from bot.tasks import Task
from tests.bot.console import leadsman

FIX = Task(name="fix", run=("x",))


@pytest.mark.parametrize(
    ("fits", "per_turn", "turns", "run_cap", "job_cap"),
    [
        (True, 90, 10, 900, 1800),  # equal fits
        (False, 90, 11, 990 - 1, 1800),
        (True, 90, 20, 1800, 1800),
        (False, 90, 21, 3600, 1889),
        (False, 120, 16, 900, 1800),
        (True, 1, 1, 1, 1),
    ],
)
def test_a_total_fits_up_to_and_with_both_caps(
    fits: bool, per_turn: int, turns: int, run_cap: int, job_cap: int
) -> None:
    settings = BudgetSettings(
        per_turn_seconds=per_turn, turns={"medium": turns}, run_cap_seconds=run_cap, job_cap_seconds=job_cap
    )
    assert fits == (settings.misfits() == ())
    assert fits == settings.rows()[0].ok


def test_the_limit_of_a_run_says_where_it_comes_from() -> None:
    budget = BudgetSettings()
    assert Limit(270, 3, "[budget] medium (of task fix): 3 x 90 s") == budget.limit_for(FIX)
    assert Limit(450, 5, "[budget] hard (as asked): 5 x 90 s") == budget.limit_for(FIX, "hard")


def test_an_unknown_difficulty_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError) as refused:
        BudgetSettings().limit_for(FIX, "hrad")
    assert (
        'There is no difficulty "hrad", did you mean "hard"? Known ones are easy, medium, hard, diploma.'
        == refused.value.text
    )


def test_no_limit_is_given_out_that_does_not_fit() -> None:
    with pytest.raises(UserError, match="medium takes 16 x 120 s = 1920 s"):
        BudgetSettings(per_turn_seconds=120, turns={"medium": 16}).limit_for(FIX)


def test_the_command_prints_the_table_of_the_live_settings(tmp_path: Path) -> None:
    (tmp_path / "leadsman.toml").write_text("[budget]\nturns = { quick = 1, slow = 10 }\n")
    assert (
        0,
        (
            "difficulty  turns  s a turn  total s  min  run cap   job cap\n"
            "quick       1      90        90       1.5  fits 900  fits 1800\n"
            "slow        10     90        900      15   fits 900  fits 1800\n"
        ),
        "",
    ) == leadsman("budget", cwd=tmp_path)


def test_the_json_has_every_field_by_its_name(tmp_path: Path) -> None:
    done = leadsman("budget", "--json", cwd=tmp_path)
    found = json.loads(done.out)
    assert (90, 900, 1800) == (found["per_turn_seconds"], found["run_cap_seconds"], found["job_cap_seconds"])
    assert ["easy", "medium", "hard", "diploma"] == [row["difficulty"] for row in found["rows"]]
    assert {
        "difficulty": "diploma",
        "turns": 8,
        "per_turn_s": 90,
        "total_s": 720,
        "total_min": 12.0,
        "under_run_cap": True,
        "under_job_cap": True,
        "ok": True,
    } == found["rows"][3]


def test_bad_settings_print_the_table_and_the_warning_and_end_with_1(tmp_path: Path) -> None:
    (tmp_path / "leadsman.toml").write_text(
        "[budget]\nper_turn_seconds = 120\nturns = { hard = 16 }\n[fleet]\nslots = 0\n"
    )
    done = leadsman("budget", cwd=tmp_path)
    assert 1 == done.code
    assert "hard        16     120       1920     32   ABOVE 900  ABOVE 1800\n" in done.out
    assert "[budget] turns.hard: hard takes 16 x 120 s = 1920 s, which is above run_cap_seconds = 900" in done.err
    as_json = leadsman("--json", "budget", cwd=tmp_path)
    assert (1, False) == (as_json.code, json.loads(as_json.out)["rows"][0]["ok"])


@pytest.mark.parametrize(
    ("turns", "rows", "why"),
    [
        ({"easy": 0, "hard": 1}, [False, True], "[budget] turns.easy: must be at least 1, not 0.\n"),
        ({}, [], "[budget] turns: must have at least one difficulty.\n"),
    ],
)
def test_a_row_without_turns_and_a_table_without_rows_are_no_budget(
    tmp_path: Path, turns: dict[str, int], rows: list[bool], why: str
) -> None:
    written = ", ".join(f"{name} = {number}" for name, number in turns.items())
    (tmp_path / "leadsman.toml").write_text(f"[budget]\nturns = {{ {written} }}\n")
    done = leadsman("budget", "--json", cwd=tmp_path)
    assert (1, why) == (done.code, done.err)
    assert rows == [row["ok"] for row in json.loads(done.out)["rows"]]


def test_a_budget_that_can_not_be_read_is_told_by_line(tmp_path: Path) -> None:
    (tmp_path / "leadsman.toml").write_text('[budget]\nper_turn_seconds = "90"\n')
    done = leadsman("budget", cwd=tmp_path)
    assert 2 == done.code
    assert done.err.startswith('leadsman.toml:2: [budget] per_turn_seconds: must be a whole number, not "90"\n')

"""What the end of a run means."""

from __future__ import annotations

from typing import Any

import pytest

from bot.endings import Limits, meaning
from bot.words import Words

SPEC: dict[str, Any] = {"time_limit": 90.0, "startup_grace": 120}


@pytest.mark.parametrize(
    ("stop_reason", "word", "code", "state", "reason"),
    [
        (None, "", 0, "done", None),
        (None, "", 7, "failed", "exit_code"),
        (None, "", -9, "failed", "signal"),
        (None, "working: x", 0, "done", None),
        (None, "done: x", 0, "done", None),
        (None, "done: x", 1, "failed", "exit_code"),
        (None, "failed: x", 0, "failed", "said_failed"),
        (None, "resolved: x", 0, "done", "resolved"),
        (None, "resolved: x", 1, "failed", "exit_code"),
        (None, "blocked: x", 0, "blocked", "blocked"),
        (None, "needs-decision: x", 1, "blocked", "blocked"),
        ("blocked", "blocked: x", -15, "blocked", "blocked"),
        ("time_limit", "", -15, "failed", "time_limit"),
        ("time_limit", "", 0, "failed", "time_limit"),
        ("time_limit", "blocked: x", 0, "failed", "time_limit"),
        ("silent", "", -15, "failed", "silent"),
        ("cancelled", "", 0, "cancelled", "cancelled"),
        ("cancelled", "failed: x", -9, "cancelled", "cancelled"),
        ("superseded", "", -15, "cancelled", "superseded"),
        ("blocked", "done: x", 0, "done", None),
        ("blocked", "working: on my way out", 0, "done", None),
        ("blocked", "working: on my way out", -15, "blocked", "blocked"),
        ("blocked", "failed: terminated", 0, "blocked", "blocked"),
        ("blocked", "failed: terminated", 143, "blocked", "blocked"),
    ],
)
def test_who_ended_it_comes_first_then_its_last_word_then_the_exit_code(
    stop_reason: str | None, word: str, code: int, state: str, reason: str | None
) -> None:
    words = Words()
    words.hear(word)
    ended = meaning(SPEC, stop_reason, words, code)
    assert (state, reason) == (ended["state"], ended["stop_reason"])
    assert bool(ended["error"]) == (state in ("failed", "blocked"))


def test_a_blocked_run_says_what_it_waits_for() -> None:
    words = Words()
    words.hear("needs-decision: keep the old table?")
    assert meaning(SPEC, None, words, 0)["error"] == "keep the old table?"
    words.hear("failed: terminated")  # as a trap does, once it is told to end for that
    assert meaning(SPEC, "blocked", words, 143)["error"] == "keep the old table?"
    assert meaning(SPEC, None, words, 143)["error"] == "terminated"


@pytest.mark.parametrize(
    ("spec", "said", "now", "reason"),
    [
        ({}, [], 1e9, None),
        ({"time_limit": 5}, [], 14.9, None),
        ({"time_limit": 5}, [], 15, "time_limit"),
        ({"speaks": True}, [], 129.9, None),
        ({"speaks": True}, [], 130, "silent"),
        ({"speaks": True}, ["progress: 1"], 130, "silent"),
        ({"speaks": True}, ["round: 1/2"], 1e9, None),
        ({"speaks": True}, ["working: x"], 1e9, None),
        ({}, ["blocked: x"], 79.9, None),
        ({}, ["blocked: x"], 80, "blocked"),
        ({}, ["needs-decision: x", "blocked: y"], 80, "blocked"),
        ({}, ["blocked: x", "working: y"], 1e9, None),
        ({"blocked_grace": 3}, ["blocked: x"], 23, "blocked"),
        ({"time_limit": 5, "speaks": True}, [], 1e9, "time_limit"),
    ],
)
def test_a_limit_is_passed_when_its_time_has_come(
    spec: dict[str, Any], said: list[str], now: float, reason: str | None
) -> None:
    """A run that began at 10 and has spoken from 20 on."""
    words, limits = Words(), Limits(spec, 10)
    for line in said:
        words.hear(line)
        limits.hear(words.verb, 20)
    assert limits.passed(now, words) == reason

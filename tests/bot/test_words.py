"""The words of a run: what counts, what wins, what is ignored."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.words import AT_ONCE, MOST, Listener, Words, spoken


@pytest.mark.parametrize(
    ("line", "verb", "text"),
    [
        ("[2026-01-05T09:00:00Z] working: on it", "working", "on it"),
        ("[2026-01-05T09:00:00Z] needs-decision: keep: or drop?", "needs-decision", "keep: or drop?"),
        ("blocked: no key", "blocked", "no key"),
        ("[x] done:", "done", ""),
        ("  [x]   failed:  it broke  ", "failed", "it broke"),
        ("[x] resolved: übrig\r", "resolved", "übrig"),
    ],
)
def test_a_word_is_recognised(line: str, verb: str, text: str) -> None:
    words = Words()
    assert words.hear(line)
    assert (verb, text) == (words.verb, words.text)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "working",
        "[x] progress: 3",
        "[x] Done: x",
        "[x done: x",
        "done : x",
        "[x] undone: x",
        "round: x",
        "round: 1/x",
        "round: ²",
        "round: 1234567",
        "[a] [b] done: x",
        ":",
        "[]:",
    ],
)
def test_anything_else_is_ignored(line: str) -> None:
    words = Words()
    assert not words.hear(line)
    assert not words.heard


def test_the_newest_recognised_word_wins() -> None:
    words = Words()
    for line in ("[1] blocked: a", "[2] working: b", "[3] note: c", "round: 2/5", "nonsense"):
        words.hear(line)
    assert ("working", "b", 2, 5) == (words.verb, words.text, words.round, words.rounds)


def test_a_round_without_a_total_keeps_the_total() -> None:
    words = Words()
    words.hear("round: 2 / 5")
    words.hear("round: 3")
    assert (3, 5) == (words.round, words.rounds)


def test_what_is_said_is_one_line_that_is_heard_again() -> None:
    line = spoken("blocked", "two\nlines\x0b: [x] done: y", 1767603600)
    assert line == "[2026-01-05T09:00:00Z] blocked: two lines : [x] done: y\n"
    words = Words()
    assert words.hear(line)
    assert words.verb == "blocked"


def test_a_line_is_heard_once_and_only_when_it_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "status.log"
    listener = Listener(str(log))
    assert listener.fresh() == []
    with log.open("a") as file:
        file.write("[x] working: a\n[x] do")
        file.flush()
        assert listener.fresh() == ["[x] working: a"]
        assert listener.fresh() == []
        file.write("ne: b\n[x] failed: c")
        file.flush()
        assert listener.fresh() == ["[x] done: b"]
    assert listener.fresh(to_the_end=True) == ["[x] failed: c"]


def test_a_log_that_was_emptied_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "status.log"
    listener = Listener(str(log))
    log.write_text("[x] working: a long first text\n")
    listener.fresh()
    log.write_text("[x] done: b\n")
    assert listener.fresh() == ["[x] done: b"]


def test_the_words_of_an_earlier_round_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "status.log"
    log.write_text("[x] failed: a\n")
    listener = Listener(str(log))
    listener.skip()
    with log.open("a") as file:
        file.write("[x] done: b\n")
    assert listener.fresh() == ["[x] done: b"]


def test_a_word_in_a_flood_of_lines_is_heard_a_piece_at_a_time(tmp_path: Path) -> None:
    log = tmp_path / "status.log"
    log.write_text("[x] failed: a\n" + f"{'chatter: x' * 99}\n" * 3000 + "an end")
    listener, words, looks = Listener(str(log)), Words(), 0
    while not looks or listener.behind:
        looks += 1
        lines = listener.fresh(to_the_end=True)
        assert sum(map(len, lines)) <= 2 * AT_ONCE
        for line in lines:
            words.hear(line)
    assert (3, "failed", "an end") == (looks, words.verb, lines[-1])


def test_of_a_flood_beyond_all_measure_the_end_is_heard(tmp_path: Path) -> None:
    log = tmp_path / "status.log"
    with log.open("w") as file:
        file.truncate(1 << 32)
        file.seek(0, os.SEEK_END)
        file.write("\n[x] done: b\n")
    listener, looks = Listener(str(log)), 0
    while not looks or listener.behind:
        looks += 1
        lines = listener.fresh()
        assert sum(map(len, lines)) <= 2 * AT_ONCE
    assert ("[x] done: b", MOST // AT_ONCE) == (lines[-1], looks)


def test_a_fifo_or_a_link_in_the_place_of_the_log_says_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "target").write_text("done: x\n")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert Listener(str(tmp_path / "fifo")).fresh() == []
    assert Listener(str(tmp_path / "link")).fresh() == []
    assert Listener(str(tmp_path)).fresh() == []

"""What the server says of its reading of the configuration, and which of its readings answers a reload."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.cli.reload import _answer
from bot.rundir import write_json
from bot.serverstate import NAME, Configuration

AT = 1767603600.5


def reading(began: float, problem: str) -> dict[str, object]:
    return {"configuration": {"read_at": datetime.fromtimestamp(began, UTC).isoformat(), "problem": problem}}


@pytest.mark.parametrize(
    ("after", "read_at"),
    [
        (False, ""),
        (False, "soon"),
        (False, "2026-01-05T09:00:00.499999+00:00"),
        (True, "2026-01-05T09:00:00.500000+00:00"),
        (True, "2026-01-05T09:00:01+00:00"),
    ],
)
def test_a_reading_answers_who_asked_before_it_began(after: bool, read_at: str) -> None:
    assert after == Configuration(read_at, "").was_read_after(AT)


def test_a_reading_that_was_under_way_is_no_answer_to_a_reload(tmp_path: Path) -> None:
    write_json(tmp_path / NAME, reading(AT - 0.1, ""))
    later = threading.Timer(
        0.1, write_json, (tmp_path / NAME, reading(AT + 0.1, "what was written meanwhile is wrong"))
    )
    later.start()
    found = _answer(tmp_path, AT)
    later.join()
    assert found is not None
    assert "what was written meanwhile is wrong" == found.problem

"""A run that is asked to stop after its turn may end by itself, and is ended at its next round or its turn's end."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.liveness import ask_to_stop, reading
from bot.rundir import RunDir, read_json
from tests.bot.harbour import Fifo, Harbour

SAY = 'say() { echo "$1" >> "$LEADSMAN_STATUS_LOG"; }; '
SEES = 'until [ -e "$LEADSMAN_RUN_DIR/stop.json" ]; do sleep 0.05; done; '


def ask(run: RunDir, *, seconds: float = 3600) -> None:
    now = datetime.now(UTC)
    ask_to_stop(run.path, "dana, who took it", at=now, until=now + timedelta(seconds=seconds))


def heard(run: RunDir) -> dict[str, Any]:
    """What the supervisor has heard, once it has."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if (asked := reading(run.path).get("asked_to_stop")) is not None:
            return dict(asked)
        time.sleep(0.02)
    raise AssertionError(f"the supervisor heard nothing: {reading(run.path)}")


def test_a_command_that_looks_may_finish_and_end_by_itself(harbour: Harbour) -> None:
    run = harbour.start("sh", "-c", SEES + "echo finished")
    ask(run)
    status = harbour.ended(run)
    assert ("done", 0, None) == (status["state"], status["exit_code"], status["stop_reason"])
    assert "finished\n" == run.worker_log.read_text()


def test_a_run_is_ended_when_it_begins_its_next_round(harbour: Harbour) -> None:
    go = Fifo(harbour.folder / "go")
    run = harbour.start("sh", "-c", SAY + "say 'round: 1/3'; read x < go; say 'round: 2/3'; exec sleep 1000")
    ask(run)
    assert "dana, who took it" == heard(run)["by"]
    go.path.write_text("\n")
    status = harbour.ended(run)
    assert ("cancelled", "next_round", "dana, who took it") == tuple(
        status[name] for name in ("state", "stop_reason", "cancelled_by")
    )
    assert 2 == status["round"]


def test_a_run_that_goes_on_with_its_round_is_ended_when_its_turn_is_over(harbour: Harbour) -> None:
    run = harbour.start("sh", "-c", SAY + "while :; do say 'round: 1/3'; say 'working: on'; sleep 0.1; done")
    end = time.monotonic() + 30
    while reading(run.path).get("word") is None and time.monotonic() < end:
        time.sleep(0.02)
    ask(run, seconds=2)
    status = harbour.ended(run)
    assert ("cancelled", "turn_over") == (status["state"], status["stop_reason"])


def test_a_run_can_not_give_itself_more_time(harbour: Harbour) -> None:
    later = """echo '{"by": "me", "at": "now", "until": 9999999999}' > "$LEADSMAN_RUN_DIR/stop.json"; """
    run = harbour.start("sh", "-c", later + "echo; exec sleep 1000")
    assert "me" == heard(run)["by"]
    ask(run, seconds=1)
    assert "turn_over" == harbour.ended(run)["stop_reason"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"until": "soon"}', '{"until": true}', f'{{"until": 1{"0" * 400}}}', '{"until": -1}']
)
def test_what_is_no_asking_ends_nothing(harbour: Harbour, text: str) -> None:
    go = Fifo(harbour.folder / "go")
    run = harbour.start("sh", "-c", SAY + "read x < go; say 'round: 2'; say 'done: all'; read x < go")
    run.stop.write_text(text)
    go.path.write_text("\n")
    end = time.monotonic() + 30
    while reading(run.path).get("word") is None and time.monotonic() < end:
        time.sleep(0.02)
    go.path.write_text("\n")
    status = harbour.ended(run)
    assert ("done", None) == (status["state"], status["asked_to_stop"])


def test_asking_again_changes_nothing_and_a_removed_file_comes_back(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    now = datetime.now(UTC)
    for _ in range(2):
        ask_to_stop(run.path, "dana", at=now, until=now + timedelta(seconds=3600))
    first = read_json(run.stop)
    assert {"by": "dana", "at": f"{now:%Y-%m-%dT%H:%M:%SZ}"} == {k: first[k] for k in ("by", "at")} if first else None
    before = run.stop.stat().st_ino
    ask_to_stop(run.path, "dana", at=now, until=now + timedelta(seconds=3600))
    assert before == run.stop.stat().st_ino
    run.stop.unlink()
    ask_to_stop(run.path, "dana", at=now, until=now + timedelta(seconds=3600))
    assert first == read_json(run.stop)

"""`leadsman runs`: what was handed off, what the server knows, and a broken index."""

from __future__ import annotations

import json

import pytest

from bot.home import make
from bot.store import StoreSettings
from bot.store.engine import open_store
from tests.bot.harbour import Harbour


def test_runs_lists_the_newest_first_with_state_and_why(harbour: Harbour) -> None:
    harbour.make("true", run_id="20260105-090000-aaaaaa")
    failed = harbour.start("sh", "-c", "exit 3")
    harbour.ended(failed)
    done = harbour.leadsman("runs")
    assert (0, "") == (done.code, done.err)
    heading, newest, oldest = done.out.splitlines()
    assert heading.split() == ["RUN", "STATE", "ROUND", "TASK", "FOR", "SINCE", "WHY"]
    assert newest.split()[:4] == [failed.path.name, "failed", "1", "test"]
    assert newest.endswith("It ended with exit code 3.")
    assert oldest.split()[:2] == ["20260105-090000-aaaaaa", "created"]
    assert "\x1b" not in done.out


def test_runs_shows_as_many_as_asked_for_and_says_how_many_more_there_are(harbour: Harbour) -> None:
    for n in range(25):
        harbour.make("true", run_id=f"20260105-0900{n:02}-aaaaaa")
    assert len(harbour.leadsman("runs").out.splitlines()) == 21
    few = harbour.leadsman("runs", "--limit=2")
    assert [line.split()[0] for line in few.out.splitlines()[1:]] == [
        "20260105-090024-aaaaaa",
        "20260105-090023-aaaaaa",
    ]
    assert "23 older ones are not shown" in few.err
    every = harbour.leadsman("runs", "--all", "--json")
    assert len(json.loads(every.out)) == 25
    assert every.err == ""


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "x", "٣"])
def test_a_limit_that_is_no_count_is_refused(harbour: Harbour, limit: str) -> None:
    done = harbour.leadsman("runs", f"--limit={limit}")
    assert (2, "") == (done.code, done.out)


def test_a_store_without_runs_is_said_to_be_empty(harbour: Harbour) -> None:
    done = harbour.leadsman("runs", "--store", "here")
    assert (0, "") == (done.code, done.out)
    assert str(harbour.folder / "here") in done.err
    assert harbour.leadsman("runs", "--json").out == "[]\n"
    assert harbour.leadsman("runs", "--jsonl").out == ""


def test_a_line_of_jsonl_is_what_convergence_is_judged_from(harbour: Harbour) -> None:
    run = harbour.start("sh", "-c", "echo 'round: 3/5' >>$LEADSMAN_STATUS_LOG; exit 3")
    harbour.ended(run)
    done = harbour.leadsman("runs", "--jsonl")
    assert done.code == 0, done.err
    line = json.loads(done.out)
    assert {"run", "created_at", "status", "reached_review", "fix_rounds", "error"} <= line.keys()
    assert (run.path.name, "failed", False, 2) == tuple(
        line[key] for key in ("run", "status", "reached_review", "fix_rounds")
    )
    assert "exit code 3" in line["error"]
    file = harbour.folder / "runs.jsonl"
    file.write_text(done.out)
    from_file, from_home = (
        json.loads(harbour.leadsman("load", "report", "--json", *words).out)["convergence"]
        for words in (("--runs", str(file)), ())
    )
    assert from_file == from_home


def test_a_broken_index_is_said_and_the_directories_are_shown(harbour: Harbour) -> None:
    harbour.make("true", run_id="20260105-090000-aaaaaa")
    (harbour.store.parent / "leadsman.db").write_bytes(b"garbage" * 500)
    done = harbour.leadsman("runs")
    assert done.code == 0
    assert "20260105-090000-aaaaaa" in done.out
    assert "can't be read" in done.err
    judged = harbour.leadsman("runs", "--jsonl")
    assert (1, "") == (judged.code, judged.out)
    assert "can't be read" in judged.err


def test_an_empty_index_changes_nothing(harbour: Harbour) -> None:
    harbour.make("true", run_id="20260105-090000-aaaaaa")
    open_store(StoreSettings(), make(harbour.store.parent)).close()
    done = harbour.leadsman("runs")
    assert "20260105-090000-aaaaaa" in done.out
    assert done.err == ""

"""The verdict on the first ten runs: who belongs to them, when it is final, and what it is read from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.ages import Ages, Checked, Ended, Ran, Sealed, Verdict
from bot.convergence import JudgedRun, UnreadableRuns, Verdicts, judge, runs_of_file, timeout_class
from bot.model import Blocked, Cancelled, Failed, Lost, Outcome, Published, Sha, Unchanged
from bot.rundir import RunDir, write_json
from bot.runlist import looking_at, own_store, runs_of_home, runs_of_store
from bot.store import StoreSettings, schema
from bot.store.engine import Store, open_store
from tests.bot.test_load import environ, run

__all__ = ["environ"]

SHA = Sha("a" * 40)


def reached(number: int, status: str = "done", **more: Any) -> JudgedRun:
    return JudgedRun(f"r{number:02}", 1000.0 + number, status, reached_review=True, **more)


TEN = [reached(n) for n in range(10)]


def with_one(**different: Any) -> list[JudgedRun]:
    return [*TEN[:4], TEN[4]._replace(**different), *TEN[5:]]


@pytest.mark.parametrize(
    ("verdict", "runs"),
    [
        (None, []),
        (None, TEN[:9]),
        (True, TEN),
        (True, with_one(fix_rounds=2)),
        (False, with_one(fix_rounds=3)),
        (False, with_one(status="failed")),
        (False, with_one(status="cancelled")),
        (False, with_one(status="lost")),
        (False, with_one(error="agent did not reply in 60 s")),
        (True, with_one(error="a warning")),
        (None, with_one(status="running")),
        (None, with_one(status="blocked")),
        (None, with_one(status="some new word")),
        # a run that has not reached review yet may still belong to the ten
        (None, [*TEN, JudgedRun("early", 1003.5, "running")]),
        (None, [*TEN, JudgedRun("r08-b", 1009.0, "created")]),
        (True, [*TEN, JudgedRun("r09-b", 1009.0, "running")]),
        (True, [*TEN, JudgedRun("late", 1009.5, "running")]),
        (True, [*TEN, JudgedRun("early", 1003.5, "failed")]),
        # the eleventh is nobody
        (True, [*TEN, reached(10, "failed")]),
        (False, [*TEN, reached(10), JudgedRun("earlier", 999.9, "failed", reached_review=True)]),
    ],
)
def test_the_verdict_is_on_the_first_ten_that_reached_review(verdict: bool | None, runs: list[JudgedRun]) -> None:
    for order in (runs, runs[::-1]):
        assert verdict is judge(order, 0).converged


def test_the_cohort_begins_at_the_cutover_and_is_ordered_by_creation_then_id() -> None:
    twins = [JudgedRun(name, 1000.0, "done", reached_review=True) for name in ("b", "c", "a")]
    found = judge([*twins, *TEN[1:], reached(50), JudgedRun("before", 999.999, "running", reached_review=True)], 1000)
    assert ["a", "b", "c", *(f"r0{n}" for n in range(1, 8))] == [member.run for member in found.cohort]
    assert found.converged is True


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (None, None),
        (None, "exit code 1"),
        (None, "time out"),
        ("wall-clock", "timed out: the wall-clock limit"),
        ("did not reply", "it timed out since the agent did not reply"),
        ("timed out", "Timed out after 900 s, a cold start"),
        ("cold start", "COLD START took too long"),
    ],
)
def test_the_first_class_of_time_out_that_an_error_contains_names_it(name: str | None, error: str | None) -> None:
    assert name == timeout_class(error)


def convergence(environ: dict[str, str], *words: str, code: int = 0) -> dict[str, Any]:
    (Path(environ["LEADSMAN_HOME"]).parent / "samples").write_text("")
    samples = str(Path(environ["LEADSMAN_HOME"]).parent / "samples")
    ended = run(environ, "report", "--json", "--samples", samples, *words)
    assert code == ended.returncode, ended.stderr
    assert (code == 0) is (ended.stderr == "")
    found: dict[str, Any] = json.loads(ended.stdout)["convergence"]
    return found


def test_a_file_of_runs_is_judged_and_shown(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    runs = with_one(fix_rounds=3, error="cold start")
    file.write_text("".join(f"{item.jsonl()}\n" for item in runs))
    found = convergence(environ, "--runs", str(file))
    assert {"runs_wanted", "runs_considered", "cohort", "converged_within_2_fix_rounds"} == found.keys()
    assert (10, 10, False) == (found["runs_wanted"], found["runs_considered"], found["converged_within_2_fix_rounds"])
    assert {
        "run": "r04",
        "status": "done",
        "created_at": 1004.0,
        "fix_rounds": 3,
        "timed_out": "cold start",
        "converged": False,
    } == found["cohort"][4]
    text = run(environ, "report", "--runs", str(file)).stdout
    assert "Converged within 2 fix rounds: NO (10 of 10 reached review)." in text
    assert "  - r04: done, 3 fix rounds, cold start\n" in text


def test_the_later_line_about_a_run_counts_and_dates_are_moments(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    dated = {
        "run": "r05",
        "created_at": "1970-01-01T00:16:45Z",
        "status": "done",
        "reached_review": True,
        "fix_rounds": 0,
    }
    file.write_text("".join(f"{item.jsonl()}\n" for item in with_one(status="running")) + TEN[4].jsonl() + "\n")
    file.write_text(f"{file.read_text()}\n{json.dumps({**dated, 'unknown': [1]})}\n")
    assert convergence(environ, "--runs", str(file))["converged_within_2_fix_rounds"] is True
    # a file's verdict is not kept: another file may say another thing
    file.write_text("")
    assert convergence(environ, "--runs", str(file))["converged_within_2_fix_rounds"] is None


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "7",
        '{"run": "x"}',
        '{"run": "x", "created_at": 1, "status": "done", "reached_review": "yes", "fix_rounds": 0, "error": null}',
        '{"run": "x", "created_at": true, "status": "done", "reached_review": true, "fix_rounds": 0, "error": null}',
        '{"run": "x", "created_at": 1, "status": "done", "reached_review": true, "fix_rounds": -1, "error": null}',
        '{"run": "x", "created_at": "1970-01-01", "status": "done", "reached_review": true, "fix_rounds": 0}',
        '{"run": 5, "created_at": 1, "status": "done", "reached_review": true, "fix_rounds": 0, "error": null}',
        "[" * 5000,
        TEN[0].jsonl().replace("done", "do\udcffne"),
    ],
)
def test_a_line_that_is_no_run_is_told_and_the_others_are_read(tmp_path: Path, line: str) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text(f"{line}\n" + "".join(f"{item.jsonl()}\n" for item in TEN), errors="surrogateescape")
    with pytest.raises(UnreadableRuns, match=":1 is no run") as told:
        runs_of_file(file)
    assert TEN == list(told.value.readable)


def test_a_line_that_is_no_run_leaves_the_verdict_pending(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text("".join(f"{item.jsonl()}\n" for item in TEN) + "{")
    found = convergence(environ, "--runs", str(file), code=1)
    assert (10, None) == (found["runs_considered"], found["converged_within_2_fix_rounds"])


def test_a_missing_file_of_runs_can_not_be_read(environ: dict[str, str], tmp_path: Path) -> None:
    convergence(environ, "--runs", str(tmp_path / "missing"), code=1)


class Shop:
    """A home with a store and run directories, as the server leaves them."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True)
        self.home = home
        self.database = home / "leadsman.db"
        self.store: Store = open_store(StoreSettings(), home)

    def run(self, run_id: str, at: float, outcome: Outcome | None, *, sealed: bool = True, round_: int = 1) -> Path:
        """A run: closed with that outcome, or still open."""
        texts = dict.fromkeys(("project", "repo", "subject", "task", "asked_by", "answer", "head", "intent"), "x")
        closed = at + 60 if outcome is not None else None
        with self.store.write() as connection:
            row = {"run_id": run_id, "phase": "follow", "created_at": at, "due_at": at, "closed_at": closed, **texts}
            connection.execute(schema.runs.insert().values(**row))
        folder = self.home / "runs" / run_id
        folder.mkdir(parents=True)
        ages = Ages(folder)
        write_json(RunDir(folder).status, {"round": round_})
        if sealed:
            ages.write("sealed", Sealed(tip=SHA, commits=1, leftovers_committed=False, descends=True))
        if outcome is not None:
            ages.write("ended", Ended(outcome, datetime.fromtimestamp(at + 50, UTC)))
        return folder


@pytest.fixture
def shop(environ: dict[str, str]) -> Shop:
    return Shop(Path(environ["LEADSMAN_HOME"]))


PUBLISHED = Published(SHA, "refs/heads/leadsman/publish")


def a_check_timed_out(folder: Path) -> None:
    took = {"exit_code": None, "signal": 15, "seconds": 9.0, "waited": None, "log_bytes": 0, "log_sha256": ""}
    ran = Ran(what="make test", argv=("make", "test"), ended="failed", stop_reason="time_limit", log="log", **took)
    verdict = Verdict(argv=("make", "test"), tries=(ran,), at_base=None, wanted_red=False)
    Ages(folder).write("checked", Checked(tip=SHA, verdicts=(verdict,), not_run=()))


def the_time_limit_ended_it(folder: Path) -> None:
    write_json(RunDir(folder).status, {"round": 1, "stop_reason": "time_limit"})


def it_was_silent(folder: Path) -> None:
    write_json(RunDir(folder).status, {"round": 1, "stop_reason": "silent"})


def its_end_is_broken(folder: Path) -> None:
    (folder / "ended.json").write_text("{")


@pytest.mark.parametrize(
    ("status", "timed_out", "outcome", "happened"),
    [
        ("done", None, PUBLISHED, None),
        ("done", None, Unchanged("nothing to do"), None),
        ("failed", None, Failed("verify", "pytest: exit code 1"), None),
        ("failed", None, Blocked("a decision"), None),
        ("cancelled", None, Cancelled("alice"), None),
        ("lost", None, Lost("ended without reporting"), None),
        ("running", None, None, None),
        ("failed", "timed out", Failed("command", "too long"), the_time_limit_ended_it),
        ("failed", "did not reply", Failed("command", "not a word"), it_was_silent),
        ("failed", "timed out", Failed("verify", "not green"), a_check_timed_out),
        ("unreadable", None, PUBLISHED, its_end_is_broken),
    ],
)
def test_a_run_of_the_store_is_what_its_directory_says(
    shop: Shop, status: str, timed_out: str | None, outcome: Outcome | None, happened: Callable[[Path], None] | None
) -> None:
    folder = shop.run("20260101-000000-abcdef", 1000.0, outcome, round_=3 if happened is None else 1)
    if happened is not None:
        happened(folder)
    with looking_at(shop.database) as connection:
        (found,) = runs_of_store(connection, shop.home / "runs")
    assert ("20260101-000000-abcdef", 1000.0, status, True) == found[:4]
    assert timed_out == timeout_class(found.error)
    assert (2 if happened is None else 0) == found.fix_rounds
    assert (status in ("running", "unreadable")) is found.live


def test_the_verdict_waits_for_those_before_the_tenth_and_is_then_frozen(environ: dict[str, str], shop: Shop) -> None:
    folders = [shop.run(f"r{n:02}", 1000.0 + n, PUBLISHED) for n in range(10)]
    straggler = shop.run("early", 1000.5, None, sealed=False)
    shop.run("later", 2000.0, None, sealed=False)
    assert convergence(environ, "--since", "1000")["converged_within_2_fix_rounds"] is None
    Ages(straggler).write("ended", Ended(Failed("command", "exit code 1"), datetime.now(UTC)))
    final = convergence(environ, "--since", "1000")
    assert [f"r{n:02}" for n in range(10)] == [member["run"] for member in final["cohort"]]
    assert final["converged_within_2_fix_rounds"] is True

    # Whatever becomes of the store, this cutover is decided; another one is judged anew.
    shop.run("earlier still", 1000.1, Failed("command", "exit code 1"))
    Ages(folders[3]).write("ended", Ended(Lost("gone"), datetime.now(UTC)))
    assert final == convergence(environ, "--since", "1000.0")
    assert convergence(environ, "--since", "999")["converged_within_2_fix_rounds"] is False
    shop.store.close()
    shop.database.write_bytes(b"not a database any more")
    assert final == convergence(environ, "--since", "1000", code=1)


def test_another_store_is_read_and_not_touched(environ: dict[str, str], shop: Shop, tmp_path: Path) -> None:
    for n in range(10):
        shop.run(f"r{n:02}", 1000.0 + n, PUBLISHED)
    shop.store.close()
    other = {**environ, "LEADSMAN_HOME": str(tmp_path / "elsewhere")}
    before = everything_in(shop.home)
    words = ("--runs-db", str(shop.database))
    assert convergence(other, *words)["converged_within_2_fix_rounds"] is True
    assert before == everything_in(shop.home)
    assert 1 == len(list((tmp_path / "elsewhere" / "convergence").iterdir()))
    assert convergence(other)["converged_within_2_fix_rounds"] is None  # its own store has no such verdict


def test_a_store_in_use_is_read_as_it_is_now(environ: dict[str, str], shop: Shop) -> None:
    shop.run("r00", 1000.0, PUBLISHED)
    digest = hashlib.sha256(shop.database.read_bytes()).hexdigest()
    assert (shop.home / "leadsman.db-wal").stat().st_size > 0  # the row is only there yet
    assert 1 == convergence(environ, "--runs-db", str(shop.database))["runs_considered"]
    assert digest == hashlib.sha256(shop.database.read_bytes()).hexdigest()
    shop.run("r01", 1001.0, PUBLISHED)
    assert 2 == convergence(environ)["runs_considered"]


def test_no_store_yet_is_no_runs_and_makes_none(environ: dict[str, str], tmp_path: Path) -> None:
    assert 0 == convergence(environ)["runs_considered"]
    assert 0 == convergence(environ, "--runs-db", str(tmp_path / "none.db"))["runs_considered"]
    assert not (tmp_path / "none.db").exists()
    assert not (tmp_path / "home").exists()


def test_the_store_is_that_of_the_configuration_that_was_named(environ: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "named.toml"
    config.write_text('[store]\nurl = "postgresql://nobody@127.0.0.1:1/nothing"\n')
    assert 0 == convergence(environ, "--config", str(config), code=1)["runs_considered"]
    assert 2 == run(environ, "report", "--config", str(tmp_path / "missing.toml")).returncode
    config.write_text("")
    assert tmp_path / "leadsman.db" == own_store(tmp_path, str(config))


def test_run_directories_that_can_not_be_listed_cost_no_run_of_the_index(shop: Shop) -> None:
    shop.run("r00", 1000.0, PUBLISHED)
    loop = shop.home / "loop"
    loop.symlink_to(loop)
    with pytest.raises(UnreadableRuns, match="loop can't be read") as told:
        runs_of_home(shop.database, loop)
    assert ["r00"] == [item.run for item in told.value.readable]


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0nonsense", b"text\n" * 500])
def test_a_file_that_is_no_store_can_not_be_read(environ: dict[str, str], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.db").write_bytes(content)
    convergence(environ, "--runs-db", str(tmp_path / "odd.db"), code=1)
    assert content == (tmp_path / "odd.db").read_bytes()
    assert [] == list(tmp_path.glob("odd.db-*"))
    convergence(environ, "--runs-db", str(tmp_path), code=1)


def test_a_broken_kept_verdict_is_told_and_not_replaced(environ: dict[str, str], shop: Shop) -> None:
    for n in range(10):
        shop.run(f"r{n:02}", 1000.0 + n, PUBLISHED)
    Verdicts(shop.home).freeze(0.0, judge(TEN, 0))
    (kept,) = (shop.home / "convergence").iterdir()
    assert "since-0.json" == kept.name
    kept.write_text("{")
    assert convergence(environ, code=1)["converged_within_2_fix_rounds"] is None
    assert "{" == kept.read_text()


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

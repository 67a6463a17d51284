"""SIGKILL to whoever starts, supervises or shows a run, at any moment: no run is doubled, orphaned or lied about."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from bot.liveness import LOST, end, reading
from bot.rundir import all_runs, find, is_locked
from tests.bot.console import SCRIPT
from tests.bot.harbour import WAIT, Fifo, Harbour, alive, await_end, command, kill, record, supervisor

ROUNDS = 24


@pytest.mark.parametrize("driver", ["setsid", pytest.param("tmux", marks=pytest.mark.needs("tmux"))])
def test_a_caller_killed_with_its_group_leaves_a_whole_run_or_a_record_that_says_starting(
    harbour: Harbour, driver: str
) -> None:
    """Killed at times spread over a whole handoff and beyond: before its record, between its steps, after its end."""
    began = time.monotonic()
    harbour.hand_off("sleep", "1000", options=("--driver", driver))
    whole = time.monotonic() - began
    seen = set()
    for n in range(ROUNDS):
        mark = harbour.folder / f"ran-{n}"
        script = f"echo >>{mark}; exec sleep 1000"
        caller = harbour.popen("handoff", "--driver", driver, "--store", f"store-{n}", "--", "sh", "-c", script)
        if n < ROUNDS - 1:
            time.sleep(n * 1.3 * whole / ROUNDS)
        else:
            caller.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(caller.pid, signal.SIGKILL)
        out, _ = caller.communicate()
        seen.add(_what_is_left(harbour, harbour.folder / f"store-{n}", mark, out.decode()))
    assert "a run" in seen


def _what_is_left(harbour: Harbour, store: Path, mark: Path, out: str) -> str:
    runs = all_runs(store)
    if not runs:
        assert "waiting" not in out
        assert not mark.exists()
        return "nothing"
    [run] = runs
    await_decision(run.path)
    kept = record(run)
    assert (run.path.name, str(run.path)) == (kept["run_id"], kept["run_dir"])
    if kept["status"] == "starting":
        assert "waiting" not in out
        assert not is_locked(run.alive_lock)
        assert not mark.exists(), "a command that runs has a record that names it"
        assert reading(run.path)["state"] in ("created", "lost")
        return "a record"
    assert ("waiting", command(run), supervisor(run)) == (kept["status"], kept["pid"], kept["supervisor_pid"])
    assert alive(kept["pid"])
    until = time.monotonic() + WAIT
    while not (mark.exists() and mark.read_text()):
        assert time.monotonic() < until, f"{run.run_id} runs, and has done nothing in {WAIT} s"
        os.sched_yield()
    assert end(run.path)["state"] == "cancelled"
    assert mark.read_text() == "\n", "it ran once"
    return "a run"


def await_decision(path: Path) -> None:
    """Returns when the start is over, one way or the other: the record is complete, or the lock is free."""
    until = time.monotonic() + WAIT
    while is_locked(path / "alive.lock") and '"starting"' in (path / "waiting.json").read_text():
        assert time.monotonic() < until, f"{path} is neither started nor given up after {WAIT} s"
        os.sched_yield()


def test_a_caller_killed_after_its_start_is_not_missed(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    caller = harbour.popen(
        "handoff", "--driver", "setsid", "--wait", "1000", "--", "sh", "-c", "echo >said; sleep 1000"
    )
    said.line()
    os.killpg(caller.pid, signal.SIGKILL)
    caller.communicate()
    [run] = all_runs(harbour.store)
    await_decision(run.path)
    assert ("waiting", "running") == (record(run)["status"], reading(run.path)["state"])


def test_a_killed_supervisor_is_told_and_cancel_ends_what_is_left(harbour: Harbour) -> None:
    run = harbour.hand_off("sleep", "1000")
    pid = command(run)
    kill(supervisor(run))
    shown = harbour.leadsman("status", run.path.name, "--json")
    assert '"supervisor": "gone"' in shown.out
    assert '"running"' in shown.out
    for verb in ("resume", "retry"):
        refused = harbour.leadsman(verb, run.path.name)
        assert refused.code == 1
        assert str(pid) in refused.err
    done = harbour.leadsman("cancel", run.path.name)
    assert done.code == 0, done
    assert not alive(pid)
    assert reading(run.path)["state"] == "cancelled"


def test_a_supervisor_killed_at_the_start_is_told_as_the_run_is(harbour: Harbour) -> None:
    """Its command does it, at once: before the record is complete, or just after. What runs is never told to have
    failed, since whoever reads that would start another."""
    for _ in range(6):
        done = harbour.leadsman("handoff", "--driver", "setsid", "--", "sh", "-c", "kill -9 $PPID; exec sleep 1000")
        run = find(harbour.store, done.out.split()[1])
        assert (0, f"waiting {run.path.name} round 1") == (done.code, " ".join(done.out.split()[:4])), done
        status, kept = reading(run.path), record(run)
        assert ("running", "waiting", True, status["pid"]) == (
            status["state"],
            kept["status"],
            kept["found"],
            kept["pid"],
        )
        assert alive(kept["pid"])


def test_a_run_that_asks_about_itself_is_alive_whatever_became_of_its_supervisor(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    ask = f"'{SCRIPT}' --store '{harbour.store}'"
    script = f"""
kill -9 $PPID
until {ask} status $LEADSMAN_RUN_ID --json | grep '"gone"'; do :; done
for verb in resume cancel retry; do {ask} $verb $LEADSMAN_RUN_ID; echo "$verb $?"; done 2>&1
echo >said; exec sleep 1000
"""
    run = harbour.hand_off("sh", "-c", script)
    said.line()
    log = run.worker_log.read_text()
    for line in ("resume 1\n", "retry 1\n", "cancel 1\n", "It is cancelled once that has ended"):
        assert line in log
    assert len(all_runs(harbour.store)) == 1
    pid = command(run)
    assert alive(pid)
    kill(pid)
    assert reading(run.path)["state"] == "cancelled"


def test_a_killed_supervisor_and_command_are_lost_and_resume_starts_them_again(harbour: Harbour) -> None:
    run = harbour.hand_off("sh", "-c", "echo again >>ran; exec sleep 1000")
    pid = command(run)
    kill(supervisor(run))
    kill(pid)
    lost = harbour.leadsman("wait", run.path.name)
    assert lost.code == 1
    assert LOST in lost.out
    again = harbour.leadsman("resume", run.path.name)
    assert again.code == 0, again
    assert again.out.startswith(f"waiting {run.path.name} round 2 ")
    assert reading(run.path)["state"] == "running"
    assert alive(command(run))


def test_a_killed_command_is_failed_by_its_signal(harbour: Harbour) -> None:
    run = harbour.hand_off("sleep", "1000")
    os.kill(command(run), signal.SIGKILL)
    status = harbour.ended(run)
    assert ("failed", signal.SIGKILL) == (status["state"], status["signal"])


def test_a_supervisor_killed_while_it_ends_its_run_is_made_up_for(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    run = harbour.hand_off(
        "sh", "-c", "trap 'echo term >said; trap exit TERM' TERM; echo up >said; while :; do sleep 1000 & wait; done"
    )
    said.line()
    pid = command(run)
    canceller = harbour.popen("cancel", run.path.name)
    assert said.line() == "term"
    kill(supervisor(run))
    out, err = canceller.communicate(timeout=WAIT)
    assert canceller.returncode == 0, (out, err)
    assert not alive(pid)
    assert reading(run.path)["state"] == "cancelled"


def test_a_killed_canceller_leaves_a_cancel_that_goes_on(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    script = "trap 'echo term >said' TERM; echo up >said; while :; do sleep 1000 & wait; done"
    run = harbour.start("sh", "-c", script, kill_grace=0.3)
    said.line()
    canceller = harbour.popen("cancel", run.path.name)
    assert said.line() == "term"
    os.killpg(canceller.pid, signal.SIGKILL)
    canceller.communicate()
    assert harbour.ended(run)["state"] == "cancelled"


def test_a_cancel_that_a_start_takes_for_an_old_one_is_asked_for_again(harbour: Harbour) -> None:
    run = harbour.hand_off("sleep", "1000")
    watcher = supervisor(run)
    os.kill(watcher, signal.SIGSTOP)
    canceller = harbour.popen("cancel", run.path.name)
    until = time.monotonic() + WAIT
    while not run.cancel.exists():
        assert time.monotonic() < until
    run.cancel.unlink()  # as `resume` does, which may begin another round at any time
    os.kill(watcher, signal.SIGCONT)
    out, err = canceller.communicate(timeout=WAIT)
    assert (0, "cancelled") == (canceller.returncode, reading(run.path)["state"]), (out, err)


def test_everything_of_a_run_killed_at_once_is_lost(harbour: Harbour) -> None:
    run = harbour.hand_off("sleep", "1000")
    pid, watcher = command(run), supervisor(run)
    os.kill(watcher, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    kill(watcher)
    await_end(pid)
    assert reading(run.path)["state"] == "lost"

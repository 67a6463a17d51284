"""Whether a run is alive, and its end, when nobody can be asked any more."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from typing import Any

import pytest

from bot import liveness, processes
from bot.liveness import (
    LOST,
    SHUT_DOWN,
    cancel_asked,
    end,
    is_interrupted,
    pidfd_of_supervisor,
    reading,
    request_cancel,
    settled,
)
from bot.living import remains
from bot.rundir import RunDir, is_locked, read_json, take_lock, write_json
from tests.bot.console import SCRIPT
from tests.bot.harbour import PYTHON, WAIT, Fifo, Harbour, alive, await_end, command, kill, supervisor


def changed(run: RunDir, **fields: Any) -> None:
    """Rewrites fields of a status, as another time or host would have them."""
    write_json(run.status, {**(read_json(run.status) or {}), **fields})


def innocent() -> subprocess.Popen[bytes]:
    """A process that has nothing to do with any run, in a session of its own."""
    return subprocess.Popen(["sleep", "1000"], start_new_session=True)


def test_a_supervisor_that_was_killed_leaves_its_run_going_and_a_reader_says_so(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    pid = command(run)
    kill(supervisor(run))
    status = reading(run.path)
    assert ("running", "gone") == (status["state"], status["supervisor"])
    assert read_json(run.status) == {**status, "supervisor": "alive"}, "what is so is only said"
    assert alive(pid)
    assert [pid] == [process.pid for process in remains(run.path)]


def test_a_run_of_which_nothing_is_alive_is_lost(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    pid = command(run)
    kill(supervisor(run))
    kill(pid)
    status = reading(run.path)
    assert ("lost", LOST) == (status["state"], status["error"])
    assert status == read_json(run.status)
    assert status["finished"]
    assert status == reading(run.path)


def test_the_end_of_what_is_left_makes_a_run_lost(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    run = harbour.start("sh", "-c", "setsid env -i sleep 1000 & echo $! >said; exec sleep 1000")
    child = int(said.line())
    pid = command(run)
    kill(supervisor(run))
    assert end(run.path)["state"] == "lost"
    assert not alive(pid)
    assert not alive(child)


def test_the_end_of_what_is_left_cancels_nothing_while_somebody_writes_a_run_off(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    kill(supervisor(run))
    assert reading(run.path)["supervisor"] == "gone"
    lock = take_lock(run.alive_lock)  # as a reader does that writes down what came of it
    assert lock is not None
    liveness.end_what_is_left(run.path)
    os.close(lock)
    assert (reading(run.path)["state"], cancel_asked(run.path)) == ("lost", None)


def test_what_ignores_sigterm_is_killed(harbour: Harbour, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "KILL_GRACE", 0.3)
    said = Fifo(harbour.folder / "said")
    run = harbour.start("sh", "-c", "trap '' TERM; echo >said; while :; do sleep 1000; done")
    said.line()
    pid = command(run)
    kill(supervisor(run))
    end(run.path)
    assert not alive(pid)


@pytest.mark.parametrize("kept", ["group", "session", "environment", "parent"])
def test_what_is_left_is_found(harbour: Harbour, kept: str) -> None:
    scripts = {
        "group": "env -i sleep 1000 & echo $! >said",
        "session": "set -m; sleep 1000 & env -i sleep 1000 & echo $! >said",
        "environment": "setsid sh -c 'echo $$ >said; exec sleep 1000' &",
        "parent": "setsid sh -c 'env -i sleep 1000 & echo $! >said; wait' &",
    }
    said = Fifo(harbour.folder / "said")
    run = harbour.start("sh", "-c", f"{scripts[kept]}\nexec sleep 1000")
    left = int(said.line())
    pid = command(run)
    kill(supervisor(run))
    kill(pid)
    assert left in [process.pid for process in remains(run.path)]
    assert reading(run.path)["state"] == "running"
    end(run.path)
    assert not alive(left)


def test_after_a_reboot_a_run_is_lost_whatever_has_its_pids_now(harbour: Harbour) -> None:
    run = harbour.make("true")
    stranger = innocent()
    try:
        process = processes.look(stranger.pid)
        assert process
        changed(
            run,
            state="running",
            boot_id="00000000-0000-0000-0000-000000000000",
            pid=stranger.pid,
            pid_started=process.started,
            supervisor_pid=stranger.pid,
            supervisor_started=process.started,
        )
        assert remains(run.path) == []
        assert pidfd_of_supervisor(run.path) is None
        assert end(run.path)["state"] == "lost"
        assert alive(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()


def test_a_stranger_with_a_used_pid_is_never_signalled(harbour: Harbour) -> None:
    run = harbour.make("true")
    stranger = innocent()
    try:
        process = processes.look(stranger.pid)
        assert process
        numbers = {"pid": stranger.pid, "pid_started": process.started - 1, "supervisor_pid": stranger.pid}
        changed(run, state="running", boot_id=processes.boot_id(), supervisor_started=process.started - 1, **numbers)
        assert remains(run.path) == []
        assert pidfd_of_supervisor(run.path) is None
        assert end(run.path)["state"] == "lost"
        assert not processes.send(processes.Process(stranger.pid, _stat(process.started - 1)), signal.SIGKILL)
        assert alive(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()


def test_a_session_whose_number_is_a_strangers_now_is_none_of_the_runs(harbour: Harbour) -> None:
    run = harbour.make("true")
    leader = subprocess.Popen(
        ["sh", "-c", "sleep 1000 >/dev/null & echo $!"], start_new_session=True, stdout=subprocess.PIPE
    )
    stranger = int(leader.communicate()[0])
    try:
        process = processes.look(stranger)
        assert process
        assert leader.pid == process.session
        numbers = {"pid": leader.pid - 1, "pid_started": process.started - 2, "supervisor_pid": leader.pid}
        changed(run, state="running", boot_id=processes.boot_id(), supervisor_started=process.started - 2, **numbers)
        assert remains(run.path) == []
        assert end(run.path)["state"] == "lost"
        assert alive(stranger)
    finally:
        os.kill(stranger, signal.SIGKILL)


def _stat(started: int) -> bytes:
    return b"1 (x) S 1 1 1 " + b"0 " * 15 + str(started).encode()


def test_whoever_asks_is_not_taken_for_a_remnant(harbour: Harbour) -> None:
    run = harbour.make("true")
    changed(run, state="running", boot_id="another")
    code = "import sys; from pathlib import Path; from bot.liveness import end; print(end(Path(sys.argv[1]))['state'])"
    environ = {**os.environ, "LEADSMAN_RUN_ID": run.path.name}
    asked = subprocess.run(
        ["sh", "-c", '"$@"; echo after', "sh", PYTHON, "-c", code, run.path],
        env=environ,
        stdout=subprocess.PIPE,
        check=True,
    )
    assert asked.stdout.split() == [b"lost", b"after"]


def test_a_run_next_door_is_untouched(harbour: Harbour) -> None:
    here, there = harbour.start("sleep", "1000"), harbour.start("sleep", "1000")
    kill(supervisor(here))
    assert end(here.path)["state"] == "lost"
    assert reading(there.path)["state"] == "running"
    assert alive(command(there))


def test_a_status_that_can_not_be_read_counts_as_alive(harbour: Harbour) -> None:
    run = harbour.start("true")
    harbour.ended(run)
    run.status.write_text('{"state": "do')
    status = reading(run.path)
    assert status["state"] == "running"
    assert "status.json" in status["error"]
    assert run.status.read_text() == '{"state": "do'


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"state": 7}', '{"state": "flying"}', "\xff"])
def test_a_run_whose_status_is_broken_can_be_given_up_once_nothing_of_it_is_alive(harbour: Harbour, text: str) -> None:
    run = harbour.start("sleep", "1000")
    pid = command(run)
    kill(supervisor(run))
    run.status.write_text(text, "latin-1")
    assert (reading(run.path)["state"], reading(run.path)["supervisor"]) == ("running", "unknown")
    done = harbour.leadsman("cancel", run.path.name)
    assert (0, f"{run.path.name} cancelled round 1 cancelled\n", "") == done
    assert not alive(pid)
    assert reading(run.path)["state"] == "cancelled"


def test_a_run_that_removed_its_status_runs_while_it_is_alive(harbour: Harbour) -> None:
    run = harbour.start("sh", "-c", 'rm "$LEADSMAN_RUN_DIR/status.json"; echo > done; exec sleep 1000')
    end_of_it = pidfd_of_supervisor(run.path)
    while not (harbour.folder / "done").exists():
        select.select([], [], [], 0.01)
    assert reading(run.path)["state"] == "running"
    assert end(run.path)["state"] == "cancelled"
    if end_of_it is not None:
        os.close(end_of_it)


@pytest.mark.needs("namespaces")
def test_a_run_is_told_of_and_ended_where_nothing_can_be_written(harbour: Harbour) -> None:
    gone, left = harbour.start("sleep", "1000"), harbour.start("sleep", "1000")
    kill(supervisor(gone))
    end(gone.path)
    changed(gone, state="running")
    pid = command(left)
    kill(supervisor(left))
    script = (
        'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 9; "$2" status --brief "$3"; "$2" cancel "$4"'
    )
    call = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    argv = [*call, harbour.store, SCRIPT, gone.path.name, left.path.name]
    environ = {**os.environ, "LEADSMAN_HOME": str(harbour.store.parent)}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"{gone.path.name} lost round 1 {LOST}\n"), done
    assert "our mistake" not in done.stderr
    assert not alive(pid)


def test_a_store_that_can_not_be_read_is_told(harbour: Harbour) -> None:
    loop = harbour.folder / "loop"
    loop.symlink_to(loop)
    for words in (["status", "2026"], ["runs"], ["runs", "--jsonl"]):
        done = harbour.leadsman(*words, "--store", str(loop))
        assert (1, "") == (done.code, done.out)
        assert f"{loop} can't be read" in done.err


def test_what_is_of_the_wrong_kind_in_a_status_is_left_out_and_costs_no_other_run(harbour: Harbour) -> None:
    wrong = {"round": "x", "rounds": [], "pid": 10**30, "supervisor_pid": [1], "error": {}, "word": "w", "run_id": 7}
    run, other = harbour.make("true"), harbour.make("true")
    changed(run, state="running", future={"kept": 1}, boot_id=processes.boot_id(), **wrong)
    status = reading(run.path)
    assert (run.path.name, "lost", 1, {"kept": 1}) == tuple(
        status[name] for name in ("run_id", "state", "round", "future")
    )
    assert not {"pid", "supervisor_pid", "word", "rounds"} & status.keys()
    changed(other, state="done", **wrong)
    listed = harbour.leadsman("runs", "--json")
    assert {"lost", "done"} == {line["state"] for line in json.loads(listed.out)}
    assert harbour.leadsman("runs", "--jsonl").code == 0


def test_a_run_that_never_started_is_as_it_was(harbour: Harbour) -> None:
    run = harbour.make("true")
    assert reading(run.path)["state"] == "created"
    assert reading(harbour.folder / "nowhere")["state"] == "created"


def test_a_run_that_never_started_can_be_cancelled(harbour: Harbour) -> None:
    run = harbour.make("true")
    assert not request_cancel(run.path, "a test")
    assert end(run.path)["state"] == "cancelled"


def test_a_cancelled_run_says_who_cancelled_it_and_why(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    assert cancel_asked(run.path) is None
    assert request_cancel(run.path, "alice", reason="superseded")
    assert request_cancel(run.path, "bob")
    status = harbour.ended(run)
    assert ("cancelled", "superseded", "alice") == tuple(status[n] for n in ("state", "stop_reason", "cancelled_by"))
    assert cancel_asked(run.path) == "alice"


def test_a_run_that_was_cancelled_before_its_command_ran_never_runs_it(harbour: Harbour) -> None:
    run = harbour.make("touch", "ran")
    write_json(run.cancel, {"by": "alice"})
    from bot.launchers import start

    started = start(run.path, "setsid")
    assert started.error
    assert harbour.ended(run)["state"] == "cancelled"
    assert not (harbour.folder / "ran").exists()


@pytest.mark.parametrize("instead", ["nothing", "file", "link"])
def test_a_control_that_the_run_took_away_does_not_save_it(harbour: Harbour, instead: str) -> None:
    run = harbour.start("sleep", "1000")
    run.control.unlink()
    if instead == "file":
        run.control.write_text("mine")
    if instead == "link":
        run.control.symlink_to(harbour.folder / "elsewhere")
    assert request_cancel(run.path, "a test")
    assert harbour.ended(run)["state"] == "cancelled"
    assert not (harbour.folder / "elsewhere").exists()


def test_sigterm_to_the_supervisor_cancels(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    os.kill(supervisor(run), signal.SIGTERM)
    status = harbour.ended(run)
    assert ("cancelled", "a signal") == (status["state"], status["cancelled_by"])
    changed(run, boot_id="another")
    assert reading(run.path)["state"] == "cancelled", "of a command that was handed off nothing is to come"
    (run.path / "intent.json").touch()
    after = reading(run.path)
    assert ("lost", SHUT_DOWN, status["finished"], True) == (
        after["state"],
        after["error"],
        after["finished"],
        is_interrupted(after),
    )
    assert after == read_json(run.status)


def test_a_command_that_ends_well_since_its_host_goes_down_is_not_done(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    run = harbour.start("sh", "-c", "trap 'exit 0' TERM; echo >said; while :; do sleep 1000 & wait; done")
    said.line()
    watcher = supervisor(run)
    os.kill(watcher, signal.SIGSTOP)  # both are told at once
    os.kill(watcher, signal.SIGTERM)
    kill(command(run), signal.SIGTERM)
    os.kill(watcher, signal.SIGCONT)
    status = harbour.ended(run)
    assert ("cancelled", "a signal", 0) == (status["state"], status["cancelled_by"], status["exit_code"])


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE])
def test_what_a_terminal_sends_ends_no_run(harbour: Harbour, number: int) -> None:
    os.mkfifo(harbour.folder / "go")
    run = harbour.start("sh", "-c", "read line <go; exit 5")
    os.kill(supervisor(run), number)
    (harbour.folder / "go").write_text("go\n")
    assert harbour.ended(run)["exit_code"] == 5


def test_a_supervisor_that_hangs_is_ended_with_its_run(harbour: Harbour, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "BOUND", 0.3)
    run = harbour.start("sleep", "1000", kill_grace=0.1)
    pid = command(run)
    os.kill(supervisor(run), signal.SIGSTOP)
    monkeypatch.setattr(liveness, "KILL_GRACE", 5.0)
    assert end(run.path)["state"] == "cancelled"
    assert not alive(pid)


def test_the_end_of_a_supervisor_is_heard_from_the_kernel(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    handle = pidfd_of_supervisor(run.path)
    assert handle is not None
    try:
        assert not select.select([handle], [], [], 0)[0]
        kill(command(run))
        assert select.select([handle], [], [], WAIT)[0]
        assert read_json(run.status) == reading(run.path)
        assert reading(run.path)["state"] == "failed"
    finally:
        os.close(handle)
    assert pidfd_of_supervisor(run.path) is None


def test_a_wait_has_an_end_of_its_own(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    assert settled(run.path, 0.05)["state"] == "running"


def test_readers_at_once_lose_a_run_once(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    pid = command(run)
    kill(supervisor(run))
    kill(pid)
    code = "import sys; from pathlib import Path; from bot.liveness import reading\n"
    code += "for _ in range(20): assert reading(Path(sys.argv[1]))['state'] == 'lost'"
    readers = [subprocess.Popen([sys.executable, "-c", code, run.path]) for _ in range(4)]
    assert [0] * 4 == [reader.wait() for reader in readers]
    assert not is_locked(run.alive_lock)


def test_a_run_that_is_started_again_meanwhile_is_not_written_off(harbour: Harbour) -> None:
    run = harbour.make("true")
    changed(run, state="running", boot_id="another")
    lock = take_lock(run.alive_lock)
    assert lock is not None
    assert reading(run.path)["state"] == "running"
    os.close(lock)
    assert reading(run.path)["state"] == "lost"


def test_a_process_that_ends_while_it_is_looked_at_is_no_trouble() -> None:
    child = subprocess.Popen(["true"])
    process = processes.look(child.pid)
    assert process
    child.wait()
    await_end(child.pid)
    assert processes.look(child.pid) is None
    assert not processes.send(process, signal.SIGKILL)
    assert processes.argv_of(child.pid) == []


def test_a_process_whose_name_is_hostile_is_read_right(harbour: Harbour) -> None:
    name = harbour.folder / "a) R 1 2 3 ("
    name.symlink_to("/bin/sleep")
    child = subprocess.Popen([name, "1000"])
    try:
        process = processes.look(child.pid)
        assert process
        assert (os.getpid(), os.getsid(0)) == (process.parent, process.session)
    finally:
        child.kill()
        child.wait()

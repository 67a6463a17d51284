"""The supervisor: one run from its start to its end, with nothing left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bot import processes
from bot.launchers import start
from bot.liveness import end, reading, request_cancel
from bot.rundir import RunDir, is_locked, read_json, take_lock
from tests.bot.harbour import PYTHON, Fifo, Harbour, alive, await_end, command, record, supervisor

DAEMON = """
import os, signal, sys, time
ready, tell = os.pipe()
if os.fork():
    os.read(ready, 1)
    os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
if "deaf" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").write(f"{os.getpid()}\\n")
os.write(tell, b"x")
while True: time.sleep(1000)
"""


def test_a_command_that_ends_well_is_done(harbour: Harbour) -> None:
    run = harbour.start("sh", "-c", "echo out; echo err >&2")
    status = harbour.ended(run)
    assert ("done", 0, None, None, None) == tuple(
        status[name] for name in ("state", "exit_code", "signal", "stop_reason", "error")
    )
    assert run.worker_log.read_text() == "out\nerr\n"
    assert not is_locked(run.alive_lock)
    assert status["started"] <= status["finished"] <= status["updated"]


def test_an_exit_code_and_a_signal_are_told_apart(harbour: Harbour) -> None:
    failed = harbour.ended(harbour.start("sh", "-c", "exit 7"))
    assert ("failed", 7, None, "exit_code") == tuple(failed[n] for n in ("state", "exit_code", "signal", "stop_reason"))
    killed = harbour.ended(harbour.start("sh", "-c", "kill -SEGV $$"))
    assert ("failed", None, 11, "signal") == tuple(killed[n] for n in ("state", "exit_code", "signal", "stop_reason"))


def test_the_status_names_the_command_by_pid_start_and_boot(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    status = reading(run.path)
    process = processes.look(status["pid"])
    assert process
    assert process.started == status["pid_started"]
    assert processes.boot_id() == status["boot_id"]
    assert ("running", "alive", 1) == (status["state"], status["supervisor"], status["round"])
    assert os.uname().nodename == status["host"]
    assert b"sleep\0001000\000" == Path(f"/proc/{status['pid']}/cmdline").read_bytes()


def test_a_command_gets_its_arguments_as_they_are(harbour: Harbour) -> None:
    hostile = [
        "",
        " ",
        "a b",
        "$HOME",
        "`id`",
        "'\"",
        "a\nb",
        "ümläut ☃",
        "--",
        "-x",
        ";",
        "*",
        os.fsdecode(b"\xff\xfe"),
    ]
    code = "import os,sys; open('args','wb').write(b'\\0'.join(os.fsencode(a) for a in sys.argv[1:]))"
    status = harbour.ended(harbour.start(PYTHON, "-c", code, *hostile))
    assert status["state"] == "done"
    assert [os.fsencode(a) for a in hostile] == (harbour.folder / "args").read_bytes().split(b"\0")


def test_a_command_has_nothing_but_its_own_environment_and_streams(harbour: Harbour) -> None:
    code = "import os,signal; print(sorted(os.environ), os.listdir('/proc/self/fd')[:-1], os.getcwd()); "
    code += "print([s for s in signal.valid_signals() if signal.getsignal(s) is signal.SIG_IGN]); print(os.read(0, 1))"
    spec_env = {"ONLY": "this", "PYTHONSAFEPATH": "1"}
    inherited, other = os.pipe()
    os.set_inheritable(inherited, True)
    run = harbour.start(PYTHON, "-I", "-c", code, env=spec_env)
    os.close(inherited)
    os.close(other)
    harbour.ended(run)
    variables, signals, stdin = run.worker_log.read_text().splitlines()
    assert variables.startswith(f"{sorted(spec_env)} ['0', '1', '2'] ") or "LC_CTYPE" in variables
    assert "['0', '1', '2']" in variables
    assert str(harbour.folder) in variables
    assert signals == "[<Signals.SIGPIPE: 13>, <Signals.SIGXFSZ: 25>]"  # Python's own, not inherited
    assert stdin == "b''"


def test_no_signal_stays_ignored_for_a_command(harbour: Harbour) -> None:
    run = harbour.start("grep", "SigIgn", "/proc/self/status")
    harbour.ended(run)
    assert int(run.worker_log.read_text().split()[1], 16) & 0x7FFFFFFF == 0


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["nonesuch-command"], "was not found on PATH"),
        (["./nonesuch"], "does not exist"),
        (["./plain"], "Permission denied"),
        (["./headless"], "interpreter"),
        (["./empty-format"], "Exec format error"),
        (["a\0b"], "Invalid argument"),
        ([""], "Invalid argument"),
    ],
)
def test_a_command_that_can_not_be_started_says_why(harbour: Harbour, argv: list[str], says: str) -> None:
    (harbour.folder / "plain").write_text("x")
    for name, text in (("headless", "#!/nonesuch/python\n"), ("empty-format", "no program\n")):
        (harbour.folder / name).write_text(text)
        (harbour.folder / name).chmod(0o755)
    run, started = harbour.started(*argv)
    assert started.error
    assert says in started.error
    status = harbour.ended(run)
    assert ("failed", "not_started", None) == (status["state"], status["stop_reason"], status["pid"])
    assert status["error"] == started.error == record(run)["error"]
    assert record(run)["status"] == "failed"


def test_a_working_directory_that_is_gone_is_named(harbour: Harbour) -> None:
    _, started = harbour.started("true", cwd=str(harbour.folder / "gone"))
    assert started.error
    assert str(harbour.folder / "gone") in started.error


def test_a_run_without_a_readable_spec_does_not_start(harbour: Harbour) -> None:
    run = harbour.make("true")
    run.spec.write_text("{")
    started = start(run.path, "setsid")
    assert started.error
    assert "spec.json" in started.error
    lock = take_lock(run.alive_lock)
    assert lock is not None
    os.close(lock)


def test_a_time_limit_ends_everything(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    script = "sleep 1000 & echo $! >said; trap : TERM; while :; do wait; done"
    run = harbour.start("sh", "-c", script, time_limit=2, kill_grace=0.3)
    child = int(said.line())
    status = harbour.ended(run)
    assert ("failed", "time_limit", signal.SIGKILL) == tuple(status[n] for n in ("state", "stop_reason", "signal"))
    assert not alive(child)


def test_a_run_knows_its_deadline(harbour: Harbour) -> None:
    before = int(time.time())
    run = harbour.start("sh", "-c", "echo $LEADSMAN_DEADLINE", time_limit=500)
    harbour.ended(run)
    assert before + 500 <= int(run.worker_log.read_text()) <= int(time.time()) + 500


@pytest.mark.parametrize("how", [[], ["deaf"]])
def test_what_a_command_leaves_behind_is_ended(harbour: Harbour, how: list[str]) -> None:
    said = Fifo(harbour.folder / "said")
    run = harbour.start(PYTHON, "-c", DAEMON, "said", *how, kill_grace=0.3)
    daemon = int(said.line())
    status = harbour.ended(run)
    assert status["state"] == "done"
    assert not alive(daemon)


def test_a_daemon_without_an_environment_or_our_streams_is_ended(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    script = "(setsid env -i /bin/sh -c 'echo $$ >said; exec sleep 1000' </dev/null >/dev/null 2>&1 &)"
    run = harbour.start("sh", "-c", script)
    daemon = int(said.line())
    assert harbour.ended(run)["state"] == "done"
    assert not alive(daemon)


def test_what_forks_faster_than_it_is_killed_is_ended(harbour: Harbour) -> None:
    code = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(20_000):
    if os.fork() == 0:
        os.setsid()
    else:
        os._exit(0)
signal.pause()
"""
    run = harbour.start(PYTHON, "-c", code, kill_grace=0.2)
    assert harbour.ended(run)["exit_code"] == 0
    everyone = processes.everyone()
    assert not [p for p in everyone if os.fsencode(f"LEADSMAN_RUN_ID={run.path.name}") in processes.environment_of(p)]


def test_a_stopped_process_is_ended_by_the_first_signal(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    run = harbour.start(
        "sh", "-c", "trap 'echo bye; exit 0' TERM; echo >said; kill -STOP $$; sleep 1000", kill_grace=20
    )
    said.line()
    request_cancel(run.path, "a test")
    assert harbour.ended(run)["state"] == "cancelled"
    assert run.worker_log.read_text() == "bye\n"


def test_a_run_that_was_started_in_a_run_goes_on_after_it(harbour: Harbour) -> None:
    script = f"'{Path(PYTHON).with_name('leadsman')}' --store inner handoff --driver setsid -- sleep 1000"
    outer = harbour.start("sh", "-c", script)
    status = harbour.ended(outer)
    assert status["exit_code"] == 0, outer.worker_log.read_text()
    inner = RunDir(next(path for path in (harbour.folder / "inner").iterdir()))
    assert reading(inner.path)["state"] == "running"
    assert alive(command(inner))
    assert end(inner.path)["state"] == "cancelled"


def test_usage_counts_what_the_children_used(harbour: Harbour) -> None:
    code = "import os\nif os.fork(): os.wait()\nelse:\n b = bytearray(60 << 20)\n while sum(os.times()[:2]) < 0.2: pass"
    status = harbour.ended(harbour.start(PYTHON, "-c", code))
    assert 0.2 <= status["usage"]["user_seconds"] + status["usage"]["system_seconds"] < 10
    assert status["usage"]["max_rss_kib"] > 60 << 10
    assert 0.1 < status["seconds"] < 30


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────

SAY = 'say() { echo "[now] $*" >>"$LEADSMAN_STATUS_LOG"; }; '


@pytest.mark.parametrize(
    ("script", "state", "reason"),
    [
        ("say failed: no; exit 0", "failed", "said_failed"),
        ("say failed: no; say working: again", "done", None),
        ("say resolved: nothing", "done", "resolved"),
        ("say needs-decision: which", "blocked", "blocked"),
        ("say done: yes; exit 4", "failed", "exit_code"),
        ("say progress: 3; say chatter", "done", None),
        ("printf 'failed: without an end' >>$LEADSMAN_STATUS_LOG", "failed", "said_failed"),
        ("rm $LEADSMAN_STATUS_LOG; mkfifo $LEADSMAN_STATUS_LOG", "done", None),
        ("rm $LEADSMAN_STATUS_LOG; ln -s /dev/zero $LEADSMAN_STATUS_LOG", "done", None),
    ],
)
def test_the_last_word_decides(harbour: Harbour, script: str, state: str, reason: str | None) -> None:
    status = harbour.ended(harbour.start("sh", "-c", SAY + script))
    assert (state, reason) == (status["state"], status["stop_reason"])


def test_a_round_that_was_said_is_in_the_status(harbour: Harbour) -> None:
    status = harbour.ended(harbour.start("sh", "-c", SAY + "say round: 2/5"))
    assert (2, 5) == (status["round"], status["rounds"])


def test_a_task_that_speaks_and_does_not_is_ended_as_silent(harbour: Harbour) -> None:
    status = harbour.ended(harbour.start("sleep", "1000", speaks=True, startup_grace=0.2, kill_grace=0.5))
    assert ("failed", "silent") == (status["state"], status["stop_reason"])


def test_a_task_that_speaks_in_time_goes_on(harbour: Harbour) -> None:
    script = SAY + "say working: x; sleep 4"
    status = harbour.ended(harbour.start("sh", "-c", script, speaks=True, startup_grace=3))
    assert status["state"] == "done"


def test_a_task_that_does_not_say_it_speaks_may_be_silent(harbour: Harbour) -> None:
    assert harbour.ended(harbour.start("sleep", "1.2", startup_grace=0.1))["state"] == "done"


def test_a_run_that_stays_blocked_is_ended_and_says_what_it_waits_for(harbour: Harbour) -> None:
    status = harbour.ended(harbour.start("sh", "-c", SAY + "say blocked: no key; sleep 1000", blocked_grace=0.2))
    assert ("blocked", "blocked", "no key") == (status["state"], status["stop_reason"], status["error"])
    assert {"verb": "blocked", "text": "no key"} == status["word"]


def test_a_run_that_is_unblocked_in_time_goes_on(harbour: Harbour) -> None:
    script = SAY + "say blocked: x; sleep 0.1; say working: y; sleep 4"
    assert harbour.ended(harbour.start("sh", "-c", script, blocked_grace=3))["state"] == "done"


# ── who else is there ────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_run_has_one_supervisor(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    first = supervisor(run)
    again = start(run.path, "setsid")
    assert (first, None) == (again.supervisor_pid, again.error)
    assert first == supervisor(run)


def test_a_run_that_has_ended_is_not_started_twice(harbour: Harbour) -> None:
    run = harbour.start("sh", "-c", "echo once")
    harbour.ended(run)
    start(run.path, "setsid")
    assert not is_locked(run.alive_lock)
    assert run.worker_log.read_text() == "once\n"


def test_many_starts_of_one_run_at_once_start_it_once(harbour: Harbour) -> None:
    run = harbour.make("sh", "-c", "echo once; sleep 1000")
    code = "import sys; from pathlib import Path; from bot.launchers import start\nstart(Path(sys.argv[1]), 'setsid')"
    callers = [subprocess.Popen([sys.executable, "-c", code, run.path]) for _ in range(6)]
    assert [0] * 6 == [caller.wait() for caller in callers]
    assert supervisor(run)
    assert end(run.path)["state"] == "cancelled"
    assert run.worker_log.read_text() == "once\n"


def test_the_caller_is_left_without_a_child(harbour: Harbour) -> None:
    code = """
import os, sys; from pathlib import Path; from bot.launchers import start
start(Path(sys.argv[1]), 'setsid')
try: os.waitpid(-1, os.WNOHANG); sys.exit(1)
except ChildProcessError: pass
"""
    run = harbour.make("sleep", "1000")
    assert subprocess.call([sys.executable, "-c", code, run.path]) == 0
    assert os.getsid(supervisor(run)) == supervisor(run)


def test_a_supervisor_can_be_started_by_hand(harbour: Harbour) -> None:
    run = harbour.make("true")
    program = Path(processes.__file__).with_name("supervisor.py")
    said = subprocess.run(
        [sys.executable, "-I", "-S", program, run.path], stdout=subprocess.PIPE, check=True, text=True
    )
    assert said.stdout == "running"
    assert harbour.ended(run)["state"] == "done"


def test_a_supervisor_brings_along_nothing_but_the_standard_library(harbour: Harbour) -> None:
    program = Path(processes.__file__).with_name("supervisor.py")
    given = {"__name__": "supervisor", "__package__": None, "__file__": str(program)}
    code = (
        f"import sys; exec(compile(open({str(program)!r}).read(), 'supervisor', 'exec'), {given}); print(*sys.modules)"
    )
    seen = subprocess.run([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE, check=True, text=True)
    ours = {name for name in seen.stdout.split() if name.partition(".")[0] == "bot"}
    assert ours == {"bot", *(f"bot.{name}" for name in ("processes", "command", "endings", "words", "statefiles"))}
    others = {name.partition(".")[0] for name in seen.stdout.split()} - {"bot"}
    assert others <= sys.stdlib_module_names | {"__main__"}
    assert not others & {"pathlib", "typing", "subprocess", "dataclasses"}


# ── a full disk ──────────────────────────────────────────────────────────────────────────────────────────────────────

ON_A_SMALL_DISK = """
import json, sys
from pathlib import Path
from bot.launchers import start
from bot.liveness import end, settled
from bot.rundir import RunDir, create, read_json
store, marker, when = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
env = {"PATH": "/usr/bin:/bin"}
script = f"cat /dev/zero > fill 2>/dev/null; touch {marker}; {'exit 3' if when == 'later' else 'exec sleep 1000'}"
spec = {"run_id": "20260105-090000-abcdef", "task": "t", "argv": ["sh", "-c", script], "cwd": str(store), "env": env,
        "time_limit": None, "driver": "setsid"}
run = create(store, spec)
def fill():
    with (store / "fill").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)): pass
        except OSError: pass
if when == "full": fill()
error = start(run.path, "setsid").error
if when == "cancelled":
    fill()
    end(run.path)
status = settled(run.path, 60 if error is None else 0.1)
print(json.dumps({"error": error, "status": status, "record": read_json(run.waiting)["status"]}))
(store / "fill").unlink()
"""


def on_a_small_disk(harbour: Harbour, when: str) -> dict[str, dict[str, object]]:
    import json

    disk, marker = harbour.folder / "disk", harbour.folder / "ran"
    disk.mkdir()
    mount = 'mount -t tmpfs -o size=256k none "$1" && exec "$2" -c "$3" "$1" "$4" "$5"'
    namespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    done = subprocess.run(
        [*namespace, disk, sys.executable, ON_A_SMALL_DISK, marker, when],
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    return {"ran": marker.exists(), **json.loads(done.stdout)}


@pytest.mark.needs("namespaces")
def test_the_end_is_recorded_on_a_disk_that_the_run_has_filled(harbour: Harbour) -> None:
    seen = on_a_small_disk(harbour, "later")
    assert (None, True, "waiting") == (seen["error"], seen["ran"], seen["record"])
    assert ("failed", 3) == (seen["status"]["state"], seen["status"]["exit_code"])


@pytest.mark.needs("namespaces")
def test_a_run_on_a_full_disk_can_be_cancelled(harbour: Harbour) -> None:
    assert on_a_small_disk(harbour, "cancelled")["status"]["state"] == "cancelled"


def test_room_for_the_end_is_kept_before_the_command_can_fill_the_disk(harbour: Harbour) -> None:
    run = harbour.start("sh", "-c", 'echo "$LEADSMAN_RUN_DIR"/.*')
    harbour.ended(run)
    assert ".status.json.reserve" in run.worker_log.read_text()


@pytest.mark.needs("namespaces")
def test_a_command_whose_start_can_not_be_recorded_never_runs(harbour: Harbour) -> None:
    seen = on_a_small_disk(harbour, "full")
    assert "was not started" in str(seen["error"])
    assert "No space left" in str(seen["error"])
    assert seen["ran"] is False
    assert seen["status"]["state"] == "created"


def test_a_supervisor_whose_directory_is_gone_ends_with_its_run(harbour: Harbour) -> None:
    go, gone = Fifo(harbour.folder / "go"), Fifo(harbour.folder / "gone")
    run = harbour.start("sh", "-c", 'read x < go; rm -rf "$LEADSMAN_RUN_DIR"; echo > gone; exec sleep 1000')
    pid = supervisor(run)
    go.path.write_text("\n")
    assert gone.line() == ""
    os.kill(pid, signal.SIGTERM)
    await_end(pid)  # it does not try for a minute to write down what nobody can find


def test_the_files_of_a_finished_run_are_those_of_the_contract(harbour: Harbour) -> None:
    run = harbour.start("true")
    harbour.ended(run)
    assert sorted(path.name for path in run.path.iterdir()) == [
        "alive.lock",
        "spec.json",
        "status.json",
        "status.log",
        "waiting.json",
        "worker.log",
    ]
    assert read_json(run.status) == reading(run.path)


def test_the_pid_of_a_command_ends_with_it(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    pid = command(run)
    os.kill(pid, signal.SIGKILL)
    await_end(pid)
    assert harbour.ended(run)["signal"] == signal.SIGKILL

"""`leadsman handoff`: a record, an exit code and a line that agree, and a run that outlives whatever started it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bot import handoff
from bot.launchers import setsid
from bot.liveness import end, reading
from bot.rundir import RUN_ID, RunDir, all_runs, find
from tests.bot.console import SCRIPT
from tests.bot.harbour import PYTHON, Fifo, Harbour, alive, await_end, command, kill, record, supervisor

SETSID = ("--driver", "setsid")


def test_a_handoff_says_where_the_run_is_and_returns(harbour: Harbour) -> None:
    done = harbour.leadsman("handoff", *SETSID, "--", "sleep", "1000")
    assert done.code == 0
    [run] = all_runs(harbour.store)
    run_id = run.path.name
    assert done.out == f"waiting {run_id} round 1 {run.path}\nreport {run.path}/waiting.json\n"
    assert RUN_ID.fullmatch(run_id)
    status, kept = reading(run.path), record(run)
    assert ("waiting", "running", True, run_id) == tuple(kept[n] for n in ("status", "state", "found", "run_id"))
    assert {n: status[n] for n in ("pid", "supervisor_pid", "driver", "session", "round", "task")} == {
        n: kept[n] for n in ("pid", "supervisor_pid", "driver", "session", "round", "task")
    }
    assert (str(run.path), str(run.worker_log), ["sleep", "1000"]) == (kept["run_dir"], kept["log"], kept["command"])
    assert alive(status["pid"])
    assert harbour.store.parent.stat().st_mode & 0o777 == 0o700, "it has made the home"


def test_the_record_as_json_is_the_one_that_is_kept(harbour: Harbour) -> None:
    done = harbour.leadsman("handoff", *SETSID, "--json", "--wait", "60", "--", "true")
    assert done.code == 0
    printed = json.loads(done.out)
    assert printed == record(find(harbour.store, printed["run_id"]))
    assert ("waiting", "done") == (printed["status"], printed["state"])


@pytest.mark.parametrize("how", ["--store X", "--store=X", "X before"])
def test_a_store_is_named_before_or_after_the_verb(harbour: Harbour, how: str) -> None:
    before, after = (["--store", "X"], []) if how == "X before" else ([], how.split())
    done = harbour.leadsman(*before, "handoff", *after, *SETSID, "--wait", "60", "--", "true")
    assert done.code == 0, done
    [run] = all_runs(harbour.folder / "X")
    assert harbour.leadsman(*before, "wait", *after, run.path.name).code == 0


def test_a_command_has_the_folder_and_environment_of_the_caller_and_its_own_variables(harbour: Harbour) -> None:
    caller = {"MINE": "ä\n$x", "LEADSMAN_PASSES_HELD": "2", "LEADSMAN_DEADLINE": "1", "LEADSMAN_TICKET": "/t.json"}
    code = "import json, os; print(json.dumps([os.getcwd(), dict(os.environ)]))"
    done = harbour.leadsman("handoff", *SETSID, "--wait", "60", "--", PYTHON, "-c", code, **caller)
    assert done.code == 0, done
    [run] = all_runs(harbour.store)
    folder, environ = json.loads(run.worker_log.read_text())
    assert str(harbour.folder) == folder
    assert (caller["MINE"], "/t.json") == (environ["MINE"], environ["LEADSMAN_TICKET"])
    assert os.environ["PATH"] == environ["PATH"]
    wanted = {"RUN_ID": run.path.name, "RUN_DIR": str(run.path), "STATUS_LOG": str(run.status_log)}
    wanted |= {"REPORT": str(run.worker_report), "BASE": "", "BRANCH": "", "MAX_TURNS": "", "DEADLINE": ""}
    assert wanted == {name: environ[f"LEADSMAN_{name}"] for name in wanted}
    assert "LEADSMAN_PASSES_HELD" not in environ, "the passes end with the caller"


def test_hostile_arguments_and_a_hostile_store_are_harmless(harbour: Harbour) -> None:
    store = harbour.folder / 'it\'s a "store" $HOME `id`\nünd ☃'
    hostile = ["", " ", "a b", "$HOME", "`touch x`", "'\"", "a\nb", "☃", "--", "-x", "--json", ";", "*"]
    code = "import sys; print(ascii(sys.argv[1:]))"
    options = ("--store", str(store), *SETSID, "--wait", "60")
    done = harbour.leadsman("handoff", *options, "--", PYTHON, "-c", code, *hostile)
    assert done.code == 0, done
    assert len(done.out.splitlines()) == 2, "a line break in a path is escaped"
    assert "\\nünd ☃" in done.out
    [run] = all_runs(store)
    assert run.worker_log.read_text() == ascii(hostile) + "\n"
    assert hostile == record(run)["command"][3:]
    assert str(run.path) == record(run)["run_dir"]


def test_arguments_that_are_no_text_arrive_as_they_are(harbour: Harbour) -> None:
    raw = os.fsdecode(b"\xff\xfe")
    code = "import os,sys; print(os.fsencode(sys.argv[1]))"
    done = harbour.leadsman("handoff", *SETSID, "--wait", "60", "--json", "--", PYTHON, "-c", code, raw)
    assert done.code == 0, done
    [run] = all_runs(harbour.store)
    assert run.worker_log.read_text() == "b'\\xff\\xfe'\n"


@pytest.mark.parametrize("argv", [["nonesuch-command"], ["/nonesuch"], ["/"], ["/etc/hostname"]])
def test_a_command_that_does_not_start_is_a_failed_handoff(harbour: Harbour, argv: list[str]) -> None:
    done = harbour.leadsman("handoff", *SETSID, "--", *argv)
    assert done.code == 3
    [run] = all_runs(harbour.store)
    kept, status = record(run), reading(run.path)
    assert ("failed", "failed", False) == (kept["status"], kept["state"], kept["found"])
    assert status["error"] == kept["error"]
    assert kept["error"] in done.err
    assert argv[0] in kept["error"]
    assert done.out.startswith(f"failed {run.path.name} ")
    assert "waiting " not in done.out


def test_a_supervisor_that_does_not_start_is_a_failed_handoff(
    harbour: Harbour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setsid, "SUPERVISOR", harbour.folder / "nonesuch.py")
    run, kept = handoff.hand_off(harbour.store, harbour.spec("touch", "ran"), wait=0)
    assert ("failed", "created", False) == (kept["status"], kept["state"], kept["found"])
    assert kept == record(run)
    assert f"{run.worker_log} may say why" in kept["error"]
    assert "nonesuch.py" in run.worker_log.read_text()
    assert not (harbour.folder / "ran").exists()


@pytest.mark.parametrize("script", ["exit 0", "exit 7", "kill -9 $$"])
def test_an_instant_death_is_told_alike_by_record_output_and_exit_code(harbour: Harbour, script: str) -> None:
    for _ in range(5):
        done = harbour.leadsman("handoff", *SETSID, "--", "sh", "-c", script)
        verdict, run_id = done.out.split()[:2]
        run = find(harbour.store, run_id)
        kept = record(run)
        assert (verdict, done.code) in (("waiting", 0), ("failed", 3))
        assert verdict == kept["status"]
        assert kept["found"] == (verdict == "waiting")
        status = harbour.ended(run)
        if verdict == "failed":
            assert (status["state"], status["error"]) == ("failed", kept["error"])
        elif kept["state"] != "running":
            assert status["state"] == kept["state"] == "done"


def test_a_wait_hears_of_a_later_death(harbour: Harbour) -> None:
    done = harbour.leadsman("handoff", *SETSID, "--wait", "60", "--", "sh", "-c", "sleep 0.2; exit 7")
    assert done.code == 3
    assert "exit code 7" in done.err
    assert record(all_runs(harbour.store)[0])["status"] == "failed"


def test_a_wait_that_is_over_leaves_the_run_alone(harbour: Harbour) -> None:
    done = harbour.leadsman("handoff", *SETSID, "--wait", "0.1", "--", "sleep", "1000")
    assert (0, "waiting") == (done.code, done.out.split()[0])
    assert reading(all_runs(harbour.store)[0].path)["state"] == "running"


def test_a_timeout_limits_the_run(harbour: Harbour) -> None:
    done = harbour.leadsman("handoff", *SETSID, "--timeout", "0.2", "--wait", "60", "--", "sleep", "1000")
    assert done.code == 3
    assert "time limit" in done.err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--"], "behind `--`"),
        ([], "behind `--`"),
        (["sleep", "1"], "--driver tmux|setsid"),
        (["--driver", "screen", "--", "true"], "tmux"),
        (["--wait", "soon", "--", "true"], "--wait 30"),
        (["--wait", "-1", "--", "true"], "--wait 30"),
        (["--timeout", "0", "--", "true"], "--timeout"),
        (["--wiat", "1", "--", "true"], 'did you mean "--wait"? It is'),
        (["make", "all"], '"make" is a word too many here. It is `leadsman handoff'),
        (["--store"], "--store needs a value"),
        (["--driver", "tmux", "--", "true"], "no tmux on PATH"),
    ],
)
def test_a_call_that_is_off_says_how_it_goes_and_starts_nothing(harbour: Harbour, argv: list[str], says: str) -> None:
    done = harbour.leadsman("handoff", *argv, PATH=f"{Path(PYTHON).parent}")
    assert (2, "") == (done.code, done.out)
    assert says in done.err
    assert len(done.err.splitlines()) == 1
    assert not harbour.store.exists()


def test_a_store_that_can_not_be_written_starts_nothing_and_never_says_waiting(harbour: Harbour) -> None:
    (harbour.folder / "file").touch()
    done = harbour.leadsman("handoff", "--store", "file/x", "--json", "--", "touch", "ran")
    assert done.code == 3
    assert ("failed", None) == (json.loads(done.out)["status"], json.loads(done.out)["run_id"])
    assert str(harbour.folder / "file") in done.err
    assert not (harbour.folder / "ran").exists()


def test_a_folder_that_is_gone_is_named_as_the_cause(harbour: Harbour) -> None:
    gone = harbour.folder / "gone"
    gone.mkdir()
    code = "import os,sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    argv = [PYTHON, "-c", code, str(SCRIPT), "handoff", "--json", "--store", str(harbour.store), "--", "true"]
    done = subprocess.run(argv, cwd=gone, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "folder you are in does not exist" in json.loads(done.stdout)["error"]
    assert not harbour.store.exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (".", "it is a folder"),
        ("./plain", "`chmod +x`"),
        ("./script", "`#!/bin/sh`"),
        ("./other", "interpreter"),
        ("", "The command '' "),
    ],
)
def test_a_command_that_is_none_says_what_would_make_it_one(harbour: Harbour, name: str, says: str) -> None:
    for file, text, mode in (("plain", "", 0o644), ("script", "echo x\n", 0o755), ("other", "#!/nonesuch\n", 0o755)):
        (harbour.folder / file).write_text(text)
        (harbour.folder / file).chmod(mode)
    done = harbour.leadsman("handoff", *SETSID, "--", name)
    assert done.code == 3
    assert says in done.err


def test_many_handoffs_at_once_are_as_many_runs(harbour: Harbour) -> None:
    calls = [
        harbour.popen("handoff", *SETSID, "--json", "--", "sh", "-c", f"echo {n} >&2; exec sleep 1000")
        for n in range(12)
    ]
    records = [json.loads(call.communicate(timeout=90)[0]) for call in calls]
    assert [0] * 12 == [call.returncode for call in calls]
    assert len({kept["run_id"] for kept in records}) == len({kept["pid"] for kept in records}) == 12
    assert len(all_runs(harbour.store)) == 12
    assert {kept["run_id"]: "running" for kept in records} == {
        run.path.name: reading(run.path)["state"] for run in all_runs(harbour.store)
    }


@pytest.mark.parametrize("argv", [["sleep", "1000"], ["nonesuch-command"]])
def test_the_exit_code_is_right_where_nothing_can_be_printed(harbour: Harbour, argv: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environ = {**os.environ, "LEADSMAN_HOME": str(harbour.folder / "home")}
    with Path("/dev/full").open("w") as full, os.fdopen(writer, "w") as broken:
        for stream in (full, broken):
            call = [SCRIPT, "handoff", *SETSID, "--", *argv]
            done = subprocess.run(call, env=environ, stdout=stream, stderr=stream, check=False)
            assert done.returncode == (0 if argv[0] == "sleep" else 3)
    assert {record(run)["status"] for run in all_runs(harbour.store)} == {"waiting" if argv[0] == "sleep" else "failed"}


def test_a_caller_without_input_and_error_streams_is_served(harbour: Harbour) -> None:
    leadsman = Path(PYTHON).with_name("leadsman")
    script = f"'{leadsman}' --store X handoff --driver setsid --wait 20 -- sh -c 'echo out; exit 0' <&- 2>&-"
    subprocess.run(["sh", "-c", script], cwd=harbour.folder, stdout=subprocess.DEVNULL, check=True)
    [run] = all_runs(harbour.folder / "X")
    assert run.worker_log.read_text() == "out\n"


def test_a_caller_that_ignores_the_end_of_its_children_is_served(harbour: Harbour) -> None:
    ignores: Any = {"preexec_fn": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)}
    done = harbour.popen("handoff", "--json", "--", "sleep", "1000", **ignores)
    out, err = done.communicate(timeout=90)
    assert (0, b"", "waiting") == (done.returncode, err, json.loads(out)["status"])
    [run] = all_runs(harbour.store)
    assert (record(run)["status"], reading(run.path)["state"]) == ("waiting", "running")


def test_a_run_whose_directory_is_gone_has_failed_and_nobody_waits_for_it(harbour: Harbour) -> None:
    go = harbour.folder / "go"
    os.mkfifo(go)
    script = 'read line <go; until rm -rf "$LEADSMAN_RUN_DIR" && [ ! -e "$LEADSMAN_RUN_DIR" ]; do :; done'
    caller = harbour.popen("handoff", *SETSID, "--wait", "1000", "--", "sh", "-c", script)
    while not (harbour.store.exists() and all_runs(harbour.store)):
        os.sched_yield()
    [run] = all_runs(harbour.store)
    others = [harbour.popen(*words, run.path.name) for words in (["wait"], ["logs", "-f"])]
    go.write_text("go\n")
    out, err = caller.communicate(timeout=90)
    assert (3, f"failed {run.path.name} round 1 {run.path}") == (caller.returncode, out.decode().splitlines()[0])
    assert "its record" in err.decode()
    for other in others:
        other.communicate(timeout=90)
    assert others[0].returncode in (1, 2), "removed before it was found, or after"


@pytest.mark.parametrize("meddling", ['echo "{\\"run_id\\": null, \\"round\\": 9}" >"$f"', 'rm "$f"; mkdir "$f"'])
def test_a_run_that_meddles_with_its_record_is_told_by_its_id(harbour: Harbour, meddling: str) -> None:
    script = f'f="$LEADSMAN_RUN_DIR/waiting.json"; {meddling}; exit 0'
    done = harbour.leadsman("handoff", *SETSID, "--wait", "60", "--", "sh", "-c", script)
    [run] = all_runs(harbour.store)
    assert (0, f"waiting {run.path.name} round 1 {run.path}") == (done.code, done.out.splitlines()[0])
    kept = record(run)
    assert ("waiting", "done", run.path.name, "sh", ["sh", "-c", script]) == tuple(
        kept[name] for name in ("status", "state", "run_id", "task", "command")
    )


def test_nobody_who_reads_the_callers_output_has_to_wait_for_the_run(harbour: Harbour) -> None:
    leadsman = Path(PYTHON).with_name("leadsman")
    script = f"exec 5>&1; '{leadsman}' handoff -- sleep 1000"
    environ = {**os.environ, **harbour.environ, "LEADSMAN_HOME": str(harbour.folder / "home")}
    done = subprocess.run(["sh", "-c", script], env=environ, capture_output=True, text=True, timeout=90, check=True)
    assert done.stdout.startswith("waiting ")


# ── another program's store ──────────────────────────────────────────────────────────────────────────────────────────

CHILD = 'mkdir -p theirs/$1; printf \'{"run_id": "%s", "round": 4}\' "$1" >theirs/$1/status.json'


def adopt(harbour: Harbour, script: str, wait: str = "60", **options: str) -> tuple[int, dict[str, object]]:
    argv = ("handoff", *SETSID, "--adopt", "theirs", "--wait", wait, "--json", "--", "sh", "-c", script, "sh")
    done = harbour.leadsman(*argv, "child-1", **options)
    return done.code, json.loads(done.out)


def test_a_run_that_appears_is_adopted(harbour: Harbour) -> None:
    code, kept = adopt(harbour, f"(sleep 0.3; {CHILD}) & exit 0")
    assert (0, "waiting", True) == (code, kept["status"], kept["found"])
    assert ("child-1", 4) == (kept["child_run_id"], kept["child_round"])


def test_what_an_adopted_program_leaves_behind_lives_on(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    code, kept = adopt(harbour, f"{CHILD}; setsid sh -c 'echo $$ >said; exec sleep 1000' & exit 0")
    daemon = int(said.line())
    run = find(harbour.store, str(kept["run_id"]))
    assert (0, "done") == (code, harbour.ended(run)["state"])
    assert alive(daemon)
    os.kill(daemon, signal.SIGKILL)


def test_an_older_run_is_never_adopted(harbour: Harbour) -> None:
    (harbour.folder / "theirs" / "old").mkdir(parents=True)
    (harbour.folder / "theirs" / "old" / "status.json").write_text('{"run_id": "old", "round": 1}')
    code, kept = adopt(harbour, "exit 0", wait="0.3")
    assert (3, "failed", False) == (code, kept["status"], kept["found"])
    assert "child_run_id" not in kept
    assert "theirs" in str(kept["error"])


def test_a_run_that_changes_is_adopted_unless_a_new_one_appears(harbour: Harbour) -> None:
    (harbour.folder / "theirs" / "old").mkdir(parents=True)
    (harbour.folder / "theirs" / "old" / "status.json").write_text('{"run_id": "old", "round": 1}')
    touch = 'echo \'{"run_id": "old", "round": 2}\' >theirs/old/status.json'
    code, kept = adopt(harbour, touch)
    assert (0, "old", 2) == (code, kept["child_run_id"], kept["child_round"])
    code, kept = adopt(harbour, f"{touch}; sleep 0.3; {CHILD}")
    assert (0, "child-1") == (code, kept["child_run_id"])


def test_a_program_that_fails_is_not_waited_for(harbour: Harbour) -> None:
    code, kept = adopt(harbour, "exit 9", wait="1000")
    assert (3, False) == (code, kept["found"])
    assert "exit code 9" in str(kept["error"])


def test_half_a_status_is_not_adopted(harbour: Harbour) -> None:
    half = "mkdir -p theirs/child-1; printf '{\"run_id\"' >theirs/child-1/status.json; sleep 0.3; "
    code, kept = adopt(harbour, half + CHILD)
    assert (0, 4) == (code, kept["child_round"])


def test_two_adoptions_from_one_store_each_get_their_own(harbour: Harbour) -> None:
    script = 'mkdir -p theirs/$1; printf \'{"run_id": "%s", "pid": %s}\' $1 $$ >theirs/$1/status.json; exec sleep 1000'
    argv = ("handoff", *SETSID, "--adopt", "theirs", "--wait", "60", "--json", "--", "sh", "-c", script, "sh")
    calls = [harbour.popen(*argv, f"child-{n}") for n in range(4)]
    kept = [json.loads(call.communicate(timeout=90)[0]) for call in calls]
    assert [f"child-{n}" for n in range(4)] == [one["child_run_id"] for one in kept]


def test_leadsman_itself_can_be_adopted(harbour: Harbour) -> None:
    script = f"'{Path(PYTHON).with_name('leadsman')}' --store theirs handoff --driver setsid -- sleep 1000"
    code, kept = adopt(harbour, script)
    [inner] = all_runs(harbour.folder / "theirs")
    assert (0, inner.path.name) == (code, kept["child_run_id"])
    harbour.ended(find(harbour.store, str(kept["run_id"])))
    assert reading(inner.path)["state"] == "running"
    end(inner.path)


# ── tmux ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def tmux(harbour: Harbour, *argv: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **harbour.environ, "TERM": "xterm"}
    return subprocess.run(["tmux", *argv], env=environ, capture_output=True, text=True, check=False, timeout=90)


@pytest.mark.needs("tmux")
def test_tmux_is_the_default_where_it_is_and_its_session_closes_with_the_run(harbour: Harbour) -> None:
    run = harbour.hand_off("sleep", "1000", options=())
    session = f"lm-{run.path.name}"
    assert ("tmux", session) == (reading(run.path)["driver"], reading(run.path)["session"])
    assert (record(run)["driver"], record(run)["session"]) == ("tmux", session)
    assert tmux(harbour, "has-session", "-t", f"={session}").returncode == 0
    server = int(tmux(harbour, "display-message", "-p", "#{pid}").stdout)
    end(run.path)
    await_end(server)  # it goes with its last session


@pytest.mark.needs("tmux")
def test_a_session_whose_name_starts_alike_is_untouched(harbour: Harbour) -> None:
    run = harbour.hand_off("sleep", "1000", options=("--driver", "tmux"))
    decoy = f"lm-{run.path.name}-decoy"
    assert tmux(harbour, "new-session", "-d", "-s", decoy, "sleep 1000").returncode == 0
    assert harbour.leadsman("cancel", run.path.name).code == 0
    assert harbour.leadsman("attach", run.path.name).code == 1
    assert tmux(harbour, "has-session", "-t", f"={decoy}").returncode == 0
    tmux(harbour, "kill-server")


@pytest.mark.needs("tmux")
def test_a_tmux_server_that_is_killed_takes_no_run_along(harbour: Harbour) -> None:
    os.mkfifo(harbour.folder / "go")
    run = harbour.hand_off("sh", "-c", "read line <go; echo after; exit 5", options=("--driver", "tmux"))
    kill(int(tmux(harbour, "display-message", "-p", "#{pid}").stdout))
    assert reading(run.path)["state"] == "running"
    (harbour.folder / "go").write_text("go\n")
    assert harbour.ended(run)["exit_code"] == 5
    assert run.worker_log.read_text() == "after\n"


@pytest.mark.needs("tmux")
def test_without_a_working_tmux_a_run_starts_all_the_same(harbour: Harbour) -> None:
    (harbour.folder / "not-a-folder").touch()
    done = harbour.leadsman("handoff", "--", "sleep", "1000", TMUX_TMPDIR=str(harbour.folder / "not-a-folder"))
    assert done.code == 0
    [run] = all_runs(harbour.store)
    assert (None, "setsid") == (record(run)["session"], record(run)["driver"])
    assert reading(run.path)["driver"] == "setsid"


@pytest.mark.needs("tmux")
def test_a_tmux_that_hangs_costs_a_start_its_window_and_is_asked_once(harbour: Harbour) -> None:
    bin_ = harbour.folder / "bin"
    bin_.mkdir()
    (bin_ / "tmux").write_text(f"#!/bin/sh\necho asked >>{harbour.folder}/asked\nexec sleep 1000\n")
    (bin_ / "tmux").chmod(0o755)
    done = harbour.leadsman("handoff", "--", "sleep", "1000", PATH=f"{bin_}:{os.environ['PATH']}")
    assert (0, "") == (done.code, done.err)
    [run] = all_runs(harbour.store)
    assert (None, "setsid", "running") == (record(run)["session"], record(run)["driver"], reading(run.path)["state"])
    assert (harbour.folder / "asked").read_text() == "asked\n"


def test_without_tmux_on_path_the_driver_is_setsid(harbour: Harbour) -> None:
    (harbour.folder / "bin").mkdir()
    (harbour.folder / "bin" / "sleep").symlink_to("/bin/sleep")
    done = harbour.leadsman("handoff", "--", "sleep", "1000", PATH=str(harbour.folder / "bin"))
    assert done.code == 0
    [run] = all_runs(harbour.store)
    assert record(run)["driver"] == "setsid"


@pytest.mark.needs("tmux")
def test_two_handoffs_at_once_have_two_sessions(harbour: Harbour) -> None:
    calls = [harbour.popen("handoff", "--driver", "tmux", "--json", "--", "sleep", "1000") for _ in range(4)]
    sessions = {json.loads(call.communicate(timeout=90)[0])["session"] for call in calls}
    assert len(sessions) == 4
    assert sessions == set(tmux(harbour, "list-sessions", "-F", "#{session_name}").stdout.split())
    for run in all_runs(harbour.store):
        assert alive(supervisor(run))
        assert alive(command(RunDir(run.path)))

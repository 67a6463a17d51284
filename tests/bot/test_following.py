"""The commands that follow a run: what they print, what they answer, what they refuse."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

from bot.launchers import start
from bot.liveness import end, reading, request_cancel
from bot.rundir import RunDir, all_runs, read_json, take_lock
from tests.bot.harbour import PYTHON, WAIT, Fifo, Harbour, alive, command, kill, record

LEADSMAN = Path(PYTHON).with_name("leadsman")


def test_status_as_json_is_the_object_of_the_file(harbour: Harbour) -> None:
    run = harbour.hand_off("sleep", "1000")
    done = harbour.leadsman("status", run.path.name, "--json")
    assert done.code == 0
    assert read_json(run.status) == json.loads(done.out)


def test_status_brief_is_one_line(harbour: Harbour) -> None:
    run = harbour.start("sh", "-c", "echo 'round: 2/5' >>$LEADSMAN_STATUS_LOG; exit 3")
    harbour.ended(run)
    done = harbour.leadsman("status", run.path.name, "--brief")
    assert done.out == f"{run.path.name} failed round 2/5 It ended with exit code 3.\n"


def test_status_in_full_is_for_people(harbour: Harbour) -> None:
    run = harbour.start("sh", "-c", "printf 'blocked: no \\033[31mkey\\n' >>$LEADSMAN_STATUS_LOG")
    harbour.ended(run)
    done = harbour.leadsman("status", run.path.name)
    assert "state          blocked\n" in done.out
    assert str(run.worker_log) in done.out
    assert "\x1b" not in done.out
    assert "no \\x1b[31mkey" in done.out


@pytest.mark.parametrize("verb", ["status", "show", "logs", "attach", "wait", "cancel", "retry", "resume"])
def test_an_unknown_id_names_the_store(harbour: Harbour, verb: str) -> None:
    done = harbour.leadsman("--store", "here", verb, "20260105")
    assert (2, "") == (done.code, done.out)
    assert "20260105" in done.err
    assert str(harbour.folder / "here") in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("verb", ["status", "show", "logs", "attach", "wait", "cancel", "retry", "resume"])
def test_an_id_may_be_shortened_while_it_is_unique(harbour: Harbour, verb: str) -> None:
    for run_id in ("20260105-090000-aaaaaa", "20260105-090000-bbbbbb"):
        harbour.make("true", run_id=run_id)
    done = harbour.leadsman(verb, "20260105-09")
    assert done.code == 2
    assert "20260105-090000-aaaaaa" in done.err
    assert "20260105-090000-bbbbbb" in done.err
    assert harbour.leadsman("status", "20260105-090000-b", "--brief").out.startswith("20260105-090000-bbbbbb created")


@pytest.mark.parametrize(
    "verb", ["handoff", "status", "show", "logs", "attach", "wait", "cancel", "retry", "resume", "say"]
)
def test_help_shows_an_example(harbour: Harbour, verb: str) -> None:
    done = harbour.leadsman(verb, "--help")
    assert (0, "") == (done.code, done.err)
    assert done.out.startswith(f"Usage: leadsman {verb} ")
    assert f"\n  leadsman {verb} " in done.out


@pytest.mark.parametrize("verb", ["show", "logs", "attach", "wait", "cancel", "retry", "resume", "say"])
def test_a_call_without_a_run_says_how_it_goes(harbour: Harbour, verb: str) -> None:
    done = harbour.leadsman(verb)
    assert (2, "") == (done.code, done.out)
    assert f"leadsman {verb} " in done.err


# ── logs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_logs_prints_what_was_written_byte_by_byte(harbour: Harbour) -> None:
    run = harbour.start(PYTHON, "-c", "import os; os.write(1, bytes(range(256)) * 300)")
    harbour.ended(run)
    done = subprocess.run(
        [LEADSMAN, "--store", harbour.store, "logs", run.path.name], stdout=subprocess.PIPE, check=True
    )
    assert bytes(range(256)) * 300 == done.stdout


def test_logs_follows_until_the_end_and_misses_nothing(harbour: Harbour) -> None:
    gates = [harbour.folder / "gate-1", harbour.folder / "gate-2"]
    for gate in gates:
        os.mkfifo(gate)
    script = "echo first; read x <gate-1; echo second; read x <gate-2; seq 20000; echo last"
    run = harbour.hand_off("sh", "-c", script)
    follower = harbour.popen("logs", "-f", run.path.name)
    assert follower.stdout
    for gate, line in zip(gates, (b"first\n", b"second\n"), strict=True):
        assert follower.stdout.readline() == line
        gate.write_text("go\n")
    rest, err = follower.communicate(timeout=WAIT)
    assert (0, b"") == (follower.returncode, err)
    assert rest.split() == [str(n).encode() for n in range(1, 20001)] + [b"last"]


def test_logs_shows_no_secret_of_a_run_that_goes_on(harbour: Harbour) -> None:
    first, second = harbour.folder / "first", harbour.folder / "second"
    for gate in (first, second):
        os.mkfifo(gate)
    script = (
        "echo 'begin https://u:pw@host/'; printf gh; read x <first; echo p_aaaaaaaaaaaaaaaaaaaaaaaa; "
        "printf 'hunter2\\nghp_bbbb'; read x <second; echo bbbbbbbbbbbbbbbbbbbb; printf end"
    )
    spec = harbour.spec("sh", "-c", script)
    run = harbour.start("sh", "-c", script, env={**spec["env"], "SOME_API_KEY": "hunter2"}, run_id=spec["run_id"])
    follower = harbour.popen("logs", "-f", run.path.name)
    assert follower.stdout
    assert follower.stdout.readline() == b"begin https://****@host/\n"
    first.write_text("go\n")
    assert follower.stdout.readline() == b"*" * 28 + b"\n"
    assert follower.stdout.readline() == b"*******\n"
    assert harbour.leadsman("logs", run.path.name).out == f"begin https://****@host/\n{'*' * 28}\n*******\n********"
    second.write_text("go\n")
    rest, err = follower.communicate(timeout=WAIT)
    assert (0, b"", b"*" * 28 + b"\nend") == (follower.returncode, err, rest)


def test_logs_of_a_run_that_never_started_says_so(harbour: Harbour) -> None:
    run = harbour.make("true")
    done = harbour.leadsman("logs", run.path.name)
    assert (1, "") == (done.code, done.out)
    assert "status" in done.err


# ── wait, cancel ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 5", 1), ("echo blocked: x >>$LEADSMAN_STATUS_LOG", 1)]
)
def test_wait_answers_how_it_ended(harbour: Harbour, script: str, code: int) -> None:
    run = harbour.start("sh", "-c", f"sleep 0.2; {script}")
    assert harbour.leadsman("wait", run.path.name).code == code
    again = harbour.leadsman("wait", run.path.name, "--timeout", "0", "--json")
    assert (code, reading(run.path)) == (again.code, json.loads(again.out))


def test_wait_has_a_time_of_its_own(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    done = harbour.leadsman("wait", run.path.name, "--timeout", "0.2")
    assert (124, f"{run.path.name} running round 1\n") == (done.code, done.out)
    assert f"Run {run.path.name} has not ended within 0.2 s, and was last seen running." in done.err


def test_wait_hears_of_a_cancel(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    waiter = harbour.popen("wait", run.path.name)
    request_cancel(run.path, "a test")
    out, _ = waiter.communicate(timeout=WAIT)
    assert waiter.returncode == 1
    assert b"cancelled" in out


def test_cancel_returns_when_nothing_is_alive_and_touches_no_run_next_door(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    script = "setsid sh -c 'trap \"\" TERM; echo $$ >said; while :; do sleep 1000; done' & exec sleep 1000"
    run, other = harbour.start("sh", "-c", script, kill_grace=0.3), harbour.start("sleep", "1000")
    deaf, pid = int(said.line()), command(run)
    done = harbour.leadsman("cancel", run.path.name)
    assert done.code == 0, done
    assert not alive(deaf)
    assert not alive(pid)
    status = reading(run.path)
    assert ("cancelled", "cancelled") == (status["state"], status["stop_reason"])
    assert "on the command line" in status["cancelled_by"]
    assert reading(other.path)["state"] == "running"
    assert harbour.leadsman("cancel", run.path.name).code == 0, "it is cancelled"


def test_cancel_of_a_run_that_has_ended_says_how(harbour: Harbour) -> None:
    run = harbour.start("true")
    harbour.ended(run)
    done = harbour.leadsman("--json", "cancel", run.path.name)
    assert done.code == 1
    assert "done" in done.err
    assert json.loads(done.out)["state"] == "done"
    assert reading(run.path)["state"] == "done"
    assert not run.cancel.exists()


def test_two_cancels_at_once_agree(harbour: Harbour) -> None:
    run = harbour.start("sleep", "1000")
    cancels = [harbour.popen("cancel", run.path.name) for _ in range(3)]
    assert [0, 0, 0] == [cancel.wait(WAIT) for cancel in cancels]
    for cancel in cancels:
        cancel.communicate()


def test_a_run_can_cancel_itself(harbour: Harbour) -> None:
    run = harbour.start("sh", "-c", f"'{LEADSMAN}' --store '{harbour.store}' cancel $LEADSMAN_RUN_ID")
    assert harbour.ended(run)["state"] == "cancelled"


# ── resume, retry ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_resume_starts_the_next_round_where_it_was(harbour: Harbour) -> None:
    run = harbour.start("sh", "-c", "echo $LEADSMAN_RUN_ID; echo failed: x >>$LEADSMAN_STATUS_LOG; test -e ok")
    assert harbour.ended(run)["stop_reason"] == "said_failed"
    (harbour.folder / "ok").touch()
    run.status_log.write_text(run.status_log.read_text() + "[x] working: said between two rounds\n")
    done = harbour.leadsman("resume", run.path.name, "--json")
    assert json.loads(done.out)["round"] == 2
    status = harbour.ended(run)
    assert (2, "failed") == (status["round"], status["state"])
    assert run.worker_log.read_text() == f"{run.path.name}\n" * 2
    assert len(all_runs(harbour.store)) == 1


def test_resume_goes_on_from_a_round_that_was_said(harbour: Harbour) -> None:
    script = "test -e said && exec sleep 1000; touch said; echo round: 4/9 >>$LEADSMAN_STATUS_LOG"
    run = harbour.hand_off("sh", "-c", script)
    harbour.ended(run)
    assert " round 5 " in harbour.leadsman("resume", run.path.name).out


def test_resume_forgets_an_old_cancel(harbour: Harbour) -> None:
    run = harbour.hand_off("sleep", "1000")
    harbour.leadsman("cancel", run.path.name)
    assert harbour.leadsman("resume", run.path.name).code == 0
    assert reading(run.path)["state"] == "running"


PLACES = ["status.log", "worker.log", "control", "waiting.json", "cancel.json", "status.json", "alive.lock"]
REPLACED = {
    "pipe": 'mkfifo "$f"',
    "folder": 'mkdir -p "$f/full"',
    "link": 'ln -s "$PWD/other" "$f"',
    "dangling": 'ln -s "$PWD/absent" "$f"',
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("kind", REPLACED)
def test_what_a_run_puts_in_the_place_of_a_file_leads_nobody_astray(harbour: Harbour, name: str, kind: str) -> None:
    (harbour.folder / "other").write_text("untouched")
    # Its supervisor may write the same file meanwhile: it tries until it is the last.
    put = f'until rm -rf "$f"; {REPLACED[kind]} 2>/dev/null; do :; done'
    script = f"[ -e absent.lock ] && exit 0; touch absent.lock; f=$LEADSMAN_RUN_DIR/$0; {put}"
    run = harbour.start("sh", "-c", script, name)
    assert harbour.ended(run)["state"] in (("done", "cancelled") if name == "cancel.json" else ("done",))
    for verb in ("status", "show", "wait", "logs", "cancel"):
        done = harbour.leadsman(verb, run.path.name)
        assert "our mistake" not in done.err
    done = harbour.leadsman("resume", run.path.name, "--wait", "60", "--json")
    assert (0, "done") == (done.code, json.loads(done.out)["state"]), done
    assert (harbour.folder / "other").read_text() == "untouched"
    assert not (harbour.folder / "absent").exists()


@pytest.mark.parametrize("name", ["report.md", "worker-report.md", "changes.patch"])
@pytest.mark.parametrize("kind", REPLACED)
def test_show_leaves_out_what_is_no_plain_file(harbour: Harbour, name: str, kind: str) -> None:
    (harbour.folder / "other").write_text("secret")
    run = harbour.start("sh", "-c", f"f=$LEADSMAN_RUN_DIR/$0; {REPLACED[kind]}", name)
    harbour.ended(run)
    done = harbour.leadsman("show", run.path.name)
    assert (0, False) == (done.code, "secret" in done.out), done


@pytest.mark.parametrize("kind", REPLACED)
def test_a_report_that_is_no_plain_file_is_told(harbour: Harbour, kind: str) -> None:
    (harbour.folder / "other").write_text("secret")
    run = harbour.start("sh", "-c", f"f=$LEADSMAN_RUN_DIR/report.json; {REPLACED[kind]}")
    harbour.ended(run)
    done = harbour.leadsman("--home", str(harbour.store.parent), "report", run.path.name)
    assert (1, "", 1) == (done.code, done.out, len(done.err.splitlines()))
    assert "is no plain file" in done.err


@pytest.mark.parametrize("verb", ["resume", "retry"])
def test_a_live_run_is_not_started_again(harbour: Harbour, verb: str) -> None:
    run = harbour.hand_off("sleep", "1000")
    before = run.spec.read_text()
    done = harbour.leadsman(verb, run.path.name)
    assert (1, "") == (done.code, done.out)
    assert str(command(run)) in done.err
    assert before == run.spec.read_text()
    assert record(run)["status"] == "waiting"


@pytest.mark.parametrize("verb", ["resume", "retry"])
def test_a_run_of_which_something_lives_is_not_started_again(harbour: Harbour, verb: str) -> None:
    run = harbour.start("sleep", "1000")
    pid = command(run)
    kill(reading(run.path)["supervisor_pid"])
    done = harbour.leadsman(verb, run.path.name)
    assert done.code == 1
    assert str(pid) in done.err


def test_resumes_at_once_start_one(harbour: Harbour) -> None:
    run = harbour.hand_off("sh", "-c", "echo ran >>ran; test -e first || { touch first; exit; }; exec sleep 1000")
    harbour.ended(run)
    calls = [harbour.popen("resume", run.path.name) for _ in range(5)]
    codes = [call.wait(WAIT) for call in calls]
    for call in calls:
        call.communicate()
    assert sorted(codes) == [0, 1, 1, 1, 1]
    assert reading(run.path)["round"] == 2
    end(run.path)
    assert (harbour.folder / "ran").read_text() == "ran\n" * 2


def test_retry_is_a_new_run_of_the_same_command(harbour: Harbour) -> None:
    run = harbour.hand_off("sh", "-c", "echo $LEADSMAN_RUN_ID $LEADSMAN_RUN_DIR $MINE")
    harbour.ended(run)
    done = harbour.leadsman("retry", run.path.name, "--wait", "60")
    assert done.code == 0, done
    fresh = next(found for found in all_runs(harbour.store) if found.path != run.path)
    assert done.out.startswith(f"waiting {fresh.path.name} round 1 ")
    assert fresh.worker_log.read_text().split() == [fresh.path.name, str(fresh.path)]
    assert reading(run.path)["state"] == "done"


def test_resume_in_a_folder_that_is_gone_is_a_failed_start(harbour: Harbour) -> None:
    run = harbour.start("true", cwd=str(harbour.folder))
    harbour.ended(run)
    run.spec.write_text(run.spec.read_text().replace(f'"cwd": "{harbour.folder}"', f'"cwd": "{harbour.folder}/gone"'))
    done = harbour.leadsman("resume", run.path.name)
    assert done.code == 3
    assert f"{harbour.folder}/gone" in done.err
    assert record(run)["status"] == "failed"


def test_a_run_whose_status_is_broken_is_not_started_again(harbour: Harbour) -> None:
    run = harbour.start("true")
    harbour.ended(run)
    run.status.write_text("{")
    done = harbour.leadsman("resume", run.path.name)
    assert done.code == 1
    assert "status.json" in done.err


# ── say ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_word_is_heard_at_once(harbour: Harbour) -> None:
    said = Fifo(harbour.folder / "said")
    script = f"'{LEADSMAN}' say needs-decision 'keep it,' or drop it? && echo ok >said; exec sleep 1000"
    run = harbour.start("sh", "-c", script)
    said.line()
    until = time.monotonic() + WAIT
    while (word := reading(run.path)["word"]) is None:
        assert time.monotonic() < until
    assert {"verb": "needs-decision", "text": "keep it, or drop it?"} == word
    [line] = run.status_log.read_text().splitlines()
    assert line.startswith("[20")
    assert line.endswith("] needs-decision: keep it, or drop it?")


def test_words_at_once_are_whole_lines(harbour: Harbour) -> None:
    log = harbour.folder / "status.log"
    calls = [harbour.popen("say", "working", str(n) * 500) for n in range(1)]
    for call in calls:
        assert call.wait(WAIT) == 2, "there is no run here"
        call.communicate()
    script = f"for n in 1 2 3 4 5 6; do LEADSMAN_STATUS_LOG={log} '{LEADSMAN}' say working $n$n$n & done; wait"
    subprocess.run(["sh", "-c", script], check=True)
    assert sorted(line[-3:] for line in log.read_text().splitlines()) == [str(n) * 3 for n in range(1, 7)]


def test_an_unknown_verb_is_refused_with_the_known_ones(harbour: Harbour) -> None:
    done = harbour.leadsman("say", "block", "x", LEADSMAN_STATUS_LOG=str(harbour.folder / "log"))
    assert done.code == 2
    assert 'did you mean "blocked"' in done.err
    assert not (harbour.folder / "log").exists()


@pytest.mark.parametrize("text", ["", "x", "1/", "/2", "1/2/3", "-1", "1.5"])
def test_a_round_that_is_no_number_is_refused(harbour: Harbour, text: str) -> None:
    log = harbour.folder / "status.log"
    done = harbour.leadsman("say", "round", "--", text, LEADSMAN_STATUS_LOG=str(log))
    assert (2, True) == (done.code, "leadsman say round 2/5" in done.err)
    assert not log.exists()


@pytest.mark.parametrize("name", ["nonesuch/log", ".", "pipe"])
def test_a_word_that_can_not_be_kept_is_told(harbour: Harbour, name: str) -> None:
    os.mkfifo(harbour.folder / "pipe")
    done = harbour.leadsman("say", "working", "x", LEADSMAN_STATUS_LOG=str(harbour.folder / name))
    assert (1, True) == (done.code, "The word was not kept" in done.err), done


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "- parser: done"], "- parser: done"),
        (["-v", "--home", "x", "--version", "--", "--help"], "-v --home x --version -- --help"),
    ],
)
def test_whatever_stands_behind_the_verb_is_said(harbour: Harbour, words: list[str], said: str) -> None:
    log = harbour.folder / "log"
    assert harbour.leadsman("say", "working", *words, LEADSMAN_STATUS_LOG=str(log)).code == 0
    assert log.read_text().endswith(f"] working: {said}\n")


# ── show, attach ─────────────────────────────────────────────────────────────────────────────────────────────────────

PATCH = """diff --git a/old name.py b/new name.py
similarity index 90%
--- a/old name.py
+++ b/new name.py
@@ -1 +1 @@
-diff --git a/no b/no
+x
diff --git "a/\\303\\244" "b/\\303\\244"
new file mode 100644
"""


def test_show_prints_state_report_files_and_changes(harbour: Harbour) -> None:
    run = harbour.start("true")
    harbour.ended(run)
    run.report_md.write_text("# It went well\n")
    run.report_json.write_text('{"outcome": "published"}')
    run.changes_patch.write_text(PATCH)
    out = harbour.leadsman("show", run.path.name).out
    for part in ("state          done", "# It went well", "Changed files:\n  new name.py", PATCH.rstrip()):
        assert part in out
    brief = harbour.leadsman("show", run.path.name, "--no-diff").out
    assert "new name.py" in brief
    assert "@@" not in brief
    facts = json.loads(harbour.leadsman("show", run.path.name, "--json").out)
    assert read_json(run.status) == facts["status"]
    assert ({"outcome": "published"}, "# It went well\n", PATCH) == (
        facts["report"],
        facts["report_md"],
        facts["changes"],
    )
    assert facts["files"] == ["new name.py", "ä"]
    assert json.loads(harbour.leadsman("show", run.path.name, "--json", "--no-diff").out)["changes"] is None


def test_show_of_a_bare_handoff_says_that_there_is_no_report(harbour: Harbour) -> None:
    run = harbour.hand_off("sh", "-c", "true")
    harbour.ended(run)
    assert "no report" in harbour.leadsman("show", run.path.name).out
    assert not run.report_md.exists()
    run.worker_report.write_text("mine")
    assert "mine" in harbour.leadsman("show", run.path.name).out


@pytest.mark.parametrize("ended", [True, False])
def test_attach_without_a_session_points_to_the_log(harbour: Harbour, ended: bool) -> None:
    run = harbour.hand_off(*(["true"] if ended else ["sleep", "1000"]))
    if ended:
        harbour.ended(run)
    done = harbour.leadsman("attach", run.path.name)
    assert (1, "") == (done.code, done.out)
    assert f"leadsman logs{'' if ended else ' -f'} {run.path.name}" in done.err


@pytest.mark.needs("tmux")
@pytest.mark.parametrize("inside", [{}, {"TMUX": "/nonesuch/another-server,1,0"}])
def test_attach_shows_the_live_terminal_and_leaving_it_ends_no_run(harbour: Harbour, inside: dict[str, str]) -> None:
    run = harbour.hand_off("sh", "-c", "echo marker-$((6 * 7)); exec sleep 1000", options=("--driver", "tmux"))
    look(harbour, run, b"marker-42", **inside)
    assert reading(run.path)["state"] == "running"


@pytest.mark.needs("tmux")
def test_attach_opens_the_terminal_of_a_servers_run_and_shows_no_secret(harbour: Harbour) -> None:
    run = harbour.hand_off("sh", "-c", "echo ghp_0123456789abcdefghij0123; echo marker-$((6 * 7)); exec sleep 1000")
    (run.path / "intent.json").write_text("{}")
    for _ in range(2):  # the second looks at the same one
        assert b"ghp_" not in look(harbour, run, b"marker-42")
    assert reading(run.path)["state"] == "running"


def look(harbour: Harbour, run: RunDir, marker: bytes, **inside: str) -> bytes:
    """Attaches to the run until `marker` was seen, then leaves; what was shown until then."""
    child, terminal = pty.fork()
    if child == 0:
        environ = {**os.environ, **harbour.environ, "LEADSMAN_HOME": str(harbour.folder / "home"), "TERM": "xterm"}
        environ |= inside
        os.execve(LEADSMAN, [str(LEADSMAN), "attach", run.path.name], environ)
    seen = b""
    until = time.monotonic() + WAIT
    while marker not in seen:
        assert select.select([terminal], [], [], until - time.monotonic())[0], seen
        seen += os.read(terminal, 4096)
    detach = ["tmux", "detach-client", "-s", f"=lm-{run.path.name}"]
    subprocess.run(detach, env={**os.environ, **harbour.environ}, check=True)
    with contextlib.suppress(OSError):  # the terminal's other end is closed
        while os.read(terminal, 4096):
            pass
    assert os.waitpid(child, 0)[1] == 0
    os.close(terminal)
    return seen


# ── never started ────────────────────────────────────────────────────────────────────────────────────────────────────


def left(harbour: Harbour) -> RunDir:
    """A run whose caller was killed before it started anything, some time ago."""
    run = harbour.make("true")
    os.utime(run.status, (1.0, 1.0))
    return run


def test_what_was_never_started_is_waited_for_while_it_may_begin_and_is_lost_then(harbour: Harbour) -> None:
    run = harbour.make("true")
    assert harbour.leadsman("wait", run.path.name, "--timeout", "0.1").code == 124
    os.utime(run.status, (1.0, 1.0))
    done = harbour.leadsman("wait", run.path.name)
    assert (1, f"{run.path.name} lost round 1 was never started (whoever handed it off was killed before)\n") == (
        done.code,
        done.out,
    )
    assert record(run)["status"] == "starting"


@pytest.mark.parametrize("verb", ["status", "show"])
def test_whoever_looks_at_what_was_never_started_is_told(harbour: Harbour, verb: str) -> None:
    done = harbour.leadsman(verb, left(harbour).path.name)
    assert done.code == 0
    assert "was never started" in done.out


def test_a_start_that_is_under_way_is_not_lost_however_long_it_takes(harbour: Harbour) -> None:
    run = left(harbour)
    lock = take_lock(run.alive_lock)
    assert lock is not None
    assert reading(run.path)["state"] == "created"
    os.close(lock)


def test_a_caller_that_comes_too_late_starts_nothing(harbour: Harbour) -> None:
    run = left(harbour)
    assert reading(run.path)["state"] == "lost"
    assert start(run.path, "setsid").supervisor_pid is None
    assert reading(run.path)["state"] == "lost"
    assert harbour.leadsman("retry", run.path.name, "--wait", "60").code == 0

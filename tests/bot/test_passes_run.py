"""`leadsman pass`, from outside: every exit code, every spelling, and what the command is given."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.passes import wrapped
from bot.pool import Pool, _Wait
from tests.bot.passes_host import SIZE, WRAPPER, Host, release, until

ALL = str(SIZE)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.end_all()


@pytest.mark.parametrize(
    ("code", "command"),
    [
        (0, ["true"]),
        (7, ["sh", "-c", "exit 7"]),
        (128 + signal.SIGTERM, ["sh", "-c", "kill -TERM $$"]),
        (128 + signal.SIGKILL, ["sh", "-c", "kill -KILL $$"]),
        (126, ["/"]),
        (126, ["/etc/passwd"]),
        (126, ["/etc/passwd/below-a-file"]),
        (127, ["/nowhere/at/all"]),
        (127, ["no-such-command-on-path"]),
        (127, [""]),
    ],
)
def test_run_ends_as_its_command_does(host: Host, code: int, command: list[str]) -> None:
    assert code == host.run("run", "--", *command).returncode
    assert [] == host.locked()


def test_a_script_without_an_interpreter_is_not_executable(host: Host) -> None:
    script = host.folder / "script"
    script.write_text("exit 0\n")
    script.chmod(0o755)
    assert 126 == host.run("run", "--", str(script)).returncode


BAD_COUNTS = [
    "0",
    "-1",
    "1.5",
    "word",
    "",
    "+1",
    " 1",
    "1 ",
    "1\n",
    "\uff11",
    "\u0663",
    "1_0",
    "0x1",
    str(SIZE + 1),
    "9" * 5000,
]
BAD_COUNTS += ["0" * 9 + "1", "999999999"]
PLAIN: dict[str, str] = {}
NESTED, UNBOUNDED = {"LEADSMAN_PASSES_HELD": ALL}, {"LEADSMAN_PASSES_HELD": "0"}
DEGRADED = {"LEADSMAN_POOL_DIR": "/dev/null"}


@pytest.mark.parametrize(
    ("turn", "around"),
    [(0, PLAIN), (1, NESTED), (2, UNBOUNDED), (3, DEGRADED)],
    ids=["plain", "nested", "unbounded", "degraded"],
)
def test_a_wrong_count_never_starts_the_command(host: Host, turn: int, around: dict[str, str]) -> None:
    proof = host.folder / "started"
    for number, count in enumerate(BAD_COUNTS, turn):  # each in both spellings, by turns
        spelling = ["--passes", count] if number % 2 else [f"--passes={count}"]
        ended = host.run("run", *spelling, "--", "touch", str(proof), env={**host.environ, **around})
        assert (125, "", False) == (ended.returncode, ended.stdout, proof.exists()), (spelling, ended.stderr)
        assert 1 == ended.stderr.count("\n"), ended.stderr


@pytest.mark.parametrize(
    "around", [PLAIN, NESTED, UNBOUNDED, DEGRADED], ids=["plain", "nested", "unbounded", "degraded"]
)
@pytest.mark.parametrize("count", ["1", "01", "000000001", ALL])
def test_a_right_count_starts_it(host: Host, around: dict[str, str], count: str) -> None:
    for spelling in (["--passes", count], [f"--passes={count}"]):
        ended = host.run("run", *spelling, "--", "echo", "ran", env={**host.environ, **around})
        assert (0, "ran\n") == (ended.returncode, ended.stdout)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--"],
        ["true"],
        ["--passes"],
        ["--passes", "1"],
        ["--passes", "--", "true"],
        ["--label"],
        ["--log-fd", "--", "true"],
        ["--log-fd", "77", "--", "true"],
        ["--log-fd=-1", "--", "true"],
        ["--log-fd", "999999999", "--", "true"],
        ["--log-fd", "0", "--", "true"],
        ["--jobserver=2", "--", "true"],
        ["--pass", "1", "--", "true"],
        ["-p", "1", "--", "true"],
        ["--note", "/nowhere/at/all", "--", "true"],
    ],
)
def test_wrong_words_end_with_125(host: Host, words: list[str]) -> None:
    with Path(os.devnull).open() as only_readable:
        assert 125 == host.run("run", *words, stdin=only_readable).returncode


@pytest.mark.parametrize("held", ["", "-1", "word", "1.5", "+1", " 1", "1 ", "\uff11", "1\n", "0000000001"])
def test_a_malformed_marker_is_refused(host: Host, held: str) -> None:
    environ = {**host.environ, "LEADSMAN_PASSES_HELD": held}
    assert 125 == host.run("run", "--", "true", env=environ).returncode


def test_nested_work_takes_nothing_more_and_keeps_the_marker(host: Host) -> None:
    nested = [*WRAPPER, "run", "--passes", "1", "--", "sh", "-c", "echo $LEADSMAN_PASSES_HELD"]
    ended = host.run("run", "--passes", ALL, "--", *nested)
    assert (0, f"{SIZE}\n", "") == (ended.returncode, ended.stdout, ended.stderr)


def test_nested_work_can_not_have_more_than_is_held_around_it(host: Host) -> None:
    environ = {**host.environ, "LEADSMAN_PASSES_HELD": "00"}
    assert 0 == host.run("run", "--passes", ALL, "--", "true", env=environ).returncode
    if SIZE > 1:
        environ["LEADSMAN_PASSES_HELD"] = str(SIZE - 1)
        assert 125 == host.run("run", "--passes", ALL, "--", "true", env=environ).returncode


def symlink(host: Host) -> None:
    (host.folder / "real").mkdir()
    host.pool.symlink_to(host.folder / "real")


def a_file(host: Host) -> None:
    host.pool.touch()


def foreign(host: Host) -> None:
    if os.geteuid() != 0:
        host.environ["LEADSMAN_POOL_DIR"] = "/"
    else:
        host.pool.mkdir()
        os.chown(host.pool, 65534, 65534)


def no_home(host: Host) -> None:
    del host.environ["LEADSMAN_POOL_DIR"]


def missing_home(host: Host) -> None:
    host.environ |= {"LEADSMAN_POOL_DIR": " ", "HOME": str(host.folder / "missing")}


def below_a_file(host: Host) -> None:
    host.environ["LEADSMAN_POOL_DIR"] = "/dev/null/pool"


def linked_slot(host: Host) -> None:
    host.pool.mkdir()
    for slot in range(SIZE):
        (host.pool / f"slot-{slot}.lock").symlink_to(host.folder / "elsewhere")


def slot_is_a_pipe(host: Host) -> None:
    host.pool.mkdir()
    for slot in range(SIZE):
        os.mkfifo(host.pool / f"slot-{slot}.lock")


def turnstile_is_a_folder(host: Host) -> None:
    (host.pool / "turnstile.lock").mkdir(parents=True)


def broken_size(host: Host) -> None:
    host.pool.mkdir()
    (host.pool / "size").write_text("many\n")


def empty_size(host: Host) -> None:
    host.pool.mkdir()
    (host.pool / "size").touch()


WAYS = [symlink, a_file, foreign, no_home, missing_home, below_a_file, linked_slot, slot_is_a_pipe]
WAYS += [turnstile_is_a_folder, broken_size, empty_size]


@pytest.mark.parametrize("break_it", WAYS)
def test_an_unusable_pool_never_stands_in_the_way(host: Host, break_it: object) -> None:
    break_it(host)
    command = ["sh", "-c", "echo held=$LEADSMAN_PASSES_HELD; echo own words >&2"]
    ended = host.run("run", "--passes", ALL, "--", *command)
    notice, own = ended.stderr.splitlines()
    assert (0, "held=0\n", "own words") == (ended.returncode, ended.stdout, own)
    assert notice.startswith("leadsman pass: no pass can be had, the command runs without: ")

    log = host.folder / "log"
    with log.open("w") as stream:
        number = stream.fileno()
        ended = host.run("run", "--log-fd", str(number), "--", *command, pass_fds=[number])
    assert (0, "held=0\n", "own words\n") == (ended.returncode, ended.stdout, ended.stderr)
    assert 0 == host.run("status").returncode
    (again,) = log.read_text().splitlines()
    assert re.sub(r"slot-\d", "slot", notice) == re.sub(r"slot-\d", "slot", again)


def test_without_descriptors_high_up_the_pool_is_unusable(host: Host) -> None:
    low = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))  # noqa: E731
    ended = host.run("run", "--", "sh", "-c", "echo held=$LEADSMAN_PASSES_HELD", preexec_fn=low)
    assert (0, "held=0\n", 1) == (ended.returncode, ended.stdout, len(ended.stderr.splitlines()))


def test_in_a_working_folder_that_is_gone_a_pool_below_it_is_unusable(host: Host) -> None:
    def leave() -> None:
        gone = host.folder / "gone"
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()

    environ = {**host.environ, "LEADSMAN_POOL_DIR": "pool"}
    ended = host.run("run", "--", "sh", "-c", "echo held=$LEADSMAN_PASSES_HELD", env=environ, preexec_fn=leave)
    assert (0, "held=0\n", True) == (
        ended.returncode,
        ended.stdout,
        "pool is below a folder that is gone" in ended.stderr,
    )
    ended = host.run("status", "--json", env=environ, preexec_fn=leave)
    assert (0, False) == (ended.returncode, json.loads(ended.stdout)["available"])


def test_a_pool_of_another_size_is_refused_and_both_sizes_are_named(host: Host) -> None:
    host.pool.mkdir()
    (host.pool / "size").write_text("4711\n")
    ended = host.run("run", "--", "echo", "ran")
    assert (125, "") == (ended.returncode, ended.stdout)
    assert "4711" in ended.stderr
    assert f" {SIZE} CPUs" in ended.stderr
    assert 125 == host.run("size").returncode
    assert (4711, 4711) == (host.status()["size"], host.status()["free"])


def test_a_process_with_fewer_cpus_can_not_take_part(host: Host) -> None:
    one = {min(os.sched_getaffinity(0))}
    host.run("run", "--", "true", check=True)
    ended = host.run("run", "--", "true", preexec_fn=lambda: os.sched_setaffinity(0, one))
    assert (125 if SIZE > 1 else 0) == ended.returncode


def test_the_pool_has_a_pass_for_each_cpu_that_may_be_used(host: Host) -> None:
    one = {min(os.sched_getaffinity(0))}
    assert f"{SIZE}\n" == host.run("size").stdout
    assert "1\n" == host.run("size", preexec_fn=lambda: os.sched_setaffinity(0, one)).stdout
    for name in ("PYTHON_CPU_COUNT", "OMP_NUM_THREADS", "LEADSMAN_POOL_SIZE"):
        assert f"{SIZE}\n" == host.run("size", env={**host.environ, name: "64"}).stdout


def test_the_pool_is_made_for_its_owner_alone(host: Host) -> None:
    host.environ["LEADSMAN_POOL_DIR"] = str(host.folder / "deep" / "er" / "pool")
    host.run("run", "--passes", ALL, "--", "true", check=True)
    pool = host.folder / "deep" / "er" / "pool"
    assert 0o700 == pool.stat().st_mode & 0o777
    assert {0o600} == {path.stat().st_mode & 0o777 for path in pool.glob("slot-*.lock")}
    assert {"size", "turnstile.lock", *(f"slot-{n}.lock" for n in range(SIZE))} == {p.name for p in pool.iterdir()}


def test_without_a_folder_named_the_pool_is_in_the_cache_of_the_home(host: Host) -> None:
    for blank in ("", "  \t"):
        environ = {**host.environ, "LEADSMAN_POOL_DIR": blank, "HOME": str(host.folder)}
        host.run("run", "--", "true", env=environ, check=True)
    assert (host.folder / ".cache/leadsman/cpu-pool/size").read_text() == f"{SIZE}\n"


def test_passes_are_inherited_high_up_and_the_rest_of_the_descriptors_untouched(host: Host) -> None:
    script = "cd /proc/self/fd && for n in *; do readlink $n; done"
    read, write = os.pipe()
    outer = host.run("run", "--passes", ALL, "--", sys.executable, "-c", LIST_DESCRIPTORS, pass_fds=[read, write])
    os.close(read)
    os.close(write)
    found = {int(number): target for number, target in json.loads(outer.stdout).items()}
    locks = {number for number, target in found.items() if target.startswith(str(host.pool))}
    assert SIZE == len(locks), script
    assert min(locks) >= 100
    assert {0, 1, 2, read, write} == found.keys() - locks


LIST_DESCRIPTORS = """
import json, os
found = {}
for name in os.listdir("/proc/self/fd"):
    try:
        found[name] = os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        pass  # the listing's own
print(json.dumps(found))
"""


def test_a_command_may_use_descriptors_3_to_9_as_it_likes(host: Host) -> None:
    fixed = (
        'for n in 3 4 5 6 7 8 9; do eval "exec $n</dev/null"; eval "exec $n<&-"; done; echo started; read line; exit 0'
    )
    process = host.held("--passes", ALL, command=["sh", "-c", fixed])
    assert SIZE == len(host.locked())
    assert 0 == release(process)


def test_the_log_descriptor_is_closed_in_the_command_unless_it_is_a_standard_one(host: Host) -> None:
    with (host.folder / "log").open("w") as stream:
        number = stream.fileno()
        check = f"test -e /proc/self/fd/{number}"
        assert 1 == host.run("run", "--log-fd", str(number), "--", "sh", "-c", check, pass_fds=[number]).returncode
        assert 0 == host.run("run", "--", "sh", "-c", check, pass_fds=[number]).returncode
    for number in (1, 2):
        assert 0 == host.run("run", f"--log-fd={number}", "--", "test", "-e", f"/proc/self/fd/{number}").returncode


def test_the_command_s_bytes_and_environment_pass_through_unchanged(host: Host) -> None:
    raw = bytes(range(256)) * 500
    ended = subprocess.run(
        [*WRAPPER, "run", "--", "sh", "-c", "tee /dev/stderr"],
        input=raw,
        capture_output=True,
        env=host.environ,
        check=True,
    )
    assert (raw, raw) == (ended.stdout, ended.stderr)
    environ = {
        b"LEADSMAN_POOL_DIR": os.fsencode(host.pool),
        b"ODD": b"\xff\xfe",
        b"PATH": os.fsencode(os.environ["PATH"]),
    }
    ended = subprocess.run([*WRAPPER, "run", "--", "env", "-0"], capture_output=True, env=environ, check=True)
    got = dict(line.split(b"=", 1) for line in ended.stdout.split(b"\0") if line)
    assert {**environ, b"LEADSMAN_PASSES_HELD": b"1"} == got
    odd = ["", "a b", "$HOME", "line\nbreak", "-- --", "ü", os.fsdecode(b"\xff")]
    ended = subprocess.run(
        [*WRAPPER, "run", "--", "printf", "%s\\0", *odd], capture_output=True, env=host.environ, check=True
    )
    assert [os.fsencode(word) for word in odd] == ended.stdout.split(b"\0")[:-1]


LIBC_S_OWN = 0b11 << 31
"""Signals 32 and 33, which glibc keeps for itself and shows as ignored in what it spawns."""


def test_signals_have_their_default_effect_on_the_command_and_none_on_the_wrapper(host: Host) -> None:
    process = host.held("--passes", ALL)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process.send_signal(number)
    assert SIZE == len(host.locked())
    assert 0 == release(process)
    show = "grep -E '^Sig(Ign|Blk)' /proc/self/status"
    ended = host.run("run", "--", "sh", "-c", show)
    ignored, blocked = (
        int(line.split()[1], 16) & ~LIBC_S_OWN for line in sorted(ended.stdout.splitlines(), reverse=True)
    )
    assert (0, 0) == (ignored, blocked)


def test_what_nohup_ignores_stays_ignored(host: Host) -> None:
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    ended = host.run("run", "--", "grep", "SigIgn", "/proc/self/status", preexec_fn=ignore)
    assert 1 << (signal.SIGHUP - 1) == int(ended.stdout.split()[1], 16) & ~LIBC_S_OWN


def test_an_ignored_sigchld_does_not_cost_the_exit_code(host: Host) -> None:
    ignore = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # noqa: E731
    assert 7 == host.run("run", "--", "sh", "-c", "exit 7", preexec_fn=ignore).returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_wait_and_the_command_never_runs(host: Host, number: signal.Signals) -> None:
    holder = host.held("--passes", ALL)
    first = host.hold(command=["touch", str(host.folder / "ran")])
    until(host.queueing)
    second = host.hold(command=["touch", str(host.folder / "ran")])
    until(lambda: waits_in_line(second.pid))
    for waiter in (second, first):
        waiter.send_signal(number)
        assert 128 + number == waiter.wait(60)
    assert (0, False) == (release(holder), (host.folder / "ran").exists())
    assert ([], False) == (host.locked(), host.queueing())


def waits_in_line(pid: int) -> bool:
    """The kernel's own word that this process is blocked on a lock: proc_locks(5)."""
    waiting = [line.split() for line in Path("/proc/locks").read_text().splitlines() if " -> " in line]
    return any(str(pid) in words for words in waiting)


def test_the_first_notice_comes_after_two_seconds_and_says_all(host: Host) -> None:
    holder = host.held("--passes", ALL, "--label", "slow\ttests\x1b[31m")
    begun = time.monotonic()
    waiter = host.hold("--label", "quick")
    notice = waiter.stderr.readline()
    assert re.search(rf"quick has waited \d+ s for 1 of {SIZE} passes", notice)
    assert 2 <= time.monotonic() - begun
    assert f"pool of {SIZE} in {host.pool}" in notice
    assert f"slot 0: pid={holder.pid} passes={SIZE} since=" in notice
    assert "label=slow tests [31m" in notice
    given_back = time.time()
    assert 0 == release(holder)
    assert "started\n" == waiter.stdout.readline()
    (line,) = (text for path in host.pool.glob("slot-*") if f"pid={waiter.pid} " in (text := path.read_text()))
    assert int(given_back) <= int(line.split()[2].removeprefix("since="))  # since it holds, not since it waited
    assert (0, "") == (release(waiter), waiter.stderr.read())


def test_status_names_who_holds_what(host: Host) -> None:
    empty = {"available": True, "dir": str(host.pool), "size": SIZE, "held": 0, "free": SIZE, "holders": []}
    assert empty == host.status()
    holder = host.held("--passes=1", "--label=one line\nonly")
    status = host.status()
    (held,) = status.pop("holders")
    assert {"available": True, "dir": str(host.pool), "size": SIZE, "held": 1, "free": SIZE - 1} == status
    assert f"pid={holder.pid} passes=1 since=" in held["holder"]
    assert held["holder"].endswith(" label=one line only")
    text = host.run("status").stdout.splitlines()
    assert [f"pool={SIZE} held=1 free={SIZE - 1} dir={host.pool}", f"slot={held['slot']} {held['holder']}"] == text
    release(holder)


def test_the_default_label_is_the_name_of_the_command(host: Host) -> None:
    ended = host.run("run", "--", sys.executable, str(WRAPPER[-1]), "status")
    assert ended.stdout.splitlines()[1].endswith(f" label={Path(sys.executable).name}")


def test_an_unavailable_pool_is_an_answer_not_an_error(host: Host) -> None:
    symlink(host)
    ended = host.run("status", "--json")
    assert (0, {"available": False, "reason": f"{host.pool} is a symbolic link, not a folder"}) == (
        ended.returncode,
        json.loads(ended.stdout),
    )
    assert (0, 1) == (host.run("status").returncode, len(host.run("status").stdout.splitlines()))
    assert f"{SIZE}\n" == host.run("size").stdout


def test_help_is_help_and_nonsense_is_usage(host: Host) -> None:
    for words in (["--help"], ["-h"], ["run", "--help"], ["status", "-h"]):
        assert (0, "") == (host.run(*words).returncode, host.run(*words).stderr)
    for words in ([], ["nonsense"], ["size", "1"], ["status", "--jsn"]):
        assert (2, "") == (host.run(*words).returncode, host.run(*words).stdout)


def test_the_wrapper_imports_next_to_nothing(host: Host) -> None:
    argv = [sys.executable, "-I", "-S", "-X", "importtime", WRAPPER[-1], "run", "--", "true"]
    ended = subprocess.run(argv, env=host.environ, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert {"bot", "bot.cpus", "bot.passes", "bot.pool"} == {name for name in imported if name.split(".")[0] == "bot"}
    assert imported.isdisjoint({"subprocess", "typing", "json", "pathlib", "threading", "argparse", "random", "ctypes"})


def test_a_supervisor_learns_when_the_passes_are_held(host: Host) -> None:
    command = ("sh", "-c", "cat note/passes.json; echo $LEADSMAN_DEADLINE")
    argv, spec = wrapped(command, "all", label="the tests", note=Path("note"))
    assert {"command": [*command], "passes_note": "note/passes.json"} == spec
    (host.folder / "note").mkdir()
    holder = host.held("--passes", "1")
    began = time.monotonic()
    waiter = host.start(argv, cwd=host.folder, env={**host.environ, "LEADSMAN_DEADLINE": "1000"})
    until(host.queueing)
    until(lambda: time.monotonic() > began + 1.5)
    assert not (host.folder / "note/passes.json").exists()
    assert 0 == release(holder)
    line, deadline = waiter.stdout.read().splitlines()
    note = json.loads(line)
    assert {"passes", "waited", "held_at", "held_monotonic"} == note.keys()
    assert SIZE == note["passes"]
    assert 1 < note["waited"] <= note["held_monotonic"] - began
    assert 1000 + round(note["waited"]) == int(deadline)
    assert ["passes.json"] == [path.name for path in (host.folder / "note").iterdir()]


def test_a_task_without_passes_is_not_wrapped(tmp_path: Path) -> None:
    assert (("make", "test"), {}) == wrapped(["make", "test"], 0, label="", note=tmp_path)


def test_notices_of_a_wrapper_without_standard_descriptors_reach_no_lock(host: Host) -> None:
    holder = host.held("--passes", ALL, "--label=holder")
    closed = 'exec "$@" <&- >&- 2>&-'
    waiter = host.start(["sh", "-c", closed, "sh", *WRAPPER, "run", "--", "sh", "-c", "test ! -e /proc/self/fd/2"])
    until(host.queueing)
    until(lambda: time.time() > int(host.status()["holders"][0]["holder"].split()[2][6:]) + 3)
    for path in host.pool.glob("*.lock"):
        assert "waited" not in path.read_text()
    assert all(" label=holder" in held["holder"] for held in host.status()["holders"])
    assert (0, 0) == (release(holder), waiter.wait(60))


def test_five_holders_are_named_and_the_others_counted(tmp_path: Path) -> None:
    pool = Pool(str(tmp_path), 8)
    told: list[str] = []
    wait = _Wait(pool, 3, "mine", told.append)
    with pool.take(7, "theirs", tell=pytest.fail):
        wait.notice("no reason")
        assert (True, []) == (0 < wait.until_notice() <= 2, told)
        wait._due = time.monotonic()
        wait.notice("no reason")
        wait.notice("no reason")
    (notice,) = told
    assert 5 == notice.count(f"pid={os.getpid()} passes=7 since=")
    assert re.match(r"mine has waited \d+ s for 3 of 8 passes: no reason \(pool of 8 in ", notice)
    assert notice.endswith("; and 2 more)")
    assert 0 < wait.until_notice() <= 60


FIFO = """
import os, sys
auth = [word for word in os.environ["MAKEFLAGS"].split() if "auth=fifo:" in word][0]
print(os.read(os.open(auth.partition("fifo:")[2], os.O_RDONLY | os.O_NONBLOCK), 100))
"""


@pytest.mark.parametrize("make", ["GNU Make 4.4", "GNU Make 10.0.90", "BSD make", ""])
def test_the_jobserver_has_a_name_where_make_takes_one(host: Host, make: str) -> None:
    tools = host.folder / "tools"
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    if make:
        (tools / "make").write_text(f"#!/bin/sh\necho '{make}'\necho more\n")
        (tools / "make").chmod(0o755)
    environ = {**host.environ, "PATH": str(tools)}
    ended = host.run("run", "--jobserver", "--passes", ALL, "--", sys.executable, "-c", FIFO, env=environ)
    tokens = "b'" + "+" * (SIZE - 1) + "'"
    assert (0, f"{tokens}\n" if SIZE > 1 else "") == (ended.returncode if SIZE > 1 else 0, ended.stdout)


def test_to_take_a_pass_little_has_to_be_imported(host: Host) -> None:
    code = "import sys; from bot import passes; passes.run(['--', 'true'], {'LEADSMAN_POOL_DIR': sys.argv[1]})"
    code = f"import sys; sys.path.append({str(Path(__file__).parents[2])!r}); {code}; print(*sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", code, host.folder / "pool"]
    seen = set(subprocess.run(argv, capture_output=True, check=True, text=True).stdout.split())
    assert "bot.pool" in seen
    assert not seen & {"enum", "signal", "collections", "typing", "select", "encodings.ascii", "bot.bell"}


def test_a_slot_holds_one_line_whatever_stood_there_before(host: Host) -> None:
    for label in ("x" * 90, "y", "z" * 40):
        ended = host.run("run", "--passes", ALL, "--label", label, "--", "sh", "-c", f"cat {host.pool}/slot-*")
        assert [f"label={label}"] * SIZE == [line.split()[-1] for line in ended.stdout.splitlines()]

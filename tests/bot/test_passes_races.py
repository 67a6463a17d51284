"""The pass pool under many hands: real processes, killed at any moment, with the invariant asserted throughout."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from bot.pool import Hold, Pool
from tests.bot.passes_host import ROOT, SIZE, WORKER, WRAPPER, Host, is_locked, release, until
from tests.bot.test_passes_run import LIST_DESCRIPTORS, waits_in_line

ALL = str(SIZE)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.end_all()


class Turn(NamedTuple):
    """One time that a worker held passes, by the clock that all processes share."""

    got: float
    gave: float
    slots: tuple[str, ...]


def turns(output: str) -> list[Turn]:
    """What a worker (tests/bot/passes_worker.py) says; a turn that a kill cut short has no end and is left out."""
    lines = [line.split() for line in output.splitlines()]
    pairs = zip(lines[::2], lines[1::2], strict=False)
    return [Turn(float(a[1]), float(b[1]), tuple(a[2].split(","))) for a, b in pairs if b[2:]]


def worker(
    host: Host, *, size: int, count: int = 1, hold: float = 0.0, rounds: int = 1, label: str = "w"
) -> subprocess.Popen[str]:
    host.pool.mkdir(exist_ok=True)
    return host.start([*WORKER, str(host.pool), str(size), str(count), str(hold), str(rounds), label])


def finished(workers: list[subprocess.Popen[str]]) -> list[list[Turn]]:
    """Tells endless workers to stop, and answers what turns each had."""
    for process in workers:
        process.stdin.write("\n")
        process.stdin.flush()
    return [turns(process.communicate(timeout=90)[0]) for process in workers]


def most_at_once(log: str) -> int:
    """How many commands ran at one moment, by the `got` and `gave` that each wrote."""
    level = most = 0
    for word in log.split():
        level += 1 if word == "got" else -1
        most = max(most, level)
    assert level == 0
    return most


def overlapping(all_turns: list[Turn]) -> int:
    """The most passes that were held at one moment; fails when two held the same one."""
    moments = sorted(
        [(t.got, 1, t.slots) for t in all_turns] + [(t.gave, 0, t.slots) for t in all_turns], key=lambda m: m[:2]
    )
    held: set[str] = set()
    most = 0
    for _, taken, slots in moments:
        assert not taken or held.isdisjoint(slots), f"{slots} were held twice"
        held = held | set(slots) if taken else held - set(slots)
        most = max(most, len(held))
    return most


def test_no_pass_leaks_and_none_is_held_twice_when_holders_are_killed_at_any_moment(host: Host) -> None:
    chance = random.Random(1)
    all_turns: list[Turn] = []
    for _ in range(5):
        doomed = [worker(host, size=3, count=chance.choice([1, 1, 2]), hold=0.001, rounds=0) for _ in range(10)]
        for process in doomed:
            assert process.stdout.readline().startswith("got ")
            signal.sigtimedwait([], chance.random() * 0.005)
            process.kill()
        for process in doomed:
            assert -signal.SIGKILL == process.wait()
            all_turns += turns(process.stdout.read().partition("\n")[2])  # behind the end of the turn begun above
        assert ([], False) == (host.locked(), host.queueing())
    assert all_turns
    assert overlapping(all_turns) <= 3
    assert 0 == worker(host, size=3, count=3).wait(60)


def test_two_requests_for_two_of_three_never_lock_each_other_out(host: Host) -> None:
    workers = [worker(host, size=3, count=2, hold=0.001, rounds=150) for _ in range(3)]
    all_turns = [turn for process in workers for turn in turns(process.communicate(timeout=90)[0])]
    assert 450 == len(all_turns)
    assert 2 == overlapping(all_turns)


def test_a_request_for_all_is_served_within_one_round_while_small_ones_keep_coming(host: Host) -> None:
    small = [worker(host, size=3, hold=0.01, rounds=0) for _ in range(6)]
    for process in small:
        process.stdout.readline()
    large: list[tuple[float, Turn]] = []
    for _ in range(6):
        process = worker(host, size=3, count=3)
        until(lambda process=process: waits_in_line(process.pid) or process.poll() is not None)
        in_line = time.monotonic()
        large += [(in_line, turn) for turn in turns(process.communicate(timeout=90)[0])]
    others = [turn for some in finished(small) for turn in some]
    assert 6 == len(large)
    for in_line, turn in large:
        # Ahead of it stand six at most. Whenever the line moves up the kernel may let a newcomer slip in, but never
        # for long; where all grab at once, hundreds pass before three are free at one moment.
        assert sum(in_line < other.got < turn.got for other in others) <= 3 * 6
        assert not [other for other in others if turn.got <= other.got < turn.gave]
    assert len(others) > 20


def test_waiters_get_their_turns_alike(host: Host) -> None:
    rivals = [worker(host, size=2, hold=0.005, rounds=0) for _ in range(7)]
    for process in rivals:
        process.stdout.readline()
    mine = turns(worker(host, size=2, hold=0.005, rounds=100).communicate(timeout=90)[0])
    meanwhile = [[t for t in some if mine[0].got < t.got < mine[-1].got] for some in finished(rivals)]
    got = [len(mine), *map(len, meanwhile)]
    # Jain's index. In line it is 0.99 and more; where all grab at once it is about a half.
    assert sum(got) ** 2 / len(got) / sum(n * n for n in got) > 0.97, got


def test_a_line_goes_on_when_its_head_is_killed_while_the_holder_holds_on(host: Host) -> None:
    host.pool.mkdir()
    mine = Pool(str(host.pool), 1).take(1, "the test", tell=pytest.fail)
    head = worker(host, size=1)
    until(host.queueing)
    second = worker(host, size=1)
    until(lambda: waits_in_line(second.pid))
    head.kill()
    head.wait()
    until(lambda: not waits_in_line(second.pid) and host.queueing())
    mine.release()
    assert 1 == len(turns(second.communicate(timeout=90)[0]))


def test_a_request_that_still_collects_is_named_and_keeps_what_it_has(host: Host) -> None:
    host.pool.mkdir()
    (host.pool / "size").write_text("3\n")
    one = Pool(str(host.pool), 3).take(1, "finished earlier", tell=pytest.fail)
    two = Pool(str(host.pool), 3).take(1, "still there", tell=pytest.fail)
    one.release()
    collector = worker(host, size=3, count=3)
    until(lambda: 3 == len(host.locked()))
    holders = sorted(held["holder"].partition(" since=")[0] for held in host.status()["holders"])
    assert sorted([f"pid={collector.pid} passes=3"] * 2 + [f"pid={os.getpid()} passes=1"]) == holders
    two.release()
    assert 0 == collector.wait(60)


def test_a_request_that_is_killed_while_it_collects_leaves_nothing(host: Host) -> None:
    host.pool.mkdir()
    mine = Pool(str(host.pool), 3).take(1, "the test", tell=pytest.fail)
    collector = worker(host, size=3, count=3)
    until(lambda: 3 == len(host.locked()))
    collector.kill()
    collector.wait()
    assert (1, False) == (len(host.locked()), host.queueing())
    mine.release()


def test_the_pass_outlives_its_wrapper_while_the_command_lives(host: Host) -> None:
    process = host.held("--passes", ALL)
    process.kill()
    process.wait()
    assert SIZE == len(host.locked())
    assert f"pid={process.pid} passes={SIZE}" in host.status()["holders"][0]["holder"]
    process.stdin.close()
    until(lambda: not host.locked())


def test_the_pass_is_free_when_the_last_descendant_has_ended(host: Host) -> None:
    fifo = host.folder / "fifo"
    os.mkfifo(fifo)
    left_behind = f"setsid sh -c 'setsid cat {fifo} >/dev/null 2>&1 &' </dev/null"
    assert 0 == host.run("run", "--", "sh", "-c", left_behind).returncode
    with fifo.open("w"):
        assert 1 == len(host.locked())
        waiter = host.hold("--passes", ALL)
        until(host.queueing)
    assert "started\n" == waiter.stdout.readline()
    assert 0 == release(waiter)


def test_a_waiting_wrapper_that_is_killed_leaves_the_line(host: Host) -> None:
    holder = host.held("--passes", ALL)
    waiters = [host.hold("--label", f"w{n}") for n in range(4)]
    until(lambda: sum(waits_in_line(process.pid) for process in waiters) == 3)
    for process in waiters[:3]:
        process.kill()
        process.wait()
    assert 0 == release(holder)
    assert "started\n" == waiters[3].stdout.readline()


def test_fifty_wrappers_killed_at_random_never_over_book_the_pool(host: Host) -> None:
    chance = random.Random(2)
    log = host.folder / "log"
    log.touch()
    command = ["sh", "-c", f"echo got >>{log}; cat >/dev/null; echo gave >>{log}"]
    living: list[subprocess.Popen[str]] = []
    for number in range(50):
        living.append(host.hold(f"--label=w{number}", command=command))
        signal.sigtimedwait([], chance.random() * 0.01)
        if len(living) > 6:
            victim = living.pop(chance.randrange(len(living)))
            victim.kill()
            victim.stdin.close()
    for process in living:
        process.stdin.close()
        assert 0 == process.wait(60)
    until(lambda: not host.locked())
    assert not host.queueing()
    assert 6 <= log.read_text().count("got")
    assert most_at_once(log.read_text()) <= SIZE


def with_flock_alone(host: Host) -> list[str]:
    """The script that the protocol's page shows."""
    page = (ROOT / ".github/CPU-PASSES.md").read_text()
    script = host.folder / "with-passes"
    script.write_text(page.partition("```bash\n")[2].partition("```")[0])
    return ["bash", str(script)]


def in_perl(host: Host) -> list[str]:
    return ["perl", str(ROOT / "tests/bot/participant.pl")]


@pytest.mark.parametrize(
    "participant",
    [
        pytest.param(with_flock_alone, marks=pytest.mark.needs("flock")),
        pytest.param(in_perl, marks=pytest.mark.needs("perl")),
    ],
)
def test_a_participant_in_another_language_stands_in_the_same_line(host: Host, participant: object) -> None:
    argv = participant(host)
    host.run("run", "--", "true", check=True)
    inside = host.start([*argv, ALL, *WRAPPER, "status", "--json"]).communicate()[0]
    assert f'"held": {SIZE}, "free": 0' in inside
    assert f"passes={SIZE} since=" in inside
    descriptors = host.start([*argv, ALL, sys.executable, "-c", LIST_DESCRIPTORS]).communicate()[0]
    assert SIZE == descriptors.count(str(host.pool)) == descriptors.count(".lock")

    ours = host.held("--passes", ALL)
    theirs = host.start([*argv, "1", "sh", "-c", "echo started; read line; echo $LEADSMAN_PASSES_HELD"])
    until(host.queueing)
    behind = host.hold("--passes", ALL)
    until(lambda: waits_in_line(behind.pid))
    assert 0 == release(ours)
    assert "started\n" == theirs.stdout.readline()
    until(host.queueing)
    assert "1\n" == theirs.communicate("\n", timeout=60)[0]
    assert "started\n" == behind.stdout.readline()
    assert 125 == host.start([*argv, str(SIZE + 1), "true"]).wait(60)


@pytest.mark.needs("flock", "perl")
def test_all_languages_together_never_over_book_the_pool(host: Host) -> None:
    host.pool.mkdir()
    (host.pool / "size").write_text("2\n")
    log = host.folder / "log"
    command = ["sh", "-c", f"echo got >>{log}; sleep 0.02; echo gave >>{log}"]
    others = [host.start([*argv, "1", *command]) for argv in [with_flock_alone(host), in_perl(host)] * 6]
    workers = [worker(host, size=2, count=2, hold=0.001, rounds=10) for _ in range(2)]
    for process in others:
        assert 0 == process.wait(60)
    assert [10, 10] == [len(turns(process.communicate(timeout=90)[0])) for process in workers]
    assert 12 == log.read_text().count("got")
    assert most_at_once(log.read_text()) <= 2


@pytest.mark.needs("make")
def test_make_under_the_jobserver_never_runs_more_jobs_than_passes(host: Host) -> None:
    jobs = " ".join(f"job{n}" for n in range(12))
    recipe = f"{jobs}:\n\t@echo got; sleep 0.03; echo gave\n.PHONY: all sub {jobs}\n"
    (host.folder / "Makefile").write_text(f"all: {jobs} sub\nsub:\n\t+@$(MAKE) -s -f inner\n{recipe}")
    (host.folder / "inner").write_text(f"all: {jobs}\n{recipe}")
    for count in range(1, SIZE + 1):
        ended = host.run("run", f"--passes={count}", "--jobserver", "--", "make", "-s", cwd=host.folder)
        assert (0, 24, "") == (ended.returncode, ended.stdout.count("got"), ended.stderr)
        assert count == most_at_once(ended.stdout)


def test_the_jobserver_keeps_other_make_flags_and_is_shared_by_nested_work(host: Host) -> None:
    show = ["sh", "-c", 'printf %s "$MAKEFLAGS"']
    environ = {**host.environ, "MAKEFLAGS": "k -j8 --jobserver-auth=3,4 -- VAR=1"}
    flags = host.run("run", "--jobserver", "--", *show, env=environ).stdout
    assert flags.startswith("k -j1 --jobserver-auth=")
    assert flags.endswith(" -- VAR=1")
    assert 1 == flags.count("--jobserver-auth=")
    nested = {**environ, "LEADSMAN_PASSES_HELD": ALL}
    assert environ["MAKEFLAGS"] == host.run("run", "--jobserver", "--", *show, env=nested).stdout


def test_a_pass_is_given_back_in_the_library_by_closing(tmp_path: Path) -> None:
    pool = Pool(str(tmp_path), 2)
    with pool.take(2, "both", tell=pytest.fail) as hold:
        assert 2 == sum(is_locked(path) for path in tmp_path.glob("slot-*"))
        assert all(number >= 100 and not os.get_inheritable(number) for number in hold.descriptors)
    assert 0 == sum(is_locked(path) for path in tmp_path.glob("slot-*"))
    assert isinstance(hold, Hold)

"""What the kernel says of processes, from /proc, and signals that can't hit a stranger.

Standard library only and quick to import: the supervisor starts from here. Source: proc(5), pidfd_open(2).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterable


class Process:
    """One process as /proc/<pid>/stat shows it. `started`, in clock ticks since boot, makes the pid an identity."""

    __slots__ = ("group", "parent", "pid", "session", "started", "zombie")

    def __init__(self, pid: int, stat: bytes) -> None:
        fields = stat[stat.rindex(b")") + 2 :].split()  # the name before it may hold anything, brackets too
        self.pid = pid
        self.zombie = fields[0] in b"ZX"
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.started = int(fields[19])


def look(pid: int) -> Process | None:
    """The process, or None where there is none of that pid."""
    stat = _read(pid, "stat")
    return Process(pid, stat) if stat else None


def start_of(pid: int) -> int | None:
    """When it started, in clock ticks since boot; None where there is no such process."""
    process = look(pid)
    return process.started if process else None


def started_at(process: Process) -> float:
    """When it started, in seconds since 1970, as the host's clock counts now."""
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted + process.started / os.sysconf("SC_CLK_TCK")


def everyone() -> dict[int, Process]:
    """All processes there are, by pid."""
    seen = (look(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in seen if process is not None}


def below(roots: Iterable[int], among: dict[int, Process], *, barring: Collection[int] = ()) -> list[Process]:
    """The descendants of `roots`, without those in `barring` and whatever is below them."""
    children: dict[int, list[Process]] = {}
    for process in among.values():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    open_ends = list(roots)
    while open_ends:
        fresh = [process for process in children.pop(open_ends.pop(), ()) if process.pid not in barring]
        found += fresh
        open_ends += [process.pid for process in fresh]
    return found


def above(pid: int, among: dict[int, Process]) -> set[int]:
    """`pid` and its ancestors."""
    line: set[int] = set()
    while pid in among and pid not in line:
        line.add(pid)
        pid = among[pid].parent
    return line


def send(process: Process, number: int) -> bool:
    """Signals exactly that process: its pid may be another's by now, and that one is left alone. False: not sent."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        now = look(process.pid)
        if now is None or now.started != process.started:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def argv_of(pid: int) -> list[bytes]:
    """The command line; empty where it can't be had."""
    return _read(pid, "cmdline").split(b"\0")[:-1]


def environment_of(pid: int) -> list[bytes]:
    """The environment the program was started with, `NAME=value` each; empty where it can't be had."""
    return _read(pid, "environ").split(b"\0")


def supervises(pid: int) -> bool:
    """Whether it is the supervisor of a run, by its command line."""
    argv = argv_of(pid)
    return len(argv) > 4 and argv[1:3] == [b"-I", b"-S"] and argv[3].endswith(b"/bot/supervisor.py")


def boot_id() -> str:
    """An id of the host's current boot: a pid means nothing in another."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:  # it has ended, or is another user's
        return b""

"""How many CPUs this process may use.

Standard library only, and little of it: it is looked up before every command that takes passes.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def host_size(system: str = "/") -> int:
    """How many passes this host has: its CPUs, or fewer where affinity or a control group allows fewer (rounded up).

    `system` is where /proc and the control groups' file systems are found.
    """
    # Not os.cpu_count(): since Python 3.13 an environment variable overrides it.
    limits = [os.sysconf("SC_NPROCESSORS_ONLN"), len(os.sched_getaffinity(0)), *_quotas(system)]
    return max(1, min(limits))


def _quotas(system: str) -> Iterator[int]:
    """The CPU quotas of our control groups and all those around them, v1 and v2, each rounded up to whole CPUs."""
    try:
        groups = _lines(f"{system}/proc/self/cgroup")
        mounts = [line.split(" - ") for line in _lines(f"{system}/proc/self/mountinfo")]
    except OSError:
        return
    for group in groups:
        _, controllers, path = group.split(":", 2)
        for place, kind in mounts:
            filesystem, _, options = kind.split(" ", 2)
            v2 = filesystem == "cgroup2" and not controllers
            v1 = filesystem == "cgroup" and "cpu" in controllers.split(",") and "cpu" in options.split(",")
            if v1 or v2:
                root, point = place.split(" ")[3:5]
                yield from _quotas_upwards(system + point, path.removeprefix(root.rstrip("/")), v2=v2)


def _quotas_upwards(top: str, path: str, *, v2: bool) -> Iterator[int]:
    names = [name for name in path.split("/") if name]
    if ".." in names:  # the group lies outside of what is mounted here
        names = []
    for depth in range(len(names) + 1):
        folder = "/".join([top, *names[:depth]])
        try:
            if v2:
                quota, period = _lines(f"{folder}/cpu.max")[0].split()
            else:
                quota, period = (_lines(f"{folder}/cpu.cfs_{what}_us")[0] for what in ("quota", "period"))
            if quota not in ("max", "-1"):
                yield -(-int(quota) // int(period))
        except (OSError, ValueError, IndexError, ZeroDivisionError):
            continue  # a level without a limit has no such file


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().splitlines()

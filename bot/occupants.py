"""Who still works inside a folder: by working directory, program and open files, whatever they are called.

A run's own processes are found by what they carry (`bot.liveness`); this is for the others: a shell that somebody left
there, a server that a run started and that got away.
"""

from __future__ import annotations

import os
from pathlib import Path

from bot import liveness, processes
from bot.errors import Unavailable
from bot.processes import Process


def occupants(folder: Path, since: float) -> list[Process]:
    """The processes that work inside `folder`; never this one, nor those that it was called by.

    Raises `Unavailable` where that can't be told: /proc can't be read, or a process of this user that began after
    `since` (seconds since 1970, when the folder was made) lets nobody look at it. Those of other users don't matter:
    the home is closed to them.
    """
    inside = os.path.realpath(folder)  # as the kernel names it
    everyone = processes.everyone()
    if os.getpid() not in everyone:
        raise Unavailable(f"Who works in {folder} can't be told: /proc does not even show this process.")
    spared = processes.above(os.getpid(), everyone)
    others = [process for pid, process in everyone.items() if pid not in spared and not process.zombie]
    found = []
    for process in others:
        places = _places(process)
        if places is None and _might_be_inside(process, since):
            raise Unavailable(f"Process {process.pid} can't be looked at, so who works in {folder} can't be told.")
        if any(place == inside or place.startswith(f"{inside}/") for place in places or ()):
            found.append(process)
    return found


def clear(folder: Path, since: float, *, bound: float = liveness.BOUND) -> None:
    """Ends whoever works inside `folder` (SIGTERM, 5 s, SIGKILL), and looks again. Raises `Unavailable`, naming who
    is left, where somebody outlives that: nothing may be removed then."""
    if not folder.is_dir():
        return
    left = liveness.end_all(lambda: occupants(folder, since), bound=bound)
    if left:
        names = ", ".join(f"{process.pid} ({_name(process)})" for process in left)
        raise Unavailable(f"{folder} is still used, by {names}: it is kept, and so is its slot.")


def _places(process: Process) -> list[str] | None:
    """Where the process is and what it has open; nothing of one that has ended, None where that can't be looked at."""
    proc = f"/proc/{process.pid}"
    try:
        found = [_target(f"{proc}/{name}") for name in ("cwd", "root", "exe")]
        found += [_target(f"{proc}/fd/{name}") for name in os.listdir(f"{proc}/fd")]  # noqa: PTH208  # names are enough
    except PermissionError:
        return None
    except OSError:  # it has ended meanwhile
        return []
    return found


def _target(link: str) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115  # not a path: it may name a pipe, or what was deleted
    except FileNotFoundError:  # closed meanwhile; a kernel's thread has none at all
        return ""


def _might_be_inside(process: Process, since: float) -> bool:
    """Whether it is this user's, and younger than the folder."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(errors="replace")
    except OSError:
        return False
    uid = next((line.split()[1] for line in status.splitlines() if line.startswith("Uid:")), "")
    return uid == str(os.getuid()) and processes.started_at(process) >= since - 1


def _name(process: Process) -> str:
    try:
        return Path(f"/proc/{process.pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "ended"

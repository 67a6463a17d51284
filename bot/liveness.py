"""Whether a run is alive, what is left of it, and its end: told by the kernel, since a file can only say what was.

A run is alive while its supervisor holds `alive.lock`. Where the lock is free and the status still says `running`, the
supervisor was killed or the host went away: then what is left is looked for, and only when nothing is, the run is lost.
"""

from __future__ import annotations

import errno
import math
import os
import select
import signal
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bot import processes
from bot.endings import BY_SIGNAL, KILL_GRACE
from bot.errors import UserError
from bot.living import living, remains
from bot.processes import Process
from bot.rundir import Broken, RunDir, is_locked, read_json, take_lock, time_text, write_json
from bot.statefiles import is_there
from bot.status import OVER, status_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from bot.status import Status

ASKED_TO_END = ("created", "blocked", "lost")
"""States without a process in which a run can still be cancelled: it may never have begun, or be resumed."""

LOST = "ended without reporting (killed, or the host went away)"

SHUT_DOWN = "ended with its host, which was shut down or restarted"

NEVER_BEGAN = "was never started (whoever handed it off was killed before)"

BEGINS_WITHIN = 10.0
"""Seconds from a run's directory to its lock, which is then held until the run has ended. It takes milliseconds, and
who is slower finds the run lost, and does not start it."""

BOUND = 30.0
"""Seconds for the end of a run that was told to end, beyond its graces."""

AGAIN = 1.0
"""Seconds until it is seen to again that a run knows it is to end."""

LONGEST_WAIT = 3600.0
"""Seconds that the kernel is asked to wait in one go: its counter is small."""

PAUSE = 0.02
"""Seconds between two looks at what has no descriptor to wait for: a start that is under way."""


def reading(path: Path) -> Status:
    """What is so now. A run that is found to have gone without a word is written down as `lost`, or as `cancelled`.

    A status that can't be read says `running`: broken means taken, until somebody cancels the run. Without a status it
    is `created`, unless something of it is alive.
    """
    run = RunDir(path)
    status = status_of(run)
    if not status:
        return _reading_without_status(run, status)
    if status["state"] in ASKED_TO_END and is_there(run.cancel):
        return _write_off(run)
    if status["state"] == "created" and _never_began(run):
        return _write_off(run)
    if _went_down_with_its_host(run, status):
        return _write_off(run)
    if status["state"] != "running" or _is_supervised(run, status):
        return status
    status = status_of(run) or status  # its last word came before the lock was free
    if status["state"] != "running":
        return status
    if living(path):
        return {**status, "supervisor": "gone"}
    return _write_off(run)


def _never_began(run: RunDir) -> bool:
    """Whether its directory was made some time ago and nobody is about to start it."""
    try:
        age = abs(time.time() - os.lstat(run.status).st_mtime)  # the clock may have been set back
    except OSError:
        return False
    return age > BEGINS_WITHIN and not is_locked(run.alive_lock) and not remains(run.path)


def _went_down_with_its_host(run: RunDir, status: Status) -> bool:
    """Whether a run of the server, of which something is to come yet, was ended by nothing but a signal before a
    restart of its host: so a host ends all there is, and nobody has decided that the run is not wanted any more."""
    if (status["state"], status.get("cancelled_by")) != ("cancelled", BY_SIGNAL) or is_there(run.cancel):
        return False
    is_open = is_there(run.path / "intent.json") and not is_there(run.path / "ended.json")
    return is_open and status.get("boot_id") != processes.boot_id()


def _reading_without_status(run: RunDir, status: Status | None) -> Status:
    if is_there(run.cancel) and not is_locked(run.alive_lock) and not remains(run.path):
        return _write_off(run)
    if isinstance(status, Broken):
        return {"run_id": run.run_id, "state": "running", "supervisor": "unknown", "error": status.why}
    if is_locked(run.alive_lock) or remains(run.path):
        return {"run_id": run.run_id, "state": "running", "supervisor": "unknown", "error": f"{run.status} is missing"}
    return {"run_id": run.run_id, "state": "created"}


def _is_supervised(run: RunDir, status: Status) -> bool:
    """Whether the lock is held, and not for a moment by another reader, who is about to write the run off.

    A run may have taken the lock's file away; its supervisor is known by its command line, then.
    """
    supervisor = processes.look(status.get("supervisor_pid") or 0)
    if supervisor is None or supervisor.zombie or supervisor.started != status.get("supervisor_started"):
        return False
    return is_locked(run.alive_lock) or processes.supervises(supervisor.pid)


def _write_off(run: RunDir) -> Status:
    """Records a run that has gone; under its lock, so that no supervisor writes at the same time."""
    try:
        lock = take_lock(run.alive_lock)
    except OSError:  # what is so can be said where it can't be written
        return _gone(run)
    if lock is None:
        return status_of(run) or {"run_id": run.run_id, "state": "running"}  # started again meanwhile
    try:
        status = _gone(run)
        if status != read_json(run.status):
            write_json(run.status, status)
    except OSError:
        pass
    finally:
        os.close(lock)
    return status


def _gone(run: RunDir) -> Status:
    """The status of a run of which nothing is alive: cancelled where that was asked for, lost where it was running."""
    status = status_of(run) or {"run_id": run.run_id, "state": "running"}
    asked = read_json(run.cancel)
    now = {"supervisor": "gone", "finished": time_text(), "updated": time_text()}
    if asked is not None and status["state"] in ("running", *ASKED_TO_END):
        by, reason = asked.get("by"), asked.get("reason") or "cancelled"
        return {**status, **now, "state": "cancelled", "stop_reason": reason, "cancelled_by": by}
    if status["state"] in ("created", "running"):
        why = LOST if status["state"] == "running" else NEVER_BEGAN
        return {**status, **now, "state": "lost", "error": why}
    if _went_down_with_its_host(run, status):
        return {**status, "state": "lost", "stop_reason": None, "error": SHUT_DOWN, "updated": time_text()}
    return status


def is_interrupted(status: Mapping[str, object]) -> bool:
    """Whether the run was lost with its host's restart: nobody ended it, and it can be resumed where it was."""
    return status.get("state") == "lost" and status.get("boot_id") != processes.boot_id()


def is_over(status: Status) -> bool:
    return status.get("state") in OVER


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def request_cancel(path: Path, by: str, *, reason: str = "cancelled") -> bool:
    """Asks for the run's end: written to `cancel.json` first, then told to the supervisor. False: there is none.

    On a full disk it is told only, and the run then does not know who asked. Raises OSError where nobody can be told.
    """
    run = RunDir(path)
    try:
        if not is_there(run.cancel):
            write_json(run.cancel, {"by": by, "reason": reason, "at": time_text()})
    except OSError:
        if _terminate_supervisor(path):
            return True
        raise
    return _poke(run.control) or _terminate_supervisor(path)


def ask_to_stop(path: Path, by: str, *, at: datetime, until: datetime) -> None:
    """Asks the run to stop after its turn: written to `stop.json`, for the command too, then told to the supervisor,
    which ends it once it begins another round, or at `until`. Repeated it changes nothing. Raises OSError."""
    run = RunDir(path)
    asked = {"by": by, "at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "until": math.ceil(until.timestamp())}
    if read_json(run.stop) != asked:
        write_json(run.stop, asked)
        _poke(run.control)


def cancel_asked(path: Path) -> str | None:
    """Who asked for the run's end; None where nobody did."""
    asked = read_json(RunDir(path).cancel)
    return None if asked is None else str(asked.get("by") or "somebody")


def say_something_happened(path: Path) -> None:
    """Makes the supervisor look at its files now, rather than within a second."""
    _poke(RunDir(path).control)


def _poke(control: Path) -> bool:
    """Writes to the supervisor's FIFO, where there is one and somebody reads it."""
    try:
        pipe = os.open(control, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
            return False
        os.write(pipe, b"look\n")
    except OSError as problem:
        return problem.errno == errno.EAGAIN  # full of such words: it will look
    finally:
        os.close(pipe)
    return True


def _terminate_supervisor(path: Path) -> bool:
    handle = pidfd_of_supervisor(path)
    if handle is None:
        return False
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def pidfd_of_supervisor(path: Path) -> int | None:
    """A descriptor that is readable once the run's supervisor has ended, for the caller to close; None: it is gone."""
    run = RunDir(path)
    status = status_of(run) or {}
    pid = status.get("supervisor_pid")
    if pid is None or status.get("boot_id") != processes.boot_id():
        return None
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None
    if not _is_supervised(run, status):  # asked after it was opened: this is the same process then
        os.close(handle)
        return None
    return handle


def has_supervisor(path: Path) -> bool:
    """Whether anybody supervises the run, whatever its directory says: a run can write a status, and take a lock's file
    away."""
    if is_locked(RunDir(path).alive_lock):
        return True
    folder = os.fsencode(RunDir(path))
    return any(processes.supervises(pid) and processes.argv_of(pid)[4] == folder for pid in processes.everyone())


def settled(path: Path, seconds: float) -> Status:
    """Waits for the run's end, that long at most, and for its lock to be free then; the last reading, over or not.

    Of a run whose directory was removed no end will be read: it is not waited for once nothing of it is alive.
    """
    until = time.monotonic() + seconds
    while True:
        status = reading(path)
        left = until - time.monotonic()
        handle = pidfd_of_supervisor(path) if left > 0 else None
        if handle is not None:
            _wait([handle], left)
        elif is_over(status) or left <= 0 or is_forgotten(path, status):
            return status
        elif status.get("supervisor") == "gone":
            _wait(_open(living(path)), left)
        else:
            time.sleep(min(PAUSE, left))


def is_forgotten(path: Path, status: Status) -> bool:
    """Whether nothing of the run is alive, and its directory is gone, so that nothing will be read of it."""
    return status["state"] == "created" and not is_there(path)


def end(path: Path, *, by: str = "the server") -> Status:
    """Ends all that is alive of the run (SIGTERM, 5 s, SIGKILL); returns when nothing is, with the reading then.

    Raises `UserError` where something outlives that: it names the run, the wait and the last reading.
    """
    if _is_held(path):
        _end_supervised(path, by)
    return end_what_is_left(path)


def end_what_is_left(path: Path) -> Status:
    """As `end`, for a run whose supervisor is known to be gone: nobody is asked, and so nothing is cancelled.

    A lock that is held then is no supervisor's: somebody reads the run, and writes down what came of it.
    """
    if left := end_all(lambda: remains(path)):
        raise UserError(_outlived(path, KILL_GRACE + BOUND, reading(path), left))
    return reading(path)


def end_all(look: Callable[[], list[Process]], *, bound: float = BOUND) -> list[Process]:
    """Ends all that `look` finds, again and again: SIGTERM, 5 s, SIGKILL. What there is `bound` seconds after that;
    nothing, as a rule."""
    until = time.monotonic() + KILL_GRACE + bound
    _signal(look(), signal.SIGTERM, signal.SIGCONT)
    kill_at = time.monotonic() + KILL_GRACE
    while left := look():
        now = time.monotonic()
        if now >= until:
            return left
        if now >= kill_at:
            _signal(left, signal.SIGKILL)
            kill_at = now + 0.2
        _wait(_open(left), kill_at - now)
    return []


def _is_held(path: Path) -> bool:
    """Whether it has a supervisor, or is just getting one."""
    run = RunDir(path)
    return is_locked(run.alive_lock) or _is_supervised(run, status_of(run) or {})


def _end_supervised(path: Path, by: str) -> None:
    """Has the supervisor end its run; one that hangs is killed, and its run is ended without it."""
    run = RunDir(path)
    request_cancel(path, by)
    until = time.monotonic() + float((read_json(run.spec) or {}).get("kill_grace", KILL_GRACE)) + BOUND
    while _is_held(path):
        if not is_there(run.cancel):  # a start took it for that of an earlier round
            with suppress(OSError):
                request_cancel(path, by)
        left = until - time.monotonic()
        handle = pidfd_of_supervisor(path)
        if handle is None:
            if left <= 0:
                return
            time.sleep(PAUSE)  # it is starting, and has not said who it is
        elif left > 0:
            _wait([handle], min(left, AGAIN))
        else:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            _wait([handle], BOUND)


def _signal(found: list[Process], *numbers: int) -> None:
    for process in found:
        for number in numbers:
            processes.send(process, number)


def _open(found: list[Process]) -> list[int]:
    handles = []
    for process in found:
        try:
            handles.append(os.pidfd_open(process.pid))
        except OSError:
            continue
    return handles


def _wait(handles: list[int], seconds: float) -> None:
    """Waits until one of them has ended, and closes them all."""
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    try:
        if handles:
            poll.poll(max(0.0, min(seconds, LONGEST_WAIT)) * 1000)
    finally:
        for handle in handles:
            os.close(handle)


def _outlived(path: Path, seconds: float, status: Status, left: list[Process]) -> str:
    pids = ", ".join(str(process.pid) for process in left)
    return (
        f"Run {RunDir(path).run_id} was told to end and has not within {seconds:g} s: it was last seen "
        f"{status.get('state')}, with {pids} alive. `ps -fp {pids.replace(' ', '')}` shows what they wait for."
    )

"""Shows a run in a detached tmux session. The run does not live in it: what ends a terminal ends no run.

The session's pane follows `worker.log` until the run's lock is free. So the log is the same under every driver, nothing
has to be copied, and a tmux server that is killed takes only a window along. It is the user's own server, where people
look for sessions (`tmux ls`); a private one would keep nothing safer.
"""

from __future__ import annotations

import os
import select
import signal
import sys

from bot.rundir import RunDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DEADLINE = 2.0
"""Seconds for one call of tmux, which takes some 10 ms. A server that hangs costs a start so much, and its window."""

NAMES = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMUX_TMPDIR", "USER", "XDG_RUNTIME_DIR")
"""What a tmux server that we are the first to need may inherit: it passes it on to everybody's windows."""

FOLLOW = 'tail -n +1 -f -- "$1" & flock --shared -- "$2" true; kill "$!"'
"""What the pane runs, with the log and the lock: the kernel wakes it when the lock is free."""


def present() -> bool:
    folders = os.get_exec_path()
    return all(any(os.access(f"{folder}/{tool}", os.X_OK) for folder in folders) for tool in ("tmux", "flock", "tail"))


def version() -> str | None:
    """What it calls itself (`tmux 3.3a`); None where it is not there."""
    import subprocess

    try:
        done = subprocess.run(["tmux", "-V"], capture_output=True, text=True, timeout=DEADLINE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def session_of(run_id: str) -> str:
    return f"lm-{run_id}"


_LOGS = "import sys; from bot.cli import main; sys.exit(main())"


def window(run: RunDir, lock: int) -> str | None:  # noqa: ARG001  # held, or the window would close at once
    """Opens the session; its name, or None where tmux will not have it: a run is not kept from starting by that."""
    if not present():
        return None
    name = session_of(run.run_id)
    run.worker_log.touch(mode=0o600)
    follow = ("sh", "-c", FOLLOW, "sh", str(run.worker_log), str(run.alive_lock))
    opened = _open(name, follow)
    if opened is False:  # the window of an earlier round may be about to close
        opened = tmux("kill-session", "-t", f"={name}") and _open(name, follow)
    return name if opened else None


def opened_for(run: RunDir) -> str | None:
    """The session of a server's run, which has none before somebody wants to look: it shows what `leadsman logs -f`
    does, without secrets. None where tmux will not have it."""
    name = session_of(run.run_id)
    logs = (sys.executable, "-I", "-c", _LOGS, "logs", "-f", run.run_id, "--store", str(run.path.parent))
    return name if present() and (alive(name) or _open(name, logs)) else None


def _open(name: str, follow: Sequence[str]) -> bool | None:
    """None where nothing was heard of tmux: it is not asked again."""
    # Where the user's settings end detached sessions, or keep windows whose program has ended, ours are exempt.
    keep = (";", "set-option", "-t", f"={name}:", "destroy-unattached", "off")
    close = (";", "set-option", "-w", "-t", f"={name}:", "remain-on-exit", "off")
    return _called("new-session", "-d", "-s", name, "-c", "/", "--", *follow, *keep, *close)


def alive(name: str) -> bool:
    return tmux("has-session", "-t", f"={name}")


def show(name: str) -> int:
    """Shows the session in this terminal until it is left; tmux's exit code."""
    import subprocess

    target = f"={name}"
    look = ["tmux", "has-session", "-t", target]
    if "TMUX" in os.environ and subprocess.call(look, stderr=subprocess.DEVNULL) == 0:
        return subprocess.call(["tmux", "switch-client", "-t", target])  # it is no window in a window of its own server
    environment = {key: value for key, value in os.environ.items() if key != "TMUX"}
    return subprocess.call(["tmux", "attach-session", "-t", target], env=environment)


def tmux(*arguments: str) -> bool:
    """Calls tmux; whether it did what was asked."""
    return bool(_called(*arguments))


def _called(*arguments: str) -> bool | None:
    """As `tmux`; None where it did not answer in time. By hand: the import of `subprocess` takes longer than tmux."""
    environment = {name: value for name, value in os.environ.items() if name in NAMES or name.startswith("LC_")}
    nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    # A server that is started now stays: nobody who reads what our caller left open is to wait for it.
    closed = [(os.POSIX_SPAWN_CLOSE, number) for number in _passed_on()]
    try:
        pid = os.posix_spawnp("tmux", ["tmux", *arguments], environment, file_actions=[*nowhere, *closed])
    except OSError:
        return False
    answered = _has_ended(pid, DEADLINE)
    if not answered:
        os.kill(pid, signal.SIGKILL)  # it is our child, and nobody else has waited for it
    _, status = os.waitpid(pid, 0)
    return status == 0 if answered else None


def _passed_on() -> list[int]:
    """The descriptors above 2 that a child gets: none of ours, what our caller passed on to us."""
    found = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  # pathlib is not imported for this
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):  # stdin, stdout, stderr
                found.append(int(name))
        except OSError:
            continue  # the one that listed them
    return found


def _has_ended(pid: int, seconds: float) -> bool:
    handle = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(handle)

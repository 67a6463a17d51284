"""Starts a run's command: held back until its start is recorded, then nothing but what its spec says.

`fork` and `exec` by hand, since one process does nothing else and every millisecond counts; it has one thread.
"""

from __future__ import annotations

import errno
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn


IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
"""What a terminal sends: it is none of a supervisor's business."""

HINTS = {
    errno.EACCES: "`chmod +x` makes a file a program.",
    errno.ENOEXEC: "A script's first line has to name its interpreter: `#!/bin/sh`.",
    errno.E2BIG: "Its arguments and its environment are too long together.",
}


class Command:
    """A child that waits for `run` before it becomes the command; it ends where we end before that."""

    def __init__(self, spec: Mapping[str, Any], log: str) -> None:
        self._spec = spec
        go, self._go = os.pipe2(os.O_CLOEXEC)
        self._trouble, trouble = os.pipe2(os.O_CLOEXEC)
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._go)
            _become(spec, log, go, trouble)
        os.close(go)
        os.close(trouble)

    def drop(self) -> None:
        """Ends the child, which has not become the command."""
        os.close(self._go)
        os.close(self._trouble)
        os.waitpid(self.pid, 0)

    def run(self) -> str | None:
        """Lets it run, and returns once it does; why it does not, where it does not (the child is gone then)."""
        os.write(self._go, b"g")
        os.close(self._go)
        said = os.read(self._trouble, 64)  # closed without a word by the exec
        os.close(self._trouble)
        if not said:
            return None
        os.waitpid(self.pid, 0)
        step, number = said.decode().split()
        return _why(step, int(number), self._spec)


def _become(spec: Mapping[str, Any], log: str, go: int, trouble: int) -> NoReturn:
    step = "log"
    try:
        if os.read(go, 1) != b"g":
            os._exit(0)
        os.setpgid(0, 0)
        # An earlier round may have left a FIFO there, which must not hold us up.
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        step = "cwd"
        os.chdir(spec["cwd"])
        step = "exec"
        _give_back_signals()
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])  # noqa: S606  # a shell is what it must not be
    except OSError as problem:
        os.write(trouble, f"{step} {problem.errno}".encode())
    except (ValueError, TypeError):  # a NUL in an argument or a variable
        os.write(trouble, f"{step} 22".encode())
    finally:
        os._exit(127)


def _give_back_signals() -> None:
    """What we ignore, or Python does, the command would ignore as well: an exec keeps that."""
    for number in (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _why(step: str, number: int, spec: Mapping[str, Any]) -> str:
    """A sentence for the person, from the step that failed and its errno."""
    name = spec["argv"][0] or "''"
    reason = os.strerror(number)
    if step == "cwd":
        return f"The working directory {spec['cwd']} can't be entered: {reason}."
    if step == "log":
        return f"The run's worker.log can't be opened: {reason}."
    if number == errno.EACCES and os.path.isdir(os.path.join(spec["cwd"], name)):
        return f"The command {name} can't be started: it is a folder."
    if number in HINTS:
        return f"The command {name} can't be started: {reason}. {HINTS[number]}"
    if number not in (errno.ENOENT, errno.ENOTDIR):
        return f"The command {name} can't be started: {reason}."
    if "/" not in name:
        return f"The command {name} was not found on PATH ({spec['env'].get('PATH', 'which is not set')})."
    if os.path.exists(os.path.join(spec["cwd"], name)):
        return f"The command {name} can't be started: the interpreter that its first line names does not exist."
    return f"The command {name} does not exist (seen from {spec['cwd']})."

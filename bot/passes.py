"""`leadsman pass run`: holds CPU passes while a command runs, and is otherwise as good as not there.

Like `bot.pool` it is made to start quickly: bare standard library, no subprocess, no argparse, no json.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time

from bot import pool
from bot.cpus import host_size
from bot.pool import HELD, Hold, PoolUnusable, SizesDiffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence
    from typing import Literal, NoReturn
else:
    import _signal as signal  # its numbers and functions, without the enums: making those takes longer than a pass

USAGE, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
"""Exit codes of `run` that are its own, as env(1) and timeout(1) have them."""

ENDERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""What ends a wait, and what the wrapper outlives while the command runs."""

PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)
"""What Python ignores in itself, and no command should inherit as ignored."""


class Misused(Exception):
    """The call's words are off; the command is not started."""


class Ended(BaseException):
    """A signal came while we waited."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Request:
    """What `run` was asked for."""

    __slots__ = ("command", "jobserver", "label", "log", "note", "passes")

    def __init__(self) -> None:
        self.passes = 1
        self.label = ""
        self.log = 2
        self.note = ""
        self.jobserver = False
        self.command: list[str] = []


def wrapped(
    argv: Sequence[str], passes: int | Literal["all"], *, label: str, note: os.PathLike[str]
) -> tuple[tuple[str, ...], dict[str, object]]:
    """What a supervisor starts instead of `argv`, so that it holds passes meanwhile, and what goes into its spec.

    The spec's `command` is the bare argv; `passes_note` is the file `passes.json` in the folder `note`, which appears
    once the passes are held, right before the command starts: `{"passes", "waited", "held_at", "held_monotonic"}`, in
    seconds; `passes` is 0 where the pool was unusable. A time limit starts at `held_monotonic`; while there is no such
    file it has not started. The child needs `bot.pool.pool_environment`, too, where its HOME is another one.
    """
    if passes == 0:
        return tuple(argv), {}
    count = host_size() if passes == "all" else passes
    path = os.path.join(note, "passes.json")
    wrapper = (sys.executable, "-I", "-S", os.path.join(os.path.dirname(__file__), "cli", "pass_.py"), "run")
    options = (f"--passes={count}", f"--label={label}", f"--note={path}")
    return (*wrapper, *options, "--", *argv), {"command": list(argv), "passes_note": path}


def run(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """`run [--passes K] [--label TEXT] [--log-fd N] [--jobserver] [--note F] -- CMD...`: answers the exit code."""
    for number in ENDERS:
        # nohup's SIGHUP stays ignored, for the command as well; the others end the wait whatever was set before.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    try:
        request = read(argv)
        return _run(request, _as_given(environ))
    except Misused as problem:
        _say(2, f"{problem}. The command was not started")
        return USAGE
    except SizesDiffer as problem:
        _say(request.log, f"{problem}. The command was not started")
        return USAGE
    except Ended as signalled:
        return 128 + signalled.number


def read(argv: Sequence[str]) -> Request:
    """The words of `run`, checked as far as they can be checked without the pool. Raises Misused."""
    request = Request()
    words = list(argv)
    while words and words[0] != "--":
        name, has_value, value = words.pop(0).partition("=")
        if name == "--jobserver" and not has_value:
            request.jobserver = True
            continue
        if name not in ("--passes", "--label", "--log-fd", "--note"):
            raise Misused(f"{name!r} is no option of `run`; the command stands behind `--`")
        if not has_value:
            if not words:
                raise Misused(f"{name} needs a value")
            value = words.pop(0)
        if name == "--passes":
            request.passes = _count(value, "--passes")
        elif name == "--log-fd":
            request.log = _log(value)
        elif name == "--label":
            request.label = value
        else:
            request.note = value
    request.command = words[1:]
    if not request.command:
        raise Misused("there is no command: `leadsman pass run [--passes K] -- CMD ARGS...`")
    request.label = request.label or os.path.basename(request.command[0])
    return request


def _count(text: str, where: str) -> int:
    if not pool.digits(text):
        raise Misused(f"{where} must be a whole number in digits, nine at most, not {text[:40]!r}")
    return int(text)


def _log(text: str) -> int:
    descriptor = _count(text, "--log-fd")
    try:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise Misused(f"--log-fd {descriptor} can't be written to")
    except (OSError, OverflowError) as problem:
        raise Misused(f"--log-fd {descriptor} is not open") from problem
    if descriptor > 2:
        os.set_inheritable(descriptor, False)
    return descriptor


def _run(request: Request, environ: dict[str, str]) -> int:
    size = host_size()
    if not 1 <= request.passes <= size:
        raise Misused(f"--passes must be between 1 and the pool's size, {size}, not {request.passes}")
    if HELD in environ:
        held = _count(environ[HELD], HELD)
        if 0 < held < request.passes:
            raise Misused(f"--passes {request.passes} is more than the {held} that the work around it holds")
        if "--jobserver-" in environ.get("MAKEFLAGS", ""):
            request.jobserver = False  # the work around it has one, which hands out the same passes
        return _start(request, Hold([], 0.0), held and request.passes, environ)
    try:
        hold = pool.open_pool(environ, size).take(
            request.passes, request.label, tell=lambda text: _say(request.log, text, patient=False)
        )
        held = request.passes
    except PoolUnusable as problem:
        _say(request.log, f"no pass can be had, the command runs without: {problem}")
        hold, held = Hold([], 0.0), 0
    return _start(request, hold, held, {**environ, HELD: str(held)})


def _start(request: Request, hold: Hold, held: int, environ: dict[str, str]) -> int:
    """Runs the command with what is held, and answers its exit code."""
    if request.jobserver:
        environ = {**environ, "MAKEFLAGS": _jobserver(request.passes, environ)}
    if request.note:
        _write_note(request.note, held, hold.waited)
        environ = _later(environ, hold.waited)
    hold.inherit()
    defaults = [number for number in ENDERS if signal.getsignal(number) != signal.SIG_IGN]
    for number in ENDERS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored by our caller, it would swallow the exit code
    command = request.command
    try:
        child = os.posix_spawnp(command[0], command, environ, setsigdef=[*defaults, *PYTHON_IGNORES])
    except OSError as problem:
        _say(request.log, f"{command[0]}: {problem.strerror}")
        return NOT_FOUND if problem.errno == errno.ENOENT else NOT_EXECUTABLE
    except ValueError:  # Python's word for a name that is empty
        _say(request.log, f"{command[0]!r} names no command")
        return NOT_FOUND
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    hold.release()
    return 128 - code if code < 0 else code


def _jobserver(tokens: int, environ: Mapping[str, str]) -> str:
    """MAKEFLAGS with a GNU make job server of so many jobs: a pipe with a byte for each but the first.

    https://www.gnu.org/software/make/manual/html_node/POSIX-Jobserver.html
    """
    reading, writing = map(pool.raised, os.pipe())
    os.write(writing, b"+" * (tokens - 1))
    if _make_knows_named_pipes(environ):
        # Our own pipe by its name in /proc: no file is left behind, however we end.
        place = f"fifo:/proc/{os.getpid()}/fd/{reading}"
    else:
        os.set_inheritable(reading, True)
        os.set_inheritable(writing, True)
        place = f"{reading},{writing}"
    words, dashes, variables = environ.get("MAKEFLAGS", "").partition("-- ")
    kept = [word for word in words.split() if not word.startswith(("-j", "--jobserver-"))]
    return " ".join([*kept, f"-j{tokens}", f"--jobserver-auth={place}", dashes + variables]).rstrip()


def _make_knows_named_pipes(environ: Mapping[str, str]) -> bool:
    """Whether a job server may be named by a path: for ninja (1.13) it must, GNU make takes it from 4.4 on.

    Yes, where there is no make to be hurt by it.
    """
    reading, writing = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, writing, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        child = os.posix_spawnp("make", ["make", "--version"], environ, file_actions=actions)
    except OSError:
        return True
    finally:
        os.close(writing)
    with open(reading, "rb") as output:
        name, _, version = output.readline().decode("ascii", "replace").rpartition(" ")
    os.waitpid(child, 0)
    numbers = [int(part) for part in version.strip().split(".") if pool.digits(part)]
    return name != "GNU Make" or numbers >= [4, 4]


def _write_note(path: str, held: int, waited: float) -> None:
    """Tells the supervisor that the passes are held. Raises Misused: without it no time limit would ever start."""
    draft = f"{path}.{os.getpid()}"
    moments = f'"held_at": {time.time():.3f}, "held_monotonic": {time.monotonic():.3f}'
    try:
        with open(draft, "w", encoding="ascii") as file:
            file.write(f'{{"passes": {held}, "waited": {waited:.3f}, {moments}}}\n')
        os.rename(draft, path)
    except OSError as problem:
        raise Misused(f"{path} can't be written: {problem.strerror}") from problem


def _later(environ: dict[str, str], waited: float) -> dict[str, str]:
    """The deadline that a supervisor told the command (seconds since 1970), moved by the wait, as the time limit is."""
    deadline = environ.get("LEADSMAN_DEADLINE", "")
    if not (deadline.isascii() and deadline.isdigit() and len(deadline) < 16):
        return environ
    return {**environ, "LEADSMAN_DEADLINE": str(int(deadline) + round(waited))}


def _as_given(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment as our caller gave it: in the C locale Python adds LC_CTYPE to its own (PEP 538)."""
    given = {name: value for name, value in environ.items() if name}  # posix_spawn() takes none without a name
    if given.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8"):
        try:
            with open("/proc/self/environ", "rb") as file:
                if b"\0LC_CTYPE=" not in b"\0" + file.read():
                    del given["LC_CTYPE"]
        except OSError:
            pass  # a bare chroot: one variable too many stops no work
    return given


def _say(descriptor: int, text: str, *, patient: bool = True) -> None:
    """One line on the log. Impatient: not where that would block, for others wait behind us."""
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    try:
        if patient or poll.poll(0):
            os.write(descriptor, f"leadsman pass: {pool.printable(text)}\n".encode())
    except OSError:
        pass  # nobody reads it: no reason to stop the work


def _end(number: int, _frame: object) -> NoReturn:
    raise Ended(number)

"""The host's pool of CPU passes: kernel locks in one folder, taken in turn. The protocol: .github/CPU-PASSES.md.

The wrapper process (`bot.passes`) is to cost milliseconds, so this module imports the standard library only, and of
that only what starts quickly; what a wait needs is imported by the wait.
"""

from __future__ import annotations

import _thread  # importing threading would take longer than most waits, and nothing of it is needed
import errno
import fcntl
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing these takes as long as all the rest
    from collections.abc import Callable, Mapping
    from typing import Self

HELD = "LEADSMAN_PASSES_HELD"
"""The environment variable that tells nested work how many passes stand behind it; "0" = none could be had."""

FOLDER = "LEADSMAN_POOL_DIR"
"""The environment variable that moves the pool's folder from ~/.cache/leadsman/cpu-pool."""

HIGH = 100
"""Lowest descriptor that a pass is put on: programs like to use fixed small numbers for their own."""

FIRST_NOTICE, NEXT_NOTICE = 2.0, 60.0
"""Seconds of waiting before the first notice, and between the later ones."""


class PoolUnusable(Exception):
    """No pass can be had here, and why. Work goes on without: the pool never stands in the way."""


class SizesDiffer(Exception):
    """This process counts another number of CPUs than the pool was made for: together they would over-book the host."""


def pool_folder(environ: Mapping[str, str]) -> str:
    """The pool's folder, absolute. Raises PoolUnusable without one."""
    named = environ.get(FOLDER, "")
    if named.strip():
        try:
            return os.path.abspath(named)
        except OSError as problem:
            raise PoolUnusable(f"{named} is below a folder that is gone; set {FOLDER} to a whole path") from problem
    home = environ.get("HOME", "")
    if not os.path.isabs(home) or not os.path.isdir(home):
        raise PoolUnusable(f"there is no home folder (HOME={home!r}); set {FOLDER} to a folder of yours")
    return os.path.abspath(os.path.join(home, ".cache", "leadsman", "cpu-pool"))


def pool_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a child whose HOME is another one must be given, so that it meets the same pool."""
    try:
        return {FOLDER: pool_folder(environ)}
    except PoolUnusable:
        return {}


def open_pool(environ: Mapping[str, str], size: int) -> Pool:
    """The pool of this host, its folder made where it is missing. Raises PoolUnusable."""
    path = pool_folder(environ)
    try:
        if not os.path.lexists(path):
            os.makedirs(path, 0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as problem:
        raise PoolUnusable(f"{path} can't be made: {problem.strerror}") from problem
    if stat.S_ISLNK(found.st_mode):
        raise PoolUnusable(f"{path} is a symbolic link, not a folder")
    if not stat.S_ISDIR(found.st_mode):
        raise PoolUnusable(f"{path} is not a folder")
    if found.st_uid != os.geteuid():
        raise PoolUnusable(f"{path} belongs to user {found.st_uid}, not to us ({os.geteuid()})")
    if not os.access(path, os.W_OK | os.X_OK):
        raise PoolUnusable(f"{path} can't be written")
    return Pool(path, size)


class Hold:
    """Passes that are held, until `release` or until the last process that inherited `descriptors` has ended."""

    __slots__ = ("descriptors", "waited")

    def __init__(self, descriptors: list[int], waited: float) -> None:
        self.descriptors = descriptors
        self.waited = waited
        """Seconds from asking to holding."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def inherit(self) -> None:
        """From here on every child that is started inherits the passes."""
        for descriptor in self.descriptors:
            os.set_inheritable(descriptor, True)

    def release(self) -> None:
        """Gives up this process's share of the passes. Closing, not unlocking: that is what rings the bell."""
        while self.descriptors:
            os.close(self.descriptors.pop())


class Pool:
    """`size` passes in the folder `path`. All that it does is safe against any number of other participants."""

    __slots__ = ("path", "size")

    def __init__(self, path: str, size: int) -> None:
        self.path = path
        self.size = size

    def recorded_size(self) -> int | None:
        """The size that the pool was made for; None before anyone took a pass. Raises PoolUnusable when unreadable."""
        name = f"{self.path}/size"
        try:
            with open(name, "rb") as file:  # no codec has to be imported for it
                text = file.read(32).decode("utf-8", "replace").removesuffix("\n")
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise PoolUnusable(f"{name} can't be read: {problem.strerror}") from problem
        if not digits(text) or int(text) < 1:
            raise PoolUnusable(f"{name} does not hold the pool's size; remove it while no pass is held")
        return int(text)

    def compare_size(self) -> bool:
        """Whether a size is recorded. Raises SizesDiffer when it is not ours; PoolUnusable."""
        recorded = self.recorded_size()
        if recorded not in (None, self.size):
            raise SizesDiffer(
                f"the pool in {self.path} has {recorded} passes, but this process may use {self.size} CPUs: two sizes "
                "would over-book the host. Start it without the CPU limit, or give both sides one limit and "
                f"remove {self.path}/size while no pass is held"
            )
        return recorded is not None

    def agree_on_size(self) -> None:
        """Records our size where none is. Raises SizesDiffer, PoolUnusable, OSError."""
        if self.compare_size():
            return
        draft = f"{self.path}/size.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            with open(draft, "wb") as file:
                file.write(b"%d\n" % self.size)
            os.link(draft, f"{self.path}/size")  # whole or not at all, and never over somebody else's
        except FileExistsError:
            self.compare_size()
        finally:
            if os.path.exists(draft):
                os.unlink(draft)

    def holders(self) -> list[tuple[int, str]]:
        """The held slots, in order, and what their holders wrote. Disturbs nobody for longer than a look."""
        looks = ((slot, self._look(self._lock(slot))) for slot in range(self.recorded_size() or self.size))
        return [(slot, line) for slot, line in looks if line is not None]

    def _look(self, path: str) -> str | None:
        """The line of a slot that is held; None for a free one. Raises PoolUnusable."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise PoolUnusable(f"{path} can't be read: {problem.strerror}") from problem
        try:
            if _locked(descriptor, fcntl.LOCK_SH):
                return None
            line, _, _ = os.pread(descriptor, 512, 0).partition(b"\n")
            return printable(line.decode("utf-8", "replace"))
        except OSError as problem:
            raise PoolUnusable(f"{path} can't be read: {problem.strerror}") from problem
        finally:
            os.close(descriptor)

    def take(self, count: int, label: str, *, tell: Callable[[str], None]) -> Hold:
        """Waits in line until `count` passes are held; `tell` gets a notice after 2 s, then every 60 s.

        Raises SizesDiffer; PoolUnusable when the folder lets us down. An exception that a signal's handler throws into
        the wait leaves our place in line taken until this process ends.
        """
        wait = _Wait(self, count, printable(label)[:100], tell)
        try:
            self.agree_on_size()
            turnstile = self._pass_turnstile(wait)
            try:
                return Hold(self._collect(count, wait), time.monotonic() - wait.since)
            finally:
                os.close(turnstile)
        except OSError as problem:
            raise PoolUnusable(f"{problem.filename or self.path}: {problem.strerror}") from problem

    def _lock(self, slot: int) -> str:
        return f"{self.path}/slot-{slot}.lock"

    def _pass_turnstile(self, wait: _Wait) -> int:
        """Its descriptor, once it is ours. The kernel keeps the line, nearly as they come, and forgets the dead."""
        descriptor = _open(f"{self.path}/turnstile.lock")
        if _locked(descriptor, fcntl.LOCK_EX):
            return descriptor
        # The lock is awaited by a thread: interrupting it for a notice would send us to the end of the line.
        trouble: list[OSError] = []
        through = _thread.allocate_lock()
        through.acquire()

        def stand_in_line() -> None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except OSError as problem:
                trouble.append(problem)
            through.release()

        try:
            _thread.start_new_thread(stand_in_line, ())
        except RuntimeError as problem:
            raise PoolUnusable(f"no thread could be started to wait with: {problem}") from problem
        from bot import bell  # noqa: F401  # better imported now than while others wait for us

        while not through.acquire(timeout=wait.until_notice()):
            wait.notice("another request is first in line")
        if trouble:
            raise trouble[0]
        return descriptor

    def _collect(self, count: int, wait: _Wait) -> list[int]:
        """The descriptors of `count` slots. We are first in line: the turnstile is ours."""
        free: dict[int, int] = {}
        held: list[int] = []

        def sweep() -> None:
            for slot in list(free):
                if len(held) < count and _locked(free[slot], fcntl.LOCK_EX):
                    held.append(free.pop(slot))
                    _sign(held[-1], wait.line())

        try:
            for slot in sorted(range(self.size), key=lambda _: os.urandom(4)):
                free[slot] = _open(self._lock(slot))
            sweep()
            if len(held) < count:
                from bot.bell import Bell

                with Bell(self.path) as bell:
                    sweep()  # what became free before the bell was hung
                    while len(held) < count:
                        bell.wait(wait.until_notice())
                        wait.notice(f"it holds {len(held)} and no other is free")
                        sweep()
        except BaseException:
            Hold(held, 0.0).release()
            raise
        finally:
            for descriptor in free.values():
                os.close(descriptor)
        return held


class _Wait:
    """One request's wait: who waits, for what, since when, and when its next notice is due."""

    __slots__ = ("_due", "_pool", "_tell", "count", "label", "since")

    def __init__(self, pool: Pool, count: int, label: str, tell: Callable[[str], None]) -> None:
        self._pool = pool
        self._tell = tell
        self.count = count
        self.label = label
        self.since = time.monotonic()
        self._due = self.since + FIRST_NOTICE

    def line(self) -> str:
        """What its slots hold: since when each is held, not since when it was waited for."""
        return f"pid={os.getpid()} passes={self.count} since={int(time.time())} label={self.label}\n"

    def until_notice(self) -> float:
        return max(0.0, self._due - time.monotonic())

    def notice(self, why: str) -> None:
        """Tells about the wait, if that is due."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due += NEXT_NOTICE
        holders = [f"slot {slot}: {line}" for slot, line in self._pool.holders()]
        more = [f"and {len(holders) - 5} more"] if len(holders) > 5 else []
        self._tell(
            f"{self.label} has waited {now - self.since:.0f} s for {self.count} of {self._pool.size} passes: {why} "
            f"(pool of {self._pool.size} in {self._pool.path}; held by {'; '.join(holders[:5] + more) or 'nobody'})"
        )


def _open(path: str) -> int:
    """A lock's file, opened high up: it must not become a closed standard error either, and be written notices to."""
    descriptor = raised(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file", path)
    return descriptor


def _locked(descriptor: int, how: int) -> bool:
    """Whether the lock could be had at once."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def raised(descriptor: int) -> int:
    """The same open file on a descriptor from 100 up; the given one is closed."""
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH)
    finally:
        os.close(descriptor)


def _sign(descriptor: int, line: str) -> None:
    """Writes who holds the slot, for people: a full disk must not cost the pass.

    Over what is there, and cut off only where that was longer: to truncate a file first takes its block from it and
    gives it another, which under the turnstile costs all who stand in line (a tenth of what they share at 5 ms a hold).
    """
    text = line.encode()
    try:
        os.pwrite(descriptor, text, 0)
        if os.fstat(descriptor).st_size > len(text):
            os.ftruncate(descriptor, len(text))
    except OSError:
        pass


def printable(text: str) -> str:
    """The text with a blank for everything that could break its line or reach into a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def digits(text: str) -> bool:
    """Whether this is a count as the pool takes them: ASCII digits alone, nine at most."""
    return text.isascii() and text.isdigit() and len(text) <= 9

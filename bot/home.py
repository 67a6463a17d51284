"""The home: the one folder where everything that Leadsman keeps on this host is, and the lock of its one server.

Standard library only: commands that must be quick begin here.
"""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from bot import statefiles
from bot.errors import UserError

CLOCK_STEP = 5.0
"""Seconds by which two readings of one process's start may differ: they are counted from the host's clock."""


class HomeHeld(UserError):
    """Another server holds the home: exit code 4, and the text names the holder."""

    def __init__(self, home: Path, holder: Holder | None) -> None:
        super().__init__(
            f"{home} is {described(holder)}; one server a home. Stop that one, or name another --home.", code=4
        )


class Holder(NamedTuple):
    """Who holds the home, in its own words. A note for people: whether the home is held, only the lock says."""

    pid: int
    pid_started: float
    """Seconds since 1970; with the pid, the process for good: pids are used again."""
    session: str
    """New for each server: where it differs from mine I am not the holder, whatever the pid says."""
    host: str
    address: str
    """Where it listens, `http://127.0.0.1:8780`; empty until it does."""
    since: str
    """RFC 3339, UTC."""


class LockState(NamedTuple):
    word: str
    """`held`, `free`, or `stale`: nobody holds it, and a note was left by one who was killed."""
    holder: Holder | None
    """Who wrote the note; None where there is none, or nobody can read it."""

    @property
    def held(self) -> bool:
        return self.word == "held"

    def __str__(self) -> str:
        if self.word == "stale":
            return f"stale (left by {_who(self.holder) if self.holder else 'a server whose note nobody can read'})"
        return described(self.holder) if self.held else self.word


class HomeLock:
    """The home while this process serves it."""

    def __init__(self, home: Path, holder: Holder) -> None:
        self._home = home
        self.holder = holder

    def listens_at(self, address: str) -> None:
        """Tells other commands where the door is."""
        self.holder = self.holder._replace(address=address)
        statefiles.write_json(sidecar(self._home), self.holder._asdict())


def resolve(given: str | None, environ: Mapping[str, str]) -> Path:
    """`given`, else $LEADSMAN_HOME, else ~/.local/state/leadsman; absolute. Makes nothing.

    `~` is $HOME or, where that is empty or unset (a service, a cron job), what the system knows of the user. Raises
    `UserError` (2) where there is none of the three.
    """
    named = given or environ.get("LEADSMAN_HOME", "").strip()
    if named:
        return Path(named).absolute()
    return (Path(environ.get("HOME") or _users_own()) / ".local/state/leadsman").absolute()


def _users_own() -> str:
    """Users without a folder of their own have `/` or nothing there."""
    import pwd

    try:
        folder = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        folder = ""
    if folder.strip("/"):
        return folder
    raise UserError(
        "HOME is not set, and the system knows no folder of this user. Name a home with LEADSMAN_HOME or --home.",
        code=2,
    )


def make(home: Path) -> Path:
    """Makes the home where it is not there yet, for its owner alone (mode 0700), and answers it.

    Raises `UserError` where something else has its place: a file, a symlink, a folder of somebody else.
    """
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            home.mkdir(mode=0o700)
        # Looked at through one descriptor: what is checked is what is changed, whoever swaps names meanwhile.
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as problem:
        raise UserError(
            f"The home {home} can't be used: {problem.strerror}. It must be a folder of its own, not a link or a file."
        ) from problem
    try:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid():
            raise UserError(f"The home {home} belongs to somebody else (uid {found.st_uid}). Name another with --home.")
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.fchmod(folder, 0o700)
    finally:
        os.close(folder)
    return home


class Called(NamedTuple):
    """A home among those that share a store."""

    name: str
    """The host's, as it was at first, or as somebody wrote it there."""
    home: str
    """A random id."""


def called(home: Path) -> Called:
    """What the server of this home is called among the hosts that share a store. It is kept, so that a host that is
    called otherwise after a restart still knows its runs for its own."""
    name, _, known = _kept(home / "host").partition("\n")
    if name and known:
        return Called(name.strip(), known.strip())
    made = Called(name.strip() or os.uname().nodename, os.urandom(8).hex())
    statefiles.write_text(home / "host", f"{made.name}\n{made.home}\n")
    return made


def _kept(path: Path) -> str:
    descriptor = statefiles.open_plain(path)
    if descriptor is not None:
        try:
            return os.read(descriptor, 512).decode("utf-8", "replace").strip()
        finally:
            os.close(descriptor)
    return ""


def own_name(home: Path) -> str:
    return called(home).name


def lock_file(home: Path) -> Path:
    return home / "server.lock"


def sidecar(home: Path) -> Path:
    return home / "server.json"


@contextmanager
def serving(home: Path, address: str = "") -> Iterator[HomeLock]:
    """Holds the home for as long as the block runs, and this process lives. Raises `HomeHeld` where another does."""
    with _locked(home) as mine:
        if not mine:
            raise HomeHeld(home, _read(sidecar(home)))
        try:
            sidecar(home).unlink(missing_ok=True)
            lock = HomeLock(home, _myself())
            lock.listens_at(address)
            yield lock
        finally:
            # The note first: while it is there, the lock is ours, and no later holder's note can be taken away.
            sidecar(home).unlink(missing_ok=True)


@contextmanager
def _locked(home: Path) -> Iterator[bool]:
    """The lock of the file, and with it the folder's own: whoever tidies may take the file away beneath a server, and
    the next one would make another."""
    with ExitStack() as held:
        for take, path in ((statefiles.take_lock, lock_file(home)), (statefiles.take_folder_lock, home)):
            descriptor = take(path)
            if descriptor is None:
                yield False
                return
            held.callback(os.close, descriptor)
        yield True


def lock_state(home: Path) -> LockState:
    """Is the home held, and by whom. Makes nothing, and disturbs no server.

    Raises `UserError` for a home that may not be looked into: it is not free for that.
    """
    try:
        lock_file(home).lstat()
    except PermissionError as problem:
        raise UserError(
            f"The home {home} can't be looked into: {problem.strerror}. Ask as the user whom it belongs to."
        ) from problem
    except OSError:
        pass  # it is not there, or no file: below
    held = statefiles.is_locked(lock_file(home)) or statefiles.folder_is_locked(home)
    holder = _read(sidecar(home))
    if held:
        return LockState("held", holder)
    return LockState("stale" if os.path.lexists(sidecar(home)) else "free", holder)


def held_by(home: Path) -> Holder | None:
    """The server that holds the home now, or None. One that has not said who it is yet is None, too."""
    state = lock_state(home)
    return state.holder if state.held else None


def signal_holder(holder: Holder, number: int) -> bool:
    """Signals the server that wrote the note, and nobody who has its pid now. False: it is gone, or on another host."""
    if holder.host != os.uname().nodename:
        return False
    try:
        handle = os.pidfd_open(holder.pid)
    except OSError:
        return False
    try:
        # Looked at after the descriptor was opened: both are the same process. The clock may have been set meanwhile.
        if abs(_started(holder.pid) - holder.pid_started) > CLOCK_STEP:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def described(holder: Holder | None) -> str:
    return "held by a server that has not said who it is" if holder is None else f"held by {_who(holder)}"


def _who(holder: Holder) -> str:
    at = f", {holder.address}" if holder.address else ""
    return f"pid {holder.pid} on {holder.host} since {holder.since}, session {holder.session}{at}"


def _myself() -> Holder:
    return Holder(
        pid=os.getpid(),
        pid_started=_started(),
        session=os.urandom(8).hex(),
        host=os.uname().nodename,
        address="",
        since=statefiles.time_text(),
    )


def _started(pid: int | str = "self") -> float:
    """When a process started: field 22 of proc(5)'s stat, in ticks since boot, counted behind the name's `)`.

    Raises OSError where there is none.
    """
    ticks = int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[19])
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return round(booted + ticks / os.sysconf("SC_CLK_TCK"), 2)


def _read(path: Path) -> Holder | None:
    """What the note says; None for none, and for one that is broken."""
    raw = statefiles.read_json(path)
    try:
        return None if raw is None else Holder(**{name: kind(raw[name]) for name, kind in _KINDS.items()})
    except (KeyError, TypeError, ValueError):
        return None


_KINDS = {"pid": int, "pid_started": float, "session": str, "host": str, "address": str, "since": str}

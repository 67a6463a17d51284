"""One small process a run: it starts the command, outlives everybody, and ends when nothing of the run is alive.

    python -I -S supervisor.py RUN_DIR [LOCK_FD]

It reads `spec.json`, writes `status.json` and `waiting.json`, and holds `alive.lock` for life. Standard output is a
pipe on which it says `running`, or why the command never will. `cancel.json`, with a word in the FIFO `control` to look
at it now, ends the run; so does SIGTERM; `stop.json` ends it after its turn. It waits on the kernel for everything but
the words in `status.log`, which anybody may append: those it looks for once a second (inotify would take one of the 128
instances a user has).

On a full disk: a command whose start can't be recorded is never started; news of a running one is tried again at the
next turn; its end goes into a reserve made at the start, or is tried for a minute. Then the lock goes, and a reader
finds `lost`: never a run that is said to be alive and is not.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import time

if not __package__:  # started by its path: only the standard library is found yet, and nothing of any worktree ever
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from bot import processes
from bot.command import IGNORED, Command
from bot.endings import BY_SIGNAL, NEXT_ROUND, TURN_OVER, Limits, grace, meaning
from bot.statefiles import LastState, discard, read_json, take_lock, time_text, write_json
from bot.words import Listener, Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TURN = 1.0
"""Seconds between two looks at the words."""

KILL_TURN = 0.05
"""Seconds between the first two rounds of SIGKILL, for what was forked meanwhile; doubled each time."""

LAST_WRITE = 60.0
"""Seconds for which the final status is tried."""

PR_SET_CHILD_SUBREAPER = 36
"""prctl(2): orphans below us become our children, whatever they did to get away."""


class Supervisor:
    """One run. `turn` looks at what is and does what is due, however often it is called."""

    def __init__(self, folder: str, spec: dict[str, Any]) -> None:
        self.folder = folder
        self.spec = spec
        self.words = Words()
        self.listener = Listener(self.path("status.log"))
        self.state_file = LastState(self.path("status.json"))
        self.record_file = LastState(self.path("waiting.json"), 65536)
        self.began = time.monotonic()
        self.limits = Limits(spec, None if spec.get("passes_note") else self.began)
        self.kill_at: float | None = None
        self.kill_pause = KILL_TURN
        self.stop_reason: str | None = None
        self.exit: int | None = None
        self.term_came = False
        self.unsaved = False
        self.wakes = self._hear_signals()
        self.reaped = 0
        self.status = first_status(spec)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _make_control(self) -> int:
        discard(self.path("control"))
        os.mkfifo(self.path("control"), 0o600)
        # Opened for writing as well, it never comes to an end of file.
        return os.open(self.path("control"), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def _hear_signals(self) -> int:
        """A descriptor that is readable when a signal has come."""
        wakes, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_term)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        return wakes

    def _on_term(self, *_: object) -> None:
        self.term_came = True

    # ── the start ────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> str | None:
        """Runs the command, recorded as running before it does; why it does not, where it does not."""
        if self._cancel_asked():
            self.status |= {"state": "cancelled", "stop_reason": self._cancel_reason()}
            return "It was cancelled before it started."
        error = self._run_command()
        if error:
            self.status |= {"state": "failed", "stop_reason": "not_started", "error": error}
            self.status |= {"pid": None, "pid_started": None}
        return error

    def _run_command(self) -> str | None:
        spec = self.spec
        if spec.get("time_limit") is not None:
            deadline = int(time.time() + spec["time_limit"])
            spec = {**spec, "env": {**spec["env"], "LEADSMAN_DEADLINE": str(deadline)}}
        if spec.get("passes_note"):
            discard(spec["passes_note"])  # of an earlier start: that one's time would have run out since
        try:
            self.control = self._make_control()
            os.close(os.open(self.path("status.log"), os.O_RDONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
            self.listener.skip()
            # Made before the command can fill the disk, which it may do at once.
            self.state_file.reserve()
            self.record_file.reserve()
            command = Command(spec, self.path("worker.log"))
        except OSError as problem:
            return f"The command was not started, since the run can't be prepared: {problem}."
        self.status |= {"state": "running", "pid": command.pid, "pid_started": processes.start_of(command.pid)}
        try:
            self.save()
        except OSError as problem:
            command.drop()
            return f"The command was not started, since its start can't be recorded: {problem}."
        return command.run()

    def record(self, error: str | None) -> None:
        """Completes `waiting.json`, so that it names the run even where its caller was killed meanwhile."""
        record: dict[str, Any] = read_json(self.path("waiting.json")) or {}
        names = ("run_id", "task", "state", "round", "driver", "session", "pid", "supervisor_pid")
        record |= {name: self.status[name] for name in names}
        record |= {"run_dir": self.folder, "log": self.path("worker.log"), "command": self.spec["argv"]}
        if error is not None:
            record |= {"found": False, "status": "failed", "error": error}
        elif self.spec.get("adopts"):
            record |= {"found": False, "status": "starting"}  # its caller goes on to look for the run it starts
        else:
            record |= {"found": True, "status": "waiting"}
        try:
            self.record_file.write(record)
        except OSError:
            pass  # it goes on to say `starting`; who called is told how it is, and sees to it
        self.record_file.release()

    # ── while it runs ────────────────────────────────────────────────────────────────────────────────────────────

    def watch(self) -> None:
        """Returns once nothing of the run is alive."""
        poll = select.poll()
        poll.register(self.wakes, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        while not self.turn():
            for descriptor, _ in poll.poll(self._pause() * 1000):
                os.read(descriptor, 4096)  # what it says is no matter: the turn looks at what is

    def turn(self) -> bool:
        """Does what is due now. True: nothing of the run is alive."""
        went_on = self.exit is None
        childless = self._reap()
        if went_on and self.exit is not None and self.term_came and self.stop_reason is None:
            # A host that goes down tells everybody to end: whatever the command made of that, it is not its own end.
            self.stop_reason = self._cancel_reason()
        self._listen()
        if self.limits.began is None:
            self._look_for_passes()
        if self.unsaved:
            self._try_to_save()
        if self._is_heard_out() and (childless or self._let_go() or self._nothing_left()):
            return True
        if self.exit is None and self.stop_reason is None:
            self.stop_reason = self._reason_to_stop()
        if self.kill_at is None and (self.exit is not None or self.stop_reason is not None):
            self.kill_at = time.monotonic() + grace(self.spec, "kill_grace")
            self._signal(signal.SIGTERM, signal.SIGCONT)  # what is stopped has to go on to end
        elif self.kill_at is not None and time.monotonic() >= self.kill_at:
            self._signal(signal.SIGKILL)
            self.kill_pause = min(TURN, 2 * self.kill_pause)
        return False

    def _reap(self) -> bool:
        """Collects what has died: the command, and the orphans that became our children. True: no child is left."""
        while True:
            try:
                pid, ended = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            self.reaped += 1
            if pid == self.status["pid"] and self.exit is None:
                self.exit = ended
                self._count_seconds()

    def _count_seconds(self) -> None:
        """How long the command took: where it never had its CPU passes, it only waited for them."""
        now = time.monotonic()
        if self.limits.began is None:
            self._look_for_passes()  # it may be over before anybody looked
        if self.limits.began is None:
            self.status |= {"seconds": 0.0, "waited": round(now - self.began, 3)}
        else:
            self.status["seconds"] = round(now - self.limits.began, 3)

    def _look_for_passes(self) -> None:
        """Whether the CPU passes are held by now (`bot.passes.wrapped`): what can run out begins with them."""
        note: dict[str, Any] = read_json(self.spec["passes_note"]) or {}
        if "held_monotonic" in note:
            self.limits.began = float(note["held_monotonic"])
            self.status |= {"passes": note["passes"], "waited": note["waited"]}
            self._try_to_save()

    def _let_go(self) -> bool:
        """Whether what the command leaves behind is a run of its own, kept by its own program (`--adopt`)."""
        return bool(self.spec.get("adopts")) and self.stop_reason is None

    def _is_heard_out(self) -> bool:
        """Whether the command has ended, and all that it said was heard."""
        return self.exit is not None and not self.listener.behind

    def _reason_to_stop(self) -> str | None:
        if self.term_came or self._cancel_asked():
            return self._cancel_reason()
        self._look_for_stop()
        reason = self.limits.passed(time.monotonic(), self.words)
        if reason in (NEXT_ROUND, TURN_OVER):
            self.status["cancelled_by"] = self.status["asked_to_stop"]["by"]
        return reason

    def _look_for_stop(self) -> None:
        """Whether the run is asked to stop after its turn. It can write that file as well, so what was heard stays."""
        asked: dict[str, Any] = read_json(self.path("stop.json")) or {}
        until = asked.get("until")
        if type(until) is not int or not 0 <= until < 1 << 40:
            return
        self.limits.stop_after_turn(time.monotonic() + until - time.time(), self.words.round)
        if self.status["asked_to_stop"] is None:
            self.status["asked_to_stop"] = {"by": str(asked.get("by")), "at": str(asked.get("at")), "until": until}
            self._try_to_save()

    def _pause(self) -> float:
        """Seconds until the next turn, where nothing happens before."""
        now, due = time.monotonic(), 0.0 if self.listener.behind else TURN
        if self.kill_at is not None:
            due = min(due, max(self.kill_pause, self.kill_at - now))
        elif self.limits.deadline is not None:
            due = min(due, self.limits.deadline - now)
        return max(0.001, due)

    def _cancel_asked(self) -> bool:
        return os.path.exists(self.path("cancel.json"))

    def _cancel_reason(self) -> str:
        asked: dict[str, Any] = read_json(self.path("cancel.json")) or {}
        self.status["cancelled_by"] = str(asked.get("by") or BY_SIGNAL)
        return str(asked.get("reason") or "cancelled")

    def _listen(self) -> None:
        words = self.words
        said = [words.hear(line) for line in self.listener.fresh(to_the_end=self.exit is not None)]
        if not any(said):
            return
        self.limits.hear(words.verb, time.monotonic())
        self.status["word"] = {"verb": words.verb, "text": words.text}
        if words.round is not None:
            self.status |= {"round": words.round, "rounds": words.rounds or self.status["rounds"]}
        self._try_to_save()

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _alive(self) -> list[processes.Process]:
        """What is alive of the run: our descendants, without the runs of their own that were started in it."""
        everyone = processes.everyone()
        ours = processes.below([os.getpid()], everyone)
        others = {process.pid for process in ours if processes.supervises(process.pid)}
        ours = processes.below([os.getpid()], everyone, barring=others) if others else ours
        return [process for process in ours if not process.zombie]

    def _nothing_left(self) -> bool:
        """Whether all the children we have are other runs. A look at /proc takes time, in which a process can fork and
        end, so that neither it nor its child is seen; but then it has become our child, and died as one."""
        if self._alive():
            return False
        before = self.reaped
        return self._reap() or self.reaped == before

    def _signal(self, *numbers: int) -> None:
        for process in self._alive():
            for number in numbers:
                processes.send(process, number)

    def conclude(self) -> None:
        """Puts into the status what the end means."""
        if self.exit is not None:
            code = os.waitstatus_to_exitcode(self.exit)
            self.status |= {"exit_code": code if code >= 0 else None, "signal": -code if code < 0 else None}
            self.status |= meaning(self.spec, self.stop_reason, self.words, code)
        self.status |= {"supervisor": "ended", "finished": time_text(), "usage": usage()}

    def save(self) -> None:
        self.status["updated"] = time_text()
        write_json(self.path("status.json"), self.status)

    def _try_to_save(self) -> None:
        try:
            self.save()
        except OSError:
            self.unsaved = True
        else:
            self.unsaved = False

    def save_the_end(self, *, seconds: float = LAST_WRITE) -> None:
        """Writes the final status, into the reserve where the disk is full; tries for that long."""
        self.status["updated"] = time_text()
        if not os.access(self.folder, os.W_OK | os.X_OK):  # the command took our own rights to it away
            os.chmod(self.folder, 0o700)
        until = time.monotonic() + seconds
        while True:
            try:
                self.state_file.write(self.status)
            except OSError:
                if time.monotonic() >= until or not os.path.isdir(self.folder):
                    break
                time.sleep(TURN)  # nobody tells when a disk has room again
            else:
                break
        self.state_file.release()
        discard(self.path("control"))


def first_status(spec: dict[str, Any]) -> dict[str, Any]:
    """The status before anything has happened, with all the fields there will be."""
    empty = (
        "pid",
        "pid_started",
        "finished",
        "exit_code",
        "signal",
        "stop_reason",
        "error",
        "usage",
        "seconds",
        "passes",
        "waited",
        "word",
        "asked_to_stop",
    )
    return {
        **{key: spec.get(key) for key in ("run_id", "task", "driver", "session", "rounds")},
        "state": "created",
        "round": spec.get("round") or 1,
        "starts": spec.get("starts") or 1,
        "supervisor_pid": os.getpid(),
        "supervisor_started": processes.start_of(os.getpid()),
        "supervisor": "alive",
        "boot_id": processes.boot_id(),
        "host": os.uname().nodename,
        "started": time_text(),
        **dict.fromkeys(empty),
    }


def usage() -> dict[str, float]:
    """What all that was waited for has used: CPU seconds, and the largest resident set of one process in KiB."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "user_seconds": round(used.ru_utime, 3),
        "system_seconds": round(used.ru_stime, 3),
        "max_rss_kib": used.ru_maxrss,
    }


def main(argv: list[str]) -> int:
    folder = os.path.abspath(argv[1])
    lock = int(argv[2]) if len(argv) > 2 else take_lock(os.path.join(folder, "alive.lock"))
    if lock is None:
        print(f"leadsman: {folder} has a supervisor already", file=sys.stderr)
        return 1
    if os.fork():
        os._exit(0)  # whoever started us waits for this one, and has no child to think of
    detach(lock)
    try:
        supervise(folder)
    except Exception as problem:  # the border: what goes wrong here leaves no orphan, and the free lock says `lost`
        for process in processes.below([os.getpid()], processes.everyone()):
            processes.send(process, signal.SIGKILL)
        tell(f"The run's supervisor failed: {problem!r}.")
        raise
    return 0


def detach(lock: int) -> None:
    """A session of our own that no terminal's end reaches, and no descriptor of anybody's but the lock and the pipe."""
    os.setsid()
    os.chdir("/")
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(lock, False)
    os.closerange(3, lock)
    os.closerange(lock + 1, os.sysconf("SC_OPEN_MAX"))
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("this kernel has no child subreaper (Linux 3.4)")


def supervise(folder: str) -> None:
    spec: dict[str, Any] | None = read_json(os.path.join(folder, "spec.json"))
    if not spec:
        tell(f"{folder}/spec.json is missing or can't be read.")
        return
    run = Supervisor(folder, spec)
    error = run.start()
    if error is None:
        run.record(None)
        tell("running")
        run.watch()
        run.conclude()
        run.save_the_end()
    else:
        run.conclude()
        run.record(error)
        run.save_the_end(seconds=0)
        tell(error)


def tell(text: str) -> None:
    """Says to whoever started us how it went, and lets go of the pipe; they may have gone."""
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.write(1, text.encode("utf-8", "surrogateescape"))
    except OSError:
        pass
    os.dup2(nowhere, 1)
    os.close(nowhere)


if __name__ == "__main__":
    os._exit(main(sys.argv))  # all is written: to take an interpreter apart would keep waiting who waits for our end

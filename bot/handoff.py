"""Handing a command over to a run of its own: a record first, then the start, then what came of it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import UserError
from bot.launchers import start
from bot.launchers.tmux import session_of
from bot.liveness import end, is_over, reading, settled
from bot.living import living
from bot.processes import environment_of, look
from bot.rundir import Broken, RunDir, create, is_locked, new_run_id, read_json, take_lock, write_json
from bot.statefiles import discard, is_there
from bot.status import status_of

if TYPE_CHECKING:
    from typing import Any

    from bot.rundir import Spec

    Record = dict[str, Any]
    """`waiting.json`."""

AT_ONCE = 2.0
"""Seconds for the end of a command that is dead already to be recorded."""

LOOK = 0.05
"""Seconds between two looks at another program's store."""


def specification(
    store: Path,
    argv: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    driver: str,
    time_limit: float | None = None,
    adopts: bool = False,
) -> Spec:
    """The spec of a new run in `store`: the caller's folder and environment, and the variables that a run has."""
    run_id = new_run_id(datetime.now(UTC), os.urandom(3))
    return {
        "run_id": run_id,
        "task": Path(argv[0]).name or argv[0],
        "argv": list(argv),
        "cwd": cwd,
        "env": {**_inherited(environ), **_variables(RunDir(store / run_id), run_id)},
        "time_limit": time_limit,
        "driver": driver,
        "session": session_of(run_id) if driver == "tmux" else None,
        "adopts": adopts,
    }


def _inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment. What it holds for its own time, its passes and its deadline, ends with it."""
    about = dict.fromkeys(("LEADSMAN_TICKET", "LEADSMAN_BASE", "LEADSMAN_BRANCH", "LEADSMAN_MAX_TURNS"), "")
    kept = {name: value for name, value in environ.items() if name != "LEADSMAN_PASSES_HELD"}
    return {**about, **kept, "LEADSMAN_DEADLINE": ""}


def _variables(run: RunDir, run_id: str) -> dict[str, str]:
    return {
        "LEADSMAN_RUN_ID": run_id,
        "LEADSMAN_RUN_DIR": str(run.path),
        "LEADSMAN_STATUS_LOG": str(run.status_log),
        "LEADSMAN_REPORT": str(run.worker_report),
    }


def hand_off(store: Path, spec: Spec, *, wait: float, adopt: Path | None = None) -> tuple[RunDir, Record]:
    """Starts a new run; its directory and its record, which says `waiting` or `failed` and is on disk.

    `wait`: seconds for the run's end or, with `adopt`, for a run to appear in that store. Raises OSError where the
    record can't be made: nothing was started then.
    """
    before = seen_in(adopt) if adopt else {}
    run = create(store, spec)
    return run, _started(run, spec["driver"], wait=wait, adopt=adopt, before=before)


def resume(run: RunDir, *, wait: float = 0) -> Record:
    """Starts the run's command again where it was; raises `UserError` while any of it is alive, and where the server
    has given its worktree back."""
    if is_there(run.path / "ended.json") or is_there(run.path / "held.json"):
        raise UserError(f"Run {run.run_id} has ended, and its worktree was given back. Ask for it anew with `/retry`.")
    lock = take_lock(run.alive_lock)
    if lock is None:
        raise _is_alive(run)
    try:
        refuse_alive(run, locked=True)
        driver = _prepare_again(run)
    except BaseException:
        os.close(lock)
        raise
    return _started(run, driver, wait=wait, lock=lock)


def _prepare_again(run: RunDir) -> str:
    """Makes the run's files those of its next round, about to start; its driver."""
    spec = _spec_of(run)
    round_ = (status_of(run) or {"round": 0})["round"] + 1
    write_json(run.spec, {**spec, "round": round_, "starts": starts(spec) + 1})
    record = {"state": "created", "round": round_, "status": "starting", "found": False, "pid": None, "error": None}
    write_json(run.waiting, {**(read_json(run.waiting) or {}), **record})
    discard(run.cancel)
    discard(run.stop)
    return str(spec.get("driver") or "setsid")


def starts(spec: Mapping[str, Any]) -> int:
    """How often the command of a spec was started: its rounds may be counted by itself."""
    return int(spec.get("starts") or 1)


def _spec_of(run: RunDir) -> Record:
    spec = read_json(run.spec)
    if not spec or not spec.get("argv") or not isinstance(spec.get("env"), dict):
        raise UserError(f"{run.spec} is missing or can't be read, so run {run.run_id} can't be started again.")
    return spec


def retry(store: Path, run: RunDir, *, wait: float = 0) -> tuple[RunDir, Record]:
    """Starts the command of a run that was handed off as a new run; raises `UserError` while any of the old one is
    alive."""
    refuse_alive(run)
    old = _spec_of(run)
    run_id = new_run_id(datetime.now(UTC), os.urandom(3))
    fresh = {
        **old,
        "run_id": run_id,
        "env": {**old["env"], **_variables(RunDir(store / run_id), run_id)},
        "session": session_of(run_id) if old.get("driver") == "tmux" else None,
        "round": 1,
        "starts": 1,
    }
    return hand_off(store, fresh, wait=wait)  # type: ignore[arg-type]  # a spec that was read from its file


def refuse_alive(run: RunDir, *, locked: bool = False) -> None:
    """Raises `UserError`, with the pids, while anything of the run is alive. `locked`: we hold its lock ourselves."""
    if isinstance(status_of(run), Broken):
        raise UserError(
            f"{run.status} can't be read, so run {run.run_id} counts as alive. `leadsman cancel {run.run_id}` ends it."
        )
    if not locked and is_locked(run.alive_lock):
        raise _is_alive(run)
    if left := living(run.path):
        pids = ", ".join(str(process.pid) for process in left)
        raise UserError(f"Run {run.run_id} is alive (pid {pids}). `leadsman cancel {run.run_id}` ends it.")


def _is_alive(run: RunDir) -> UserError:
    pid = (status_of(run) or {}).get("pid")
    return UserError(f"Run {run.run_id} is alive (pid {pid}). `leadsman cancel {run.run_id}` ends it.")


def _started(
    run: RunDir,
    driver: str,
    *,
    wait: float,
    lock: int | None = None,
    adopt: Path | None = None,
    before: Mapping[str, tuple[int, ...]] | None = None,
) -> Record:
    until = time.monotonic() + wait
    started = start(run.path, driver, lock=lock, again=lock is not None)
    record = {**(read_json(run.waiting) or {}), **_known(run)}
    if started.error is not None and not _goes_on(run):
        state = reading(run.path)["state"]
        record |= {"state": state, "status": "failed", "found": False, "error": started.error}
    elif adopt is not None:
        record |= _adopted(run, adopt, before or {}, until)
    else:
        record |= _outcome(settled(run.path, max(wait, AT_ONCE if _died_at_once(run) else 0.0)))
    return _recorded(run, record)


def _known(run: RunDir) -> Record:
    """What its record says of a run however it goes, and whatever the run has done to its directory."""
    spec = read_json(run.spec) or {}
    named = {name: spec.get(name) for name in ("task", "driver", "session")}
    places = {"run_dir": str(run.path), "log": str(run.worker_log)}
    return {**named, **places, "run_id": run.path.name, "round": spec.get("round") or 1, "command": spec.get("argv")}


def _goes_on(run: RunDir) -> bool:
    """Whether a run lives of whose start nothing good was heard: its supervisor may have been killed a moment after
    that. One that may still begin is ended first."""
    if reading(run.path)["state"] == "running":
        return True
    lock = take_lock(run.alive_lock)
    if lock is None:  # it has not ended, and it ends at once where it has said why
        return bool(end(run.path, by="a handoff that heard nothing of its start")["state"] == "running")
    os.close(lock)
    return False


def _recorded(run: RunDir, record: Record) -> Record:
    """Keeps the record. A run whose record can't say that it runs is ended: who reads it would start another."""
    kept = read_json(run.waiting) or {}
    try:
        if record != kept:
            write_json(run.waiting, record)
    except OSError as problem:
        if kept.get("status") != record["status"] == "waiting":
            end(run.path, by="a handoff that can't be recorded")
            why = f"The run was ended, since its record {run.waiting} can't be written: {problem.strerror}."
            return {**record, "run_id": run.run_id, "status": "failed", "found": False, "error": why}
    return record


def _died_at_once(run: RunDir) -> bool:
    """Whether the command is dead by now, so that its end is about to be recorded."""
    command = look((status_of(run) or {}).get("pid") or 0)
    return command is None or command.zombie


def _outcome(status: Record) -> Record:
    """What a record says of a run with that status: it waits for one that is alive, or ended well meanwhile."""
    known: Record = {name: status[name] for name in ("state", "round", "pid", "supervisor_pid") if name in status}
    if not is_over(status) or status["state"] == "done":
        return {**known, "status": "waiting", "found": True}
    return {**known, "status": "failed", "found": False, "error": status.get("error") or f"It was {status['state']}."}


# ── a program that keeps its own store ───────────────────────────────────────────────────────────────────────────────


def seen_in(store: Path) -> dict[str, tuple[int, ...]]:
    """path of each `*/status.json` -> what changes when it is written."""
    seen: dict[str, tuple[int, ...]] = {}
    for path in store.glob("*/status.json"):
        try:
            facts = path.stat()
        except OSError:
            continue
        seen[str(path)] = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
    return seen


def _adopted(run: RunDir, store: Path, before: Mapping[str, tuple[int, ...]], until: float) -> Record:
    """Looks in `store` for the run that our command starts, until then or until the command fails.

    A run that appears comes before one that changes: another's old run may well change meanwhile, so a change counts
    only once the command has ended or the time is up.
    """
    while True:
        status = reading(run.path)
        late = time.monotonic() >= until
        now = seen_in(store)
        changed = [path for path in now if path in before and now[path] != before[path]]
        appeared = [path for path in now if path not in before]
        for path in sorted(appeared, key=now.__getitem__) + (changed if late or is_over(status) else []):
            child = read_json(path)
            if child and not _is_anothers(Path(path), child, run):
                names = {
                    "child_run_id": child.get("run_id") or Path(path).parent.name,
                    "child_round": child.get("round"),
                }
                return {**_outcome(status), **names, "status": "waiting", "found": True, "error": None}
        if late or (is_over(status) and status["state"] != "done"):
            why = f"The command {_how_it_is(status)}, and no run of its own appeared in {store}."
            return {**_outcome(status), "status": "failed", "found": False, "error": why}
        time.sleep(LOOK)  # the store is another program's: nothing of it tells us when it writes


def _is_anothers(path: Path, child: Record, run: RunDir) -> bool:
    """Whether it is our own run, or its process is of another of ours: two may be handed off into one store at once."""
    if path == run.status:
        return True
    pid = child.get("pid")
    if not isinstance(pid, int):
        return False
    prefix = b"LEADSMAN_RUN_ID="
    named = [os.fsdecode(entry[len(prefix) :]) for entry in environment_of(pid) if entry.startswith(prefix)]
    theirs = [name for name in named if name not in (run.run_id, child.get("run_id"))]
    return any((run.path.parent / name).is_dir() for name in theirs)


def _how_it_is(status: Record) -> str:
    if not is_over(status):
        return "goes on"
    return "ended well" if status["state"] == "done" else f"ended ({status.get('error') or status['state']})"

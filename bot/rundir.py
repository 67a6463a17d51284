"""The directory of a run: which file is where, how a run is found by the start of its id, how a new one is made."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from bot.errors import UsageError, UserError
from bot.statefiles import (
    Broken,
    discard,
    is_locked,
    read_json,
    sync_folder,
    take_lock,
    time_text,
    write_json,
    write_new_json,
    write_text,
)

if TYPE_CHECKING:
    from datetime import datetime
    from typing import NotRequired

    class Spec(TypedDict):
        """`spec.json`: all that the supervisor needs to know, and all that a resumed run needs again."""

        run_id: str
        task: str
        argv: list[str]
        cwd: str
        env: dict[str, str]
        """The command's whole environment."""
        time_limit: float | None
        """Seconds; None = no limit."""
        driver: str
        session: NotRequired[str | None]
        speaks: NotRequired[bool]
        adopts: NotRequired[bool]
        """Its command starts a run of its own, in another store: what it leaves behind is not ended."""
        round: NotRequired[int]
        rounds: NotRequired[int | None]
        starts: NotRequired[int]
        """How often its command was started; absent = once."""
        startup_grace: NotRequired[float]
        blocked_grace: NotRequired[float]
        kill_grace: NotRequired[float]


__all__ = [
    "RUN_ID",
    "Broken",
    "RunDir",
    "all_runs",
    "create",
    "find",
    "is_locked",
    "new_run_id",
    "read_json",
    "take_lock",
    "time_text",
    "write_json",
    "write_text",
]

RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")


def new_run_id(now: datetime, entropy: bytes) -> str:
    """`YYYYmmdd-HHMMSS-<6 hex>` from a moment in UTC and three random bytes (`os.urandom(3)`)."""
    return f"{now:%Y%m%d-%H%M%S}-{entropy[:3].hex():0>6}"


class RunDir:
    """Where the files of one run are. Other parts keep further ones beside them; whoever reads ignores those."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self.spec = self.path / "spec.json"
        self.status = self.path / "status.json"
        self.waiting = self.path / "waiting.json"
        self.cancel = self.path / "cancel.json"
        self.stop = self.path / "stop.json"
        """By whom, and until when, the run is asked to stop after its turn: for the command to look at."""
        self.status_log = self.path / "status.log"
        self.worker_log = self.path / "worker.log"
        self.worker_report = self.path / "worker-report.md"
        """What the run itself has to report (`LEADSMAN_REPORT`)."""
        self.report_md = self.path / "report.md"
        self.report_json = self.path / "report.json"
        self.changes_patch = self.path / "changes.patch"
        self.alive_lock = self.path / "alive.lock"
        self.control = self.path / "control"

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def run_id(self) -> str:
        return str((read_json(self.spec) or {}).get("run_id") or self.path.name)


def create(store: Path, spec: Spec) -> RunDir:
    """Makes the directory of a new run with `spec.json`, a `status.json` that says `created` and a `waiting.json` that
    says `starting`: it appears with all three, or not at all.

    Raises FileExistsError where the id is taken, OSError where the disk will not have it.
    """
    store.mkdir(parents=True, exist_ok=True, mode=0o700)
    run = RunDir(store / spec["run_id"])
    if run.path.exists():
        raise FileExistsError(run.path)
    fresh = RunDir(store / f".{spec['run_id']}.{os.getpid()}")
    fresh.path.mkdir(mode=0o700)
    try:
        _fill(fresh, run, spec)
        sync_folder(str(fresh.path))
        fresh.path.rename(run.path)  # fails where a directory that holds something is there
    except OSError:
        for path in fresh.path.iterdir():
            discard(path)
        fresh.path.rmdir()
        raise
    sync_folder(str(store))
    return run


def _fill(fresh: RunDir, run: RunDir, spec: Spec) -> None:
    """Writes the first files of `run` into the directory that will be it, and that nobody reads before: so each is
    written as it is to be, and one flush of the directory does for all."""
    shared = {key: spec.get(key) for key in ("run_id", "task", "driver", "session")}
    shared |= {"state": "created", "round": spec.get("round", 1)}
    write_new_json(fresh.spec, spec)
    write_new_json(fresh.status, {**shared, "rounds": spec.get("rounds"), "updated": time_text()})
    places = {"run_dir": str(run.path), "log": str(run.worker_log)}
    started = {"pid": None, "supervisor_pid": None, "command": spec["argv"], "status": "starting", "found": False}
    write_new_json(fresh.waiting, {**shared, **places, **started})


def all_runs(store: Path) -> list[RunDir]:
    """The runs of a store, oldest first; none where there is no store. Raises `UserError` where it can't be read."""
    try:
        names = sorted(path.name for path in store.iterdir() if RUN_ID.fullmatch(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as problem:
        raise UserError(f"The runs in {store} can't be read: {problem.strerror}.") from problem
    return [RunDir(store / name) for name in names]


def find(store: Path, prefix: str) -> RunDir:
    """The run whose id starts so; raises `UsageError`, which names the store, or all the runs that do."""
    found = [run for run in all_runs(store) if prefix and run.path.name.startswith(prefix)]
    if len(found) > 1:
        names = ", ".join(run.path.name for run in found)
        raise UsageError(f"{prefix} is the start of {len(found)} runs in {store}: {names}. Give more of the id.")
    if not found:
        raise UsageError(
            f"There is no run {prefix or 'without an id'} in {store}. `leadsman runs` lists those there are."
        )
    return found[0]

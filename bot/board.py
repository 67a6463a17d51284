"""The board: what runs, waits and came of it in one repository, as two files on a branch of that repository.

It names no path of the host and repeats no free text of a run: whoever reads the repository reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bot.ages import Ages, Checked
from bot.codec import Unreadable
from bot.errors import Unavailable, UserError
from bot.landing import forbidden
from bot.markdown import cell, code, inline
from bot.masking import Masking
from bot.model import Outcome, Published, Repo
from bot.publishing import SKIP_CI, BoardSettings, PublishSettings
from bot.repositories import Repositories, git_trouble
from bot.store import hosts, runs
from bot.store.engine import Store
from gitops import publish
from gitops.git import Identity
from gitops.mirror import Mirror

FILE, DATA = "BOARD.md", "board.json"
RECENT = 20
ATTEMPTS = 8
LARGEST = 1 << 20

ENDED = ("run", "task", "for", "outcome", "checks", "commit", "ended")

VOLATILE = ("at", "load")
"""What changes by itself: alone it is no reason for a commit."""

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Host:
    """How full the host is."""

    name: str
    slots: int
    load: float | None
    cpus: int


class Boards:
    """Keeps the boards of a server's repositories."""

    def __init__(
        self,
        repositories: Repositories,
        store: Store,
        runs_dir: Path,
        settings: BoardSettings,
        published: PublishSettings,
        *,
        identity: Identity,
        masking: Masking,
        host: Callable[[], Host],
        clock: Callable[[], float],
    ) -> None:
        self._repositories = repositories
        self._store = store
        self._runs_dir = runs_dir
        self._settings = settings
        self._published = published
        self._identity = identity
        self._masking = masking
        self._host = host
        self._clock = clock

    def publish(self, repo: Repo) -> str | None:
        """Brings the repository's board up to date: the commit that says so now, None where nothing had changed.

        Raises `UserError` for a branch that nothing may be pushed to, `Unavailable` where the remote did not answer.
        """
        branch = self._settings.where(self._published)
        why = forbidden(self._repositories.forge(repo), self._published, repo, branch)
        if why is not None:
            raise UserError(f"The board of {repo.name} can't be published: {why} Name another with [board] branch.")
        data = self.data(repo)
        mirror = self._repositories.mirror(repo)
        with git_trouble(f"The board of {repo} can't be published"):
            return self._push(mirror, f"refs/heads/{branch}", data, repo)

    def _push(self, mirror: Mirror, ref: str, data: Data, repo: Repo) -> str | None:
        files = {FILE: page(data).encode(), DATA: (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode()}
        seen = mirror.remote_ref(ref)
        for _ in range(ATTEMPTS):
            if seen is not None and not mirror.fetch_commit(seen, ref=ref):
                break
            if seen is not None and _same(mirror, seen, data):
                return None
            onto = seen or (None if self._settings.orphan else self._start(mirror, repo))
            tip = publish.commit_files(mirror, onto, files, self._identity, self._message(data))
            match publish.push_exact(mirror, tip, ref, expect=seen):
                case publish.Pushed():
                    return tip
                case publish.Rejected(now, why) if now == seen:
                    raise UserError(f"The board of {repo.name} can't be published: the remote refused {ref}: {why}")
                case publish.Rejected(seen, _):
                    continue  # somebody else published meanwhile: on top of theirs
        raise Unavailable(f"Others came first on {ref} {ATTEMPTS} times.")

    def _start(self, mirror: Mirror, repo: Repo) -> str:
        forge = self._repositories.forge(repo)
        head = forge.branch_sha(repo, forge.repository(repo).default_branch)
        mirror.fetch_commit(head)
        return head

    def _message(self, data: Data) -> str:
        ci = f" {SKIP_CI}" if self._published.skip_ci else ""
        return f"Board: {len(data['live'])} live, {len(data['waiting'])} waiting{ci}\n"

    def data(self, repo: Repo) -> Data:
        """What `board.json` says."""
        host = self._host()
        with self._store.read() as connection:
            taken = {held.run_id for held in runs.leased(connection)}
            peers = [row for row in hosts.known(connection) if row.is_live(self._clock()) and row.name != host.name]
            unfinished = [row for row in runs.open_runs(connection) if row.repo == str(repo)]
            ended = [row for row in _recent(connection) if row.repo == str(repo)][:RECENT]
        return {
            "repository": repo.name,
            "at": _moment(self._clock()),
            "slots": {"of": host.slots + sum(row.slots for row in peers), "taken": len(taken)},
            "load": {"p95": host.load, "cpus": host.cpus},
            "live": [self._open(row) for row in unfinished if row.run_id in taken],
            "waiting": [self._open(row) for row in unfinished if row.run_id not in taken],
            "recent": [self._ended(row) for row in ended],
        }

    def _open(self, row: runs.Row) -> Data:
        ages = Ages(self._runs_dir / row.run_id)
        try:
            claim = ages.claim
        except (Unreadable, OSError):
            claim = None
        return {**self._about(row), "phase": row.phase, "claim": {"ref": claim.ref, "id": claim.oid} if claim else None}

    def _ended(self, row: runs.Row) -> Data:
        ages = Ages(self._runs_dir / row.run_id)
        outcome: Outcome | None = None
        checked: Checked | None = None
        try:
            outcome = ages.ended.outcome if ages.ended else None
            checked = ages.read("checked")
        except (Unreadable, OSError):
            pass  # its files are on another host, or gone: then that is all that is known
        return {
            **self._about(row),
            "outcome": outcome.kind if outcome else "unknown",
            "tip": outcome.tip if isinstance(outcome, Published) else None,
            "ref": outcome.ref if isinstance(outcome, Published) else None,
            "checks": [sum(1 for one in checked.verdicts if one.holds), len(checked.verdicts)] if checked else None,
            "ended": _moment(row.closed_at or 0.0),
        }

    def _about(self, row: runs.Row) -> Data:
        return {
            "run": row.run_id,
            "task": self._masking(row.task),
            "subject": self._masking(row.subject),
            "asked_by": self._masking(row.asked_by),
            "since": _moment(row.created_at),
        }


def _recent(connection: sa.Connection) -> Sequence[runs.Row]:
    return [row for row in runs.recent(connection, limit=20 * RECENT) if row.closed_at is not None]


def _same(mirror: Mirror, commit: str, data: Data) -> bool:
    """Whether the board in a commit says the same, but for what changes by itself."""
    raw = mirror.read_file(commit, DATA, limit=LARGEST)
    try:
        there = json.loads(raw) if isinstance(raw, bytes) else None
    except ValueError:
        return False
    return isinstance(there, dict) and _steady(there) == _steady(data)


def _steady(data: Mapping[str, Any]) -> Data:
    return {name: value for name, value in data.items() if name not in VOLATILE}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────


def page(data: Mapping[str, Any]) -> str:
    """`BOARD.md`: nothing that `board.json` does not say."""
    load = data["load"]
    figure = "not known yet" if load["p95"] is None else f"{load['p95']:.2f} (p95)"
    slots = data["slots"]
    parts = [
        f"# Runs in {inline(data['repository'])}",
        f"{slots['taken']} of {slots['of']} slots taken, load {figure} on {load['cpus']} CPUs, {data['at']}.",
        _table("Live", ("run", "task", "for", "asked by", "phase", "Claim-Id"), map(_live_row, data["live"])),
        _table("Waiting", ("run", "task", "for", "asked by", "since"), map(_waiting_row, data["waiting"])),
        _table("Ended", ENDED, map(_ended_row, data["recent"])),
    ]
    return "\n\n".join(parts) + "\n"


def _table(title: str, heads: Sequence[str], rows: Any) -> str:
    lines = [f"| {' | '.join(cell(one) for one in row)} |" for row in rows]
    if not lines:
        return f"## {title}\n\nNone."
    return "\n".join([f"## {title}", "", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *lines])


def _live_row(run: Data) -> tuple[str, ...]:
    claim = code(run["claim"]["id"][:12]) if run["claim"] else ""
    return (code(run["run"]), code(run["task"]), inline(run["subject"]), inline(run["asked_by"]), run["phase"], claim)


def _waiting_row(run: Data) -> tuple[str, ...]:
    return (code(run["run"]), code(run["task"]), inline(run["subject"]), inline(run["asked_by"]), run["since"])


def _ended_row(run: Data) -> tuple[str, ...]:
    checks = "" if run["checks"] is None else f"{run['checks'][0]} of {run['checks'][1]}"
    commit = f"{code(run['tip'][:12])} on {code(run['ref'].removeprefix('refs/heads/'))}" if run["tip"] else ""
    return (code(run["run"]), code(run["task"]), inline(run["subject"]), run["outcome"], checks, commit, run["ended"])

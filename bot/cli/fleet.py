"""`leadsman status` without a run: what the fleet of this home does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bot import home
from bot.cli.options import printable, say
from bot.livecount import has_ended
from bot.liveness import reading
from bot.passview import passes
from bot.rundir import RunDir
from bot.serverstate import said

if TYPE_CHECKING:
    from typing import Any

COUNTERS = ("active_runs", "running", "pending", "max_concurrent", "peak", "dispatched", "reports")


def show(store: Path, *, as_json: bool) -> int:
    """Prints it. The server's own words, with what its runs do read anew: they outlive it."""
    lock = home.lock_state(store.parent)
    state = _now(said(store.parent) or {}, store)
    state["server"] = {
        "state": lock.word,
        "holder": lock.holder._asdict() if lock.holder else None,
    }
    pool = passes(os.environ)
    state["passes"] = {"size": pool.size, "holders": list(pool.holders), "unusable": pool.unusable or None}
    if as_json:
        print(json.dumps(state, indent=1))
    else:
        say("\n".join([*_lines(state, str(lock)), printable(str(pool))]))
    return 0


def _now(state: dict[str, Any], store: Path) -> dict[str, Any]:
    runs = [run for run in state.get("runs") or [] if isinstance(run, dict)]
    for run in runs:
        run["state"] = reading(store / str(run["run_id"])).get("state")
    live = [run for run in runs if not has_ended(RunDir(store / str(run["run_id"])))]
    running = sum(1 for run in live if run["state"] == "running")
    zeros: dict[str, Any] = dict.fromkeys(COUNTERS, 0)
    empty: dict[str, Any] = {
        "paused": None,
        "slots": {},
        "hosts": [],
        "waiting": [],
        "configuration": {},
        "updated": None,
    }
    return {**zeros, **empty, **state, "runs": runs, "active_runs": len(live), "running": running}


def _lines(state: dict[str, Any], lock: str) -> list[str]:
    held = sum(1 for run_id in state["slots"].values() if run_id)
    lines = [f"Server: {lock}"]
    if state["server"]["state"] != "held":
        told = state["updated"]
        lines.append(f"  what the last one said, at {told}:" if told else "  none has run here yet")
    lines.append(
        f"Slots: {held} of {len(state['slots'])} held, {state['peak']} at most; {state['active_runs']} runs live "
        f"({state['running']} running), at most {state['max_concurrent']} may be; {state['pending']} wait; "
        f"started in all: {state['dispatched']}, reported: {state['reports']}"
    )
    if state["paused"]:
        lines.append(f"New runs are paused by {state['paused']['by']}: `leadsman unpause` lets them start.")
    if state["configuration"].get("problem"):
        lines.append(f"The configuration is wrong, the last good one is in force: {state['configuration']['problem']}")
    lines += [_run(run) for run in state["runs"]]
    for host in state["hosts"]:
        lines += _host(host, {run["run_id"] for run in state["runs"]})
    lines += [_waits(run) for run in state["waiting"]]
    if state["pending"] > len(state["waiting"]):
        lines.append(f"  and {state['pending'] - len(state['waiting'])} more wait")
    return [printable(line) for line in lines]


def _run(run: dict[str, Any]) -> str:
    why = f": {run['reason']}" if run["reason"] else ""
    return f"  {run['slot']:<6}{run['run_id']}  {run['task']} for {run['subject']}, {run['phase']}, {run['state']}{why}"


def _host(host: dict[str, Any], told: set[str]) -> list[str]:
    """One of several hosts, and its runs but for those that were told already: they are this one's."""
    gone = f", gone since {host['gone_since']}" if host["gone_since"] else ""
    runs = [run for run in host["runs"] if run["run_id"] not in told]
    return [f"Host {host['name']}: {host['held']} of {host['slots']} slots held{gone}", *map(_elsewhere, runs)]


def _elsewhere(run: dict[str, Any]) -> str:
    why = f": {run['reason']}" if run["reason"] else ""
    return f"  {run['slot']:<6}{run['run_id']}  {run['task']} for {run['subject']}, {run['phase']}{why}"


def _waits(run: dict[str, Any]) -> str:
    why = f": {run['reason']}" if run["reason"] else ""
    return f"  {run['position']:<6}{run['run_id']}  {run['task']} for {run['subject']} waits{why}"

"""May one more run start now? A pure decision, and when it is no: which number blocks, and what would pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.model import Refused

CYCLE_MARGIN = 30
"""Seconds a cycle must have left beyond cap x per-run limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the decision looks at. None = unknown or not bounded, except `live`, where None denies."""

    slots: Sequence[str]
    taken: Mapping[str, str]
    """slot -> repository of the run that holds it."""
    live: int | None
    """Runs whose end is not proved; None when the registry can't be read."""
    cap: int
    paused: bool = False
    load_p95: float | None = None
    cpus: int = 1
    max_load_per_cpu: float = 2.0
    remaining_seconds: int | None = None
    run_limit: int = 0
    retrying: int = 0
    retry_cap: int | None = None
    parallel: Mapping[str, int] = field(default_factory=dict)
    """repository, casefolded as forges compare names -> its project's max_parallel (default 1)."""


def admit(host: Host, repo: str) -> str | Refused:
    """The slot to take for a run in `repo`, the first free one in order; or why not."""
    for refusal in (_bounds(host), _repository(host, repo)):
        if refusal is not None:
            return refusal
    for slot in host.slots:
        if slot not in host.taken:
            return slot
    return Refused("no_free_slot", f"All {len(host.slots)} slots are held; one has to be given back.")


def _bounds(host: Host) -> Refused | None:
    if host.live is None:
        return Refused("registry_unreadable", "The store can't be read; `leadsman doctor --repair` rebuilds it.")
    if host.paused:
        return Refused("paused", "New runs are paused; `leadsman unpause` lets them start.")
    if host.live >= host.cap:
        return Refused("crew_cap_reached", f"{host.live} runs are live and the cap is {host.cap}: one has to end.")
    need = host.cap * host.run_limit + CYCLE_MARGIN
    if host.remaining_seconds is not None and host.remaining_seconds < need:
        return Refused(
            "insufficient_cycle_time",
            f"{host.remaining_seconds} s are left; {host.cap} x {host.run_limit} s + {CYCLE_MARGIN} s = {need} s pass.",
        )
    if host.retry_cap is not None and host.retrying > host.retry_cap:
        return Refused("retry_pressure", f"{host.retrying} runs are being retried; at most {host.retry_cap} pass.")
    bound = host.max_load_per_cpu * host.cpus
    if host.load_p95 is not None and host.load_p95 > bound:
        return Refused(
            "host_overloaded", f"The load is {host.load_p95:.1f} on {host.cpus} CPUs; {bound:g} or less passes."
        )
    return None


def _repository(host: Host, repo: str) -> Refused | None:
    allowed = host.parallel.get(repo.casefold(), 1)
    running = sum(1 for held in host.taken.values() if held == repo)
    if running < allowed:
        return None
    return Refused("repo_busy", f"{running} of at most {allowed} runs go on in this repository: one has to end.")

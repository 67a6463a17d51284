"""May one more run start now? A pure decision, and when it is no: which number blocks, and what would pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.model import Refused

CYCLE_MARGIN = 30
"""Seconds a cycle must have left beyond cap x per-run limit."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another live host of the same store."""

    name: str
    slots: int
    held: int
    is_able: bool
    """It has a free slot, and its load is within its bound."""

    @property
    def used(self) -> float:
        return self.held / max(1, self.slots)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another host takes it: that one has less to do."""

    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the decision looks at. None = unknown or not bounded, except `live`, where None denies."""

    name: str = ""
    slots: Sequence[str]
    taken: Mapping[str, str]
    """slot -> repository of the run that holds it."""
    peers: Sequence[Peer] = ()
    """The other live hosts."""
    elsewhere: Sequence[str] = ()
    """The repository of each run that holds a slot of another host."""
    live: int | None
    """Runs whose end is not proved, on all hosts; None when the registry can't be read."""
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


def admit(host: Host, repo: str) -> str | Refused | Elsewhere:
    """The slot to take for a run in `repo`, the first free one in order; which host takes it instead; or why not.

    Of several hosts that could, the one with the smallest part of its slots held does; of equal ones, the first by
    name. Each comes to the same answer, so that one of them takes it and the others leave it alone.
    """
    for refusal in (_bounds(host), _repository(host, repo)):
        if refusal is not None:
            return refusal
    here = _here(host)
    able = [peer for peer in host.peers if peer.is_able]
    if isinstance(here, str):
        able.append(Peer(host.name, len(host.slots), len(host.taken), is_able=True))
    if not able:
        return here
    first = min(able, key=lambda peer: (peer.used, peer.name))
    return here if first.name == host.name else Elsewhere(first.name)


def _bounds(host: Host) -> Refused | None:
    """What is the same on all hosts."""
    if host.live is None:
        return Refused("registry_unreadable", "The store can't be read; `leadsman doctor --repair` rebuilds it.")
    if host.paused:
        return Refused("paused", "New runs are paused; `leadsman unpause` lets them start.")
    if host.live >= host.cap:
        return Refused("crew_cap_reached", f"{host.live} runs are live and the cap is {host.cap}: one has to end.")
    if host.retry_cap is not None and host.retrying > host.retry_cap:
        return Refused("retry_pressure", f"{host.retrying} runs are being retried; at most {host.retry_cap} pass.")
    return None


def _here(host: Host) -> str | Refused:
    """The first free slot of this host, where it may start anything now."""
    need = host.cap * host.run_limit + CYCLE_MARGIN
    if host.remaining_seconds is not None and host.remaining_seconds < need:
        return Refused(
            "insufficient_cycle_time",
            f"{host.remaining_seconds} s are left; {host.cap} x {host.run_limit} s + {CYCLE_MARGIN} s = {need} s pass.",
        )
    bound = host.max_load_per_cpu * host.cpus
    if host.load_p95 is not None and host.load_p95 > bound:
        return Refused(
            "host_overloaded", f"The load is {host.load_p95:g} on {host.cpus} CPUs; {bound:g} or less passes."
        )
    for slot in host.slots:
        if slot not in host.taken:
            return slot
    slots = len(host.slots) + sum(peer.slots for peer in host.peers)
    return Refused("no_free_slot", f"All {slots} slots are held; one has to be given back.")


def _repository(host: Host, repo: str) -> Refused | None:
    wanted = repo.casefold()
    allowed = host.parallel.get(wanted, 1)
    running = sum(1 for held in (*host.taken.values(), *host.elsewhere) if held.casefold() == wanted)
    if running < allowed:
        return None
    return Refused("repo_busy", f"{running} of at most {allowed} runs go on in this repository: one has to end.")

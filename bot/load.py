"""The host's load over time: one line a sample, and what a window of them says.

A line is `epoch, load1, load5, load15, cpus, pool_size, pool_held`, separated by tabs; the last two are empty while the
pool of CPU passes is unavailable. Standard library only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bot.cpus import host_size
from bot.pool import PoolUnusable, open_pool

FILE = "load.tsv"
"""Where the samples are in the home."""

_NUMBER, _COUNT = r"(\d{1,12}(?:\.\d{1,9})?)", r"(\d{1,9})"
_LINE = re.compile(rf"{_NUMBER}\t{_NUMBER}\t{_NUMBER}\t{_NUMBER}\t{_COUNT}\t(?:{_COUNT}\t{_COUNT}|\t)", re.ASCII)


class Sample(NamedTuple):
    """The load at one moment."""

    at: float
    """Seconds since 1970."""
    load1: float
    load5: float
    load15: float
    cpus: int
    pool_size: int | None
    """None while the pool was unavailable, as is `pool_held`."""
    pool_held: int | None

    def line(self) -> str:
        loads = (f"{load:.2f}" for load in (self.load1, self.load5, self.load15))
        pool = ("" if count is None else str(count) for count in (self.pool_size, self.pool_held))
        return "\t".join((str(int(self.at)), *loads, str(self.cpus), *pool)) + "\n"


class Samples(NamedTuple):
    """What was found in a file, in order of time."""

    samples: tuple[Sample, ...]
    bad_lines: int


def sample(environ: Mapping[str, str], now: float) -> Sample:
    """The load of this host, and what is held of its pool."""
    cpus = os.sysconf("SC_NPROCESSORS_ONLN")  # all of them: the load is that of the whole host, too
    try:
        pool = open_pool(environ, host_size())
        size, held = pool.recorded_size() or pool.size, len(pool.holders())
    except PoolUnusable:
        return Sample(now, *os.getloadavg(), cpus, None, None)
    return Sample(now, *os.getloadavg(), cpus, size, held)


def record(path: Path, taken: Sample) -> None:
    """Appends the sample in one write. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        line = taken.line().encode()
        length = os.fstat(descriptor).st_size
        if length and os.pread(descriptor, 1, length - 1) != b"\n":
            line = b"\n" + line  # a crash left half a line: it stays alone
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def read(path: Path, since: float = 0.0) -> Samples:
    """The samples at or after `since`. Raises OSError."""
    found: list[Sample] = []
    bad = 0
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            taken = parse(line.removesuffix("\n"))
            if taken is None:
                bad += 1
            elif taken.at >= since:
                found.append(taken)
    return Samples(tuple(sorted(found)), bad)


def parse(line: str) -> Sample | None:
    """The sample that a line holds; None for anything else."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    at, load1, load5, load15, cpus, size, held = match.groups()
    if int(cpus) < 1 or (size is not None and int(held) > int(size)):
        return None
    pool = (None, None) if size is None else (int(size), int(held))
    return Sample(float(at), float(load1), float(load5), float(load15), int(cpus), *pool)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value at that share of the sorted ones: the nearest rank, rounded as Python rounds."""
    return ordered[round(share * (len(ordered) - 1))]


def summary(found: Samples) -> dict[str, object]:
    """What the window says. `load_within_2x_cpus` is the verdict: p95 of the load is at most twice the CPUs."""
    samples, bad = found
    if not samples:
        return {"samples": 0, "load_within_2x_cpus": None, "bad_lines": bad}
    loads = sorted(taken.load1 for taken in samples)
    held = [taken.pool_held for taken in samples if taken.pool_held is not None]
    cpus = samples[-1].cpus
    p95 = percentile(loads, 0.95)
    return {
        "samples": len(samples),
        "first": _number(samples[0].at),
        "last": _number(samples[-1].at),
        "cpus": cpus,
        "load1_p50": percentile(loads, 0.5),
        "load1_p95": p95,
        "load1_max": loads[-1],
        "share_above_2x_cpus": round(sum(taken.load1 > 2 * taken.cpus for taken in samples) / len(samples), 4),
        "pool_held_max": max(held, default=None),
        "pool_held_mean": round(sum(held) / len(held), 4) if held else None,
        "load_within_2x_cpus": p95 <= 2 * cpus,
        "bad_lines": bad,
    }


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() else value

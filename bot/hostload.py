"""The host's load as admission sees it: the 95th percentile of the last minutes, so that a burst blocks nobody."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from bot import load

SAMPLE_SECONDS = 60.0
WINDOW_SECONDS = 15 * 60.0
WINDOW = 15
"""Samples that count: a quarter of an hour."""
ENOUGH = 5
"""Fewer samples say nothing yet, and bound nothing."""


def host_load() -> tuple[float, int]:
    """The load average over one minute, and the number of CPUs this process may use."""
    return os.getloadavg()[0], len(os.sched_getaffinity(0))


class LoadWindow:
    """Samples of the load, one a minute, kept for `leadsman load report`; the last ones are what admission looks at."""

    def __init__(self, home: Path, environ: Mapping[str, str], clock: Callable[[], float]) -> None:
        self._path = home / load.FILE
        self._environ = environ
        self._clock = clock
        self._lock = threading.Lock()
        self._samples = deque((taken.load1 for taken in self._recent()), maxlen=WINDOW)

    def sample(self, _key: str = "") -> float:
        """Takes one and records it; returns in how many seconds the next is due."""
        taken = load.sample(self._environ, self._clock())
        with self._lock:
            self._samples.append(taken.load1)
        with suppress(OSError):  # a full disk costs the sample, and is told by what matters more
            load.record(self._path, taken)
        return SAMPLE_SECONDS

    def p95(self) -> tuple[float | None, int]:
        """The percentile (None: too few samples), and the number of CPUs."""
        with self._lock:
            samples = sorted(self._samples)
        cpus = host_load()[1]
        return (load.percentile(samples, 0.95) if len(samples) >= ENOUGH else None), cpus

    def _recent(self) -> tuple[load.Sample, ...]:
        try:
            return load.read(self._path, self._clock() - WINDOW_SECONDS).samples
        except OSError:
            return ()

"""The host's load as admission sees it: the 95th percentile of the last minutes, so that a burst blocks nobody."""

from __future__ import annotations

import os
import threading
from collections import deque

SAMPLE_SECONDS = 60.0
WINDOW = 15
"""Samples that count: a quarter of an hour."""
ENOUGH = 5
"""Fewer samples say nothing yet, and bound nothing."""


def host_load() -> tuple[float, int]:
    """The load average over one minute, and the number of CPUs this process may use."""
    return os.getloadavg()[0], len(os.sched_getaffinity(0))


class LoadWindow:
    """Samples of the load, one a minute."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=WINDOW)
        self._lock = threading.Lock()

    def sample(self, _key: str = "") -> float:
        """Takes one; returns in how many seconds the next is due."""
        with self._lock:
            self._samples.append(host_load()[0])
        return SAMPLE_SECONDS

    def p95(self) -> tuple[float | None, int]:
        """The percentile (None: too few samples), and the number of CPUs."""
        with self._lock:
            samples = sorted(self._samples)
        cpus = host_load()[1]
        if len(samples) < ENOUGH:
            return None, cpus
        return samples[round(0.95 * (len(samples) - 1))], cpus

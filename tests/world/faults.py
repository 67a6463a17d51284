"""What goes wrong on order: failing, slow and unreachable answers."""

from __future__ import annotations

import fnmatch
import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Fault:
    method: str
    path: str
    """A glob on the path behind the API's prefix; `*` also spans slashes."""
    seconds: float = 0.0
    status: int | None = None
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    times: int | None = None
    """How often it still strikes; None = until healed."""

    def fits(self, method: str, path: str) -> bool:
        return self.method in ("*", method) and fnmatch.fnmatchcase(path, self.path)


class Faults:
    """A pattern is `POST /repos/*/comments`, or a path alone for every method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: list[Fault] = []

    def order(self, pattern: str, **what: Any) -> None:
        method, _, path = pattern.rpartition(" ")
        with self._lock:
            self._orders.append(Fault(method or "*", path, **what))

    def heal(self) -> None:
        with self._lock:
            self._orders.clear()

    def strike(self, method: str, path: str) -> Fault | None:
        """The first order that fits; one of its times is used up."""
        with self._lock:
            for fault in self._orders:
                if fault.fits(method, path) and fault.times != 0:
                    fault.times = fault.times and fault.times - 1
                    return fault
            return None

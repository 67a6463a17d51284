"""`events.jsonl`: what was decided and why, one JSON object a line, for operators and for tests."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path


class Journal:
    """Appends to one file. A line is written by one `write` call, so that several processes never mix theirs."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock

    def say(self, event: str, **facts: object) -> None:
        """Appends `{"at": ..., "event": event, **facts}`. A journal that can't be written stops nothing."""
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        append_line(self._path, {"at": at, "event": event, **facts})


def append_line(path: Path, facts: Mapping[str, object]) -> None:
    """Appends one JSON object as one line, in one write. Where that can't be done, it is left out."""
    line = json.dumps(facts, ensure_ascii=False, default=str)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        os.write(handle, line.encode("utf-8", "replace") + b"\n")
    except OSError:
        pass  # a full disk: the step itself will say so
    finally:
        os.close(handle)

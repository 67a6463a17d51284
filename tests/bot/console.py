"""Runs `leadsman` as a person does: the installed script, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SCRIPT = Path(sys.executable).with_name("leadsman")


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def leadsman(*argv: str, cwd: Path, environ: Mapping[str, str] | None = None, seconds: float = 90) -> Ended:
    """Runs it in `cwd`, with `cwd/home` for its home, and waits for its end."""
    done = subprocess.run(
        [SCRIPT, *argv],
        cwd=cwd,
        env={**os.environ, "LEADSMAN_HOME": str(cwd / "home"), **(environ or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)

"""How long commands take as whole processes, and reading the configuration inside one.

    python -m tests.bench.startup

Beside each figure: an empty Python of the same environment, which nothing written in it can beat.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bot.config import load
from tests.bot.test_config import EXAMPLE

ROUNDS = 20
SCRIPT = Path(sys.executable).with_name("leadsman")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "leadsman.toml").write_text(EXAMPLE)
        environ = {**os.environ, "LEADSMAN_HOME": str(place / "home")}
        empty = _process([sys.executable, "-c", "pass"], place, environ)
        print(f"{'empty Python':<24} {empty * 1000:6.1f} ms")
        for argv in (["--help"], ["lock", "status"], ["budget"], ["config", "check"], ["config", "explain"]):
            taken = _process([SCRIPT, *argv], place, environ)
            print(f"{'leadsman ' + ' '.join(argv):<24} {taken * 1000:6.1f} ms  {taken / empty:5.1f} x")
        taken = _median(lambda: load(place / "leadsman.toml", {}, home=place))
        print(f"{'load(example)':<24} {taken * 1000:6.1f} ms")
        large = EXAMPLE + "".join(f'[[task]]\nname = "t{n}"\nrun = ["x"]\n' for n in range(1000))
        (place / "large.toml").write_text(large)
        taken = _median(lambda: load(place / "large.toml", {}, home=place))
        print(f"{'load(1,000 tasks)':<24} {taken * 1000:6.1f} ms")


def _process(argv: list[str | Path], cwd: Path, environ: Mapping[str, str]) -> float:
    return _median(lambda: subprocess.run(argv, cwd=cwd, env=environ, check=True, capture_output=True, timeout=60))


def _median(work: Callable[[], object]) -> float:
    """Seconds."""
    taken = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


if __name__ == "__main__":
    main()

"""What a pass costs, beside what it could cost: `python -m tests.bench.passes`. Read the ratios, not the figures.

Prints the wrapper's overhead beside its likes, the hand-over between waiters, and how much of two passes gets used.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bot.pool import Pool

ROOT = Path(__file__).parents[2]
WRAPPER = [sys.executable, "-I", "-S", str(ROOT / "bot/cli/pass_.py"), "run"]
PASSES, WAITERS = 2, 8

Give = Callable[[], None]
Take = Callable[[], Give]


class Shares(NamedTuple):
    """What the waiters of one round got."""

    turns: list[int]
    waits: list[float]
    held: float
    """Seconds that passes were held, all together."""
    took: float

    @property
    def jain(self) -> float:
        """Jain's fairness index: 1 = all got the same, 1/n = one got all."""
        return sum(self.turns) ** 2 / len(self.turns) / sum(n * n for n in self.turns)

    def wait(self, share: float) -> float:
        return sorted(self.waits)[int(share * (len(self.waits) - 1))]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        overhead(Path(folder))
        for hold in (0.005, 0.2):
            hand_over(Path(folder), hold)


def overhead(folder: Path) -> None:
    """Milliseconds of `true`, directly and through each wrapper, tried in turn so that noise hits all alike."""
    environ = {**os.environ, "LEADSMAN_POOL_DIR": str(folder / "pool"), "HOME": str(folder)}
    likes: dict[str, Sequence[str]] = {
        "direct": ["true"],
        "python -I -S -c pass": [sys.executable, "-I", "-S", "-c", "pass"],
        "leadsman's wrapper": [*WRAPPER, "--", "true"],
        "leadsman pass run": [str(Path(sys.executable).with_name("leadsman")), "pass", "run", "--", "true"],
        "flock(1)": ["flock", str(folder / "lock"), "true"],
        "sem (GNU parallel)": ["sem", "--fg", "--id", "leadsman-bench", "true"],
    }
    present = {name: argv for name, argv in likes.items() if shutil.which(argv[0])}
    took: dict[str, list[float]] = {name: [] for name in present}
    for _ in range(25):
        for name, argv in present.items():
            start = time.perf_counter()
            subprocess.run(argv, env=environ, check=True)
            took[name].append(time.perf_counter() - start)
    direct = sorted(took["direct"])[12]
    print(f"{'starting `true`':24}{'median ms':>10}{'over direct':>13}")
    for name, times in took.items():
        median = sorted(times)[12]
        print(f"{name:24}{median * 1000:10.1f}{(median - direct) * 1000:+13.1f}")
    for name in likes.keys() - present.keys():
        print(f"{name:24}{'(not installed)':>23}")


def hand_over(folder: Path, hold: float) -> None:
    """8 waiters on 2 passes, each held for `hold` seconds: ours beside a bare pipe with two bytes in it."""
    seconds = max(3.0, 40 * hold)
    print(f"\n{WAITERS} waiters, {PASSES} passes held {hold * 1000:.0f} ms: used is beside the ideal of all the time")
    print(f"{'':24}{'used':>8}{'Jain':>8}{'p50 wait':>10}{'p99 wait':>10}{'worst':>8}{'hand-over':>11}  (ms)")
    pipe = os.pipe()
    os.write(pipe[1], b"+" * PASSES)
    pool = Pool(str(folder / f"pool-{hold}"), PASSES)
    Path(pool.path).mkdir()
    rivals: dict[str, Take] = {"bare pipe": lambda: _take_byte(pipe), "our pool": lambda: _take_pass(pool)}
    used = {}
    for name, take in rivals.items():
        shares = _round(take, hold, seconds)
        used[name] = shares.held / (PASSES * shares.took)
        gap = (PASSES * shares.took - shares.held) / sum(shares.turns)
        waits = (shares.wait(0.5), shares.wait(0.99), shares.wait(1.0), gap)
        row = "".join(f"{value * 1000:{width}.1f}" for value, width in zip(waits, (10, 10, 8, 11), strict=True))
        print(f"{name:24}{used[name]:8.3f}{shares.jain:8.4f}{row}")
    print(f"ratio of use, pool to pipe: {used['our pool'] / used['bare pipe']:.3f}")


def _take_byte(pipe: tuple[int, int]) -> Give:
    os.read(pipe[0], 1)
    return lambda: _put_byte(pipe)


def _put_byte(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"+")


def _take_pass(pool: Pool) -> Give:
    return pool.take(1, "bench", tell=print).release


def _round(take: Take, hold: float, seconds: float) -> Shares:
    """All waiters take, hold and give back for so long, each in a process of its own."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    start = time.monotonic() + 0.3
    workers = [
        context.Process(target=_work, args=(take, hold, start, start + seconds, results)) for _ in range(WAITERS)
    ]
    for worker in workers:
        worker.start()
    got = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    return Shares(
        [len(waits) for waits, _ in got], [w for waits, _ in got for w in waits], sum(h for _, h in got), seconds
    )


def _work(take: Take, hold: float, start: float, end: float, results: multiprocessing.SimpleQueue[object]) -> None:
    waits: list[float] = []
    held = 0.0
    time.sleep(max(0.0, start - time.monotonic()))
    while True:
        asked = time.monotonic()
        give = take()
        got = time.monotonic()
        if got >= end:
            give()
            break
        waits.append(got - asked)
        time.sleep(hold)
        held += min(time.monotonic(), end) - got
        give()
    results.put((waits, held))


if __name__ == "__main__":
    main()

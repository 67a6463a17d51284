"""From a signed delivery to the started command, split by step, beside `git worktree add` and a spawn by hand.

Both work on the same repository, in turns, in one run: what matters is the difference and the ratio.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from bot.cli.demo_world import Demo, Place, environment
from bot.rundir import read_json
from bot.timeline import marks
from gitops.git import Git

ROUNDS = int(os.environ.get("ROUNDS", "8"))
SIZES = (1_000, 10_000)
STEPS = ("claim", "prepare", "start")


class BenchDemo(Demo):
    """The demonstration's world with a repository of so many files, and a task that only ends."""

    def fill(self, files: int) -> None:
        """`files` files in a hundred folders, on the pull request's branch."""
        git = Git(self.place.repository)
        stream = [b"commit refs/heads/test-adding\ncommitter a <a@localhost> 1 +0000\ndata 1\nx\n"]
        stream += [
            b"M 100644 inline d%d/f%d.txt\ndata 200\n%s\n" % (n % 100, n, (b"%d line\n" % n).ljust(200, b"x"))
            for n in range(files)
        ]
        git.run("fast-import", "--quiet", "--force", stdin=b"".join(stream), timeout=120)


def measure(files: int) -> None:
    root = Path(tempfile.mkdtemp(prefix="leadsman-bench-"))
    demo = BenchDemo(Place(root), environment(root))
    with demo.place.config.open("a") as config:
        config.write('\n[[task]]\nname = "nothing"\nrun = ["true"]\n')
    demo.fill(files)
    address = demo.serve()
    bare, ours = [], []
    try:
        one(demo, address)  # the mirror is made, and everything is imported
        for n in range(ROUNDS):
            bare.append(by_hand(demo, root, n))
            ours.append(one(demo, address))
    finally:
        demo.close()
        shutil.rmtree(root, ignore_errors=True)
    show(files, bare, ours)


def by_hand(demo: Demo, root: Path, n: int) -> float:
    """Milliseconds of `git worktree add` and a spawned command that has started."""
    path = root / "by-hand" / str(n)
    began = time.perf_counter()
    argv = ["git", "-C", str(demo.place.repository), "worktree", "add", "-q", "--detach", str(path), "test-adding"]
    subprocess.run(argv, check=True)
    subprocess.Popen(["true"], cwd=path, start_new_session=True).wait()
    took = (time.perf_counter() - began) * 1000
    subprocess.run([*argv[:3], "worktree", "remove", "--force", str(path)], check=True)
    return took


def one(demo: Demo, address: str) -> Mapping[str, float]:
    """Milliseconds from the delivery to each step's end, and to the command's start."""
    before = demo.run_of("nothing")
    _, posted = demo.comment(address, "/run nothing")
    run_id = demo.seen("the run", lambda: fresh if (fresh := demo.run_of("nothing")) != before else None)
    demo.seen("its end", lambda: True if demo.phase(run_id) == "closed" else None)
    folder = demo.place.run(run_id)
    seen = {mark.step: (mark.at - posted) * 1000 for mark in marks(folder)}
    intent = json.loads((folder / "intent.json").read_text())
    status = read_json(folder / "status.json") or {}
    return {
        "decided": (datetime.fromisoformat(intent["at"]).timestamp() - posted) * 1000,
        **{step: seen[step] for step in STEPS},
        "started": (datetime.fromisoformat(status["started"]).timestamp() - posted) * 1000,
    }


def show(files: int, bare: list[float], ours: list[Mapping[str, float]]) -> None:
    middle = statistics.median
    started = middle(one["started"] for one in ours)
    hand = middle(bare)
    print(f"{files:>6} files  by hand (worktree add + spawn) {hand:7.0f} ms")
    last = 0.0
    for name in ("decided", "claim", "prepare", "started"):
        at = middle(one[name] for one in ours)
        print(f"              {name:<8} at {at:7.0f} ms  (+{at - last:.0f})")
        last = at
    share = started - hand
    ratio = f"{started / hand:.2f} x by hand"
    print(f"              delivery -> started {started:.0f} ms, {ratio}; our own share {share:.0f} ms")


def main() -> int:
    print(f"median of {ROUNDS} rounds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    for files in SIZES:
        measure(files)
    return 0


if __name__ == "__main__":
    sys.exit(main())

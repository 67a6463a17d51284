"""What the fleet costs: `python -m tests.bench.fleet`. Read the ratios, not the figures: a busy host doubles them.

Prints a slot taken and given back, an offer while thousands wait, and worktrees of 1,000 to 50,000 files, made, taken
from a spare and given back, beside bare git.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bot.home import make
from bot.model import Lease
from bot.store import runs
from gitops import trash, worktree
from gitops.credentials import Remote
from gitops.git import Git
from gitops.mirror import Mirror
from tests.bot.test_slots import Harness, intent

FILES = (1_000, 10_000, 50_000)
PENDING = (100, 1_000, 10_000)
ROUNDS = 5


def timed(what: str, call: Callable[[int], object], *, times: int = ROUNDS) -> float:
    """Prints the median in milliseconds; `call` gets the round."""
    took = []
    for number in range(times):
        began = time.perf_counter()
        call(number)
        took.append((time.perf_counter() - began) * 1000)
    median = statistics.median(took)
    print(f"  {what:<52} median {median:9.2f} ms   best {min(took):9.2f}   worst {max(took):9.2f}", flush=True)
    return median


def slots(folder: Path) -> None:
    print("a slot, in a transaction that is on disk")
    host = Harness(make(folder / "home"))
    host.ask("acme/shop", 200)
    ids = [intent(n, "acme/shop").run_id for n in range(1, 201)]

    def take(number: int) -> None:
        with host.store.write() as connection:
            runs.take_slot(connection, Lease("wt-1", "x", "here"), ids[number], "r", 0.0)

    def give_back(number: int) -> None:
        with host.store.write() as connection:
            assert runs.give_back(connection, Lease("wt-1", "x", "here"))

    timed("take and give back", lambda number: (take(number), give_back(number)), times=200)
    host.store.close()


def offers(folder: Path) -> None:
    print("an offer while so many wait, none of which may start, and one that gives a slot to the last of them")
    for count in PENDING:
        host = Harness(make(folder / f"home-{count}"))
        host.ask("acme/busy")
        host.slots.offer()
        host.ask("acme/busy", count)
        host.slots.offer()  # the reasons are written down once
        timed(f"{count:>6} wait, nobody may start", lambda _: host.slots.offer())  # noqa: B023  # called at once
        host.ask("acme/free")
        timed(f"{count:>6} wait, the last one may", lambda _: host.slots.offer(), times=1)  # noqa: B023
        host.store.close()


def worktrees(folder: Path, files: int) -> None:
    print(f"a worktree of {files:,} files")
    mirror, first, second = repository(folder, files)
    bare = [Path(f"{folder}/bare-{n}") for n in range(ROUNDS)]
    ours = [folder / "trees" / f"run-{n}" for n in range(2 * ROUNDS)]
    spares = [folder / "spares" / f"spare-{n}" for n in range(ROUNDS)]

    def git(*argv: object) -> None:
        subprocess.run(["git", "-C", mirror.path, *map(str, argv)], check=True, stderr=subprocess.DEVNULL)

    plain = timed("git worktree add", lambda n: git("worktree", "add", "-q", "--detach", bare[n], second))
    made = timed("add", lambda n: worktree.add(mirror, ours[n], branch=f"leadsman/{n}", sha=second))
    for spare in spares:
        worktree.refresh(mirror, spare, first)
    taken = timed(
        "add, from a spare ten commits behind",
        lambda n: worktree.add(mirror, ours[ROUNDS + n], branch=f"leadsman/s{n}", sha=second, spare=spares[n]),
    )
    gone = timed("git worktree remove --force", lambda n: git("worktree", "remove", "--force", bare[n]))
    given = timed("give back", lambda n: worktree.drop(mirror, ours[n]))
    timed("... and its deletion, later and behind", lambda _: trash.empty(mirror.trash), times=1)
    print(f"  add {made / plain:.2f}, from a spare {taken / plain:.2f} of bare git; give back {given / gone:.3f} of it")


def repository(folder: Path, files: int) -> tuple[Mirror, str, str]:
    """A mirror, a commit in it, and one ten commits later."""
    source = folder / "source"
    source.mkdir(parents=True)
    git = Git(source / ".git", work_tree=source)
    subprocess.run(["git", "init", "-q", "-b", "main", source], check=True)
    for number in range(files):
        path = source / f"d{number % 100}" / f"f{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 40)
    shas = []
    who = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
    for number in range(11):
        for changed in range(10):
            (source / f"d{changed}" / f"f{changed}.txt").write_text(f"{number} {changed}\n")
        subprocess.run(["git", "-C", source, "add", "-A"], check=True)
        subprocess.run(["git", "-C", source, *who, "commit", "-qm", f"c{number}"], check=True)
        shas.append(git.run("rev-parse", "HEAD").text)
    mirror = Mirror(folder / "mirror.git", Remote(str(source)))
    mirror.ensure()
    mirror.refresh()
    return mirror, shas[0], shas[-1]


def main(sizes: tuple[int, ...]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="leadsman-bench-"))
    try:
        slots(folder / "slots")
        offers(folder / "offers")
        for files in sizes:
            worktrees(folder / f"files-{files}", files)
            shutil.rmtree(folder / f"files-{files}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or FILES)

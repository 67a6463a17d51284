"""What evidence costs: `python -m tests.bench.reports [GIGABYTES]`. Read the ratios, not the figures.

Prints how long a report of a thousand commands takes, what a large log costs in time and memory beside a plain
SHA-256 of it, how long a check of a report takes, and how many pushes a commit needs where eight publish at once.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from bot.logs import digest_of, settle, tail
from bot.masking import Masking
from bot.model import Published, Sha
from bot.recheck import Finding, of_commit, of_logs, of_signature
from bot.rendering import render
from bot.secret import Secret
from bot.signing import envelope, own_key
from bot.statement import opened, read, signed
from gitops.credentials import Remote
from gitops.mirror import Mirror
from tests.bot.reporting import ran, report
from tests.gitops.folk import Folder, race, start_actor

BRANCH = "refs/heads/leadsman/publish"
WRITERS, EACH = 8, 25

LINE = b"tests/bot/test_it.py::test_that PASSED [ 12%] see https://example.org/a/b, task-x of github, in 0.01 s\n"


def main() -> None:
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with tempfile.TemporaryDirectory() as folder:
        thousand_commands(Path(folder))
        large_log(Path(folder), int(gigabytes * (1 << 30)))
        recheck(Path(folder))
        publish(Path(folder))


def verdicts(findings: Iterable[Finding]) -> None:
    """Makes sure that there was something to look at."""
    if "could not check" in {finding.verdict for finding in findings}:
        raise AssertionError("nothing was checked")


def took(what: str, work: Callable[[], object], times: int = 1) -> float:
    began = time.monotonic()
    for _ in range(times):
        work()
    seconds = (time.monotonic() - began) / times
    print(f"  {what:<44} {seconds * 1000:10.1f} ms")
    return seconds


def thousand_commands(folder: Path) -> None:
    print("a report of 1,000 commands")
    key = own_key(folder)
    said = report(ran=tuple(ran(what=f"command {n}", argv=("make", f"target-{n}")) for n in range(1000)))
    envelope = signed(said, key, Masking())
    took("gathered as a statement and signed", lambda: signed(said, key, Masking()))
    took("read again", lambda: read(envelope))
    took("rendered into a comment", lambda: render(said))
    took("rendered whole", lambda: render(said, budget=None))
    print(f"  {len(envelope):,} bytes signed, {len(render(said).encode()):,} bytes in the comment")


def large_log(folder: Path, size: int) -> None:
    print(f"a log of {size / (1 << 30):g} GiB")
    log = folder / "worker.log"
    with log.open("wb") as file:
        for _ in range(size // (len(LINE) * 10_000)):
            file.write(LINE * 10_000)
        file.write(b"===== 12 passed in 3.21s =====\n")
    plain = took("SHA-256 alone", lambda: digest_of(log))
    results: multiprocessing.SimpleQueue[int] = multiprocessing.SimpleQueue()
    worker = multiprocessing.Process(target=_settle, args=(log, results))
    before = time.monotonic()
    worker.start()
    memory = results.get()
    worker.join()
    seconds = time.monotonic() - before
    print(
        f"  {'masked, digested, counted':<44} {seconds * 1000:10.1f} ms, {seconds / plain:.1f} x, {memory} MiB at most"
    )
    took("its end", lambda: tail(log, 4000), 100)
    log.unlink()


def _settle(log: Path, results: multiprocessing.SimpleQueue[int]) -> None:
    settle(log, Masking([Secret("hunter2-hunter2")]), exit_code=0)
    results.put(getrusage(RUSAGE_SELF).ru_maxrss // 1024)


def recheck(folder: Path) -> None:
    print("a report checked again, without running anything")
    origin, base, tip = _origin(folder / "checked")
    mirror = Mirror(folder / "mirror.git", Remote(str(origin.path)))
    mirror.ensure()
    key = own_key(folder)
    (folder / "worker.log").write_bytes(LINE * 1000)
    digest = hashlib.sha256(LINE * 1000).hexdigest()
    said = report(
        base=base,
        changes_since=base,
        tip=tip,
        ref="refs/heads/main",
        outcome=Published(Sha(tip), "refs/heads/main"),
        ran=(ran(log_sha256=digest),),
        verdicts=(),
    )
    found = envelope(signed(said, key, Masking()))
    statement = opened(found)
    took("signature", lambda: of_signature(found, key.public))
    took("ref and figures, by git", lambda: verdicts(of_commit(statement, mirror)))
    took("logs", lambda: verdicts(of_logs(statement, folder)))


def publish(folder: Path) -> None:
    print(f"{WRITERS} writers publish {EACH} times each to one branch")
    origin, _, main_tip = _origin(folder / "shared")
    actors = []
    for number in range(WRITERS):
        mirror = Mirror(folder / f"host{number}" / "shop.git", Remote(str(origin.path)))
        mirror.ensure()
        mirror.refresh()
        spec = {"base": main_tip, "ref": BRANCH, "name": f"bot{number}", "count": EACH}
        actors.append(start_actor("publish_many", mirror, **spec))
    began = time.monotonic()
    outcomes = race(actors)
    seconds = time.monotonic() - began
    for actor in actors:
        actor.close()
    landed = sum(len(shas) for shas, _ in outcomes)  # type: ignore[misc]
    pushes = sum(count for _, count in outcomes)  # type: ignore[misc]
    each = f"{seconds / landed * 1000:.0f} ms and {pushes / landed:.2f} pushes each"
    print(f"  {landed} commits landed in {seconds:.1f} s: {each}")


def _origin(place: Path) -> tuple[Folder, str, str]:
    """A repository with two commits."""
    place.mkdir(parents=True)
    origin, work = Folder(place / "origin.git"), Folder(place / "work")
    subprocess.run(["git", "init", "-q", "--bare", "--initial-branch=main", str(origin.path)], check=True)
    subprocess.run(["git", "clone", "-q", str(origin.path), str(work.path)], check=True, stderr=subprocess.DEVNULL)
    base = work.commit({"README.md": "one\n"})
    tip = work.commit({"src/app.py": "two\n" * 12})
    work.git("push", "-q", "origin", "HEAD:main")
    return origin, base, tip


if __name__ == "__main__":
    os.environ["GIT_CONFIG_GLOBAL"] = "/dev/null"
    main()

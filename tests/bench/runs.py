"""What a run costs: `python -m tests.bench.runs [RUNS]`. Read the ratios, not the figures: a busy host doubles them.

Prints how long starts and the commands that follow a run take, and the memory of many supervisors at once.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bot.launchers import start
from bot.liveness import end, reading
from bot.rundir import RunDir, all_runs
from tests.bot.harbour import Harbour

LEADSMAN = Path(sys.executable).with_name("leadsman")


def timed(what: str, call: Callable[[], object], times: int = 20) -> None:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        took.append((time.perf_counter() - began) * 1000)
    print(f"{what:<46} median {statistics.median(took):6.1f} ms   best {min(took):6.1f}   worst {max(took):6.1f}")


def memory(pid: int) -> tuple[int, int]:
    """Proportional and private memory of a process, in KiB."""
    facts = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    kib = {name: int(value.split()[0]) for name, value in facts.items()}
    return kib["Pss"], kib["Private_Clean"] + kib["Private_Dirty"]


def cli(harbour: Harbour, *argv: str) -> Callable[[], object]:
    environ = {**os.environ, "LEADSMAN_HOME": str(harbour.folder / "home"), "TMUX_TMPDIR": str(harbour.folder)}
    return lambda: subprocess.run([LEADSMAN, *argv], env=environ, check=True, stdout=subprocess.DEVNULL)


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        harbour = Harbour(Path(folder))
        timed("python -c pass", lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
        bare(harbour.folder)
        run = harbour.start("sleep", "1000")
        made = iter([harbour.make("sleep", "1000") for _ in range(20)])
        timed("start of a run, until its command runs", lambda: start(next(made).path, "setsid"))
        timed("a reading of a live run", lambda: reading(run.path))
        timed("leadsman handoff --driver setsid", cli(harbour, "handoff", "--driver", "setsid", "--", "sleep", "1000"))
        timed("leadsman handoff --driver tmux", cli(harbour, "handoff", "--driver", "tmux", "--", "sleep", "1000"))
        timed("leadsman status", cli(harbour, "status", run.path.name))
        for found in all_runs(harbour.store):
            end(found.path)
        many(harbour, count)


def bare(folder: Path) -> None:
    """What others do to let a command outlive them, without any record, lock or limit."""
    started = []
    spawn = ["sleep", "1000"]
    timed("bare spawn in a session of its own", lambda: started.append(subprocess.Popen(spawn, start_new_session=True)))
    for process in started:
        process.kill()
        process.wait()
    if shutil.which("tmux"):
        tmux = ["tmux", "-S", str(folder / "bare-tmux")]
        timed("bare tmux new-session -d", lambda: subprocess.run([*tmux, "new-session", "-d", *spawn], check=True))
        subprocess.run([*tmux, "kill-server"], check=True)


def many(harbour: Harbour, count: int) -> None:
    began = time.perf_counter()
    runs: list[RunDir] = [harbour.start("sleep", "1000") for _ in range(count)]
    print(f"{count} runs started one after another in {time.perf_counter() - began:.1f} s")
    pss, private = zip(*(memory(reading(run.path)["supervisor_pid"]) for run in runs), strict=True)
    each = f"{sum(pss) / count / 1024:.1f} MiB each, {sum(private) / count / 1024:.1f} of them its own"
    print(f"{count} supervisors: {sum(pss) / 1024:.0f} MiB, {each}")
    used = ticks(runs)
    time.sleep(10)
    print(f"{count} idle supervisors: {(ticks(runs) - used) / os.sysconf('SC_CLK_TCK') / 10 * 100:.1f} % of a CPU")
    began = time.perf_counter()
    for run in runs:
        end(run.path)
    print(f"{count} runs cancelled one after another in {time.perf_counter() - began:.1f} s")


def ticks(runs: list[RunDir]) -> int:
    """CPU time of the supervisors, in clock ticks."""
    stats = (Path(f"/proc/{reading(run.path)['supervisor_pid']}/stat").read_text().split() for run in runs)
    return sum(int(stat[13]) + int(stat[14]) for stat in stats)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)

"""`leadsman load`: records the host's load, and says what it was and whether runs converge."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot import home, load
from bot.errors import UsageError

if TYPE_CHECKING:
    from bot.convergence import JudgedRun

USAGE = """\
Usage: leadsman load record [--out F]
       leadsman load watch [--interval S] [--out F]
       leadsman load report [--samples F] [--since EPOCH] [--json] [--plot F.svg] [--runs-db F | --runs F.jsonl]

record appends one sample to F (default: load.tsv in the home), watch one each S seconds (default 60). The server
records by itself once a minute.

report says whether the load stayed within 2 x CPUs (p95), and whether the first ten runs that reached review since
EPOCH (seconds since 1970) all ended well within two fix rounds. The runs are those of this home's store, of another
one's file, or lines as `leadsman runs --jsonl` prints them.

  leadsman load watch --interval 10 --out /tmp/load.tsv
  leadsman load report --since 1767225600 --plot load.svg

Exit codes: 0; 1 where samples or runs can't be read (what can be is printed); 2 usage.
"""


def main(argv: list[str]) -> int:
    """Answers the exit code."""
    words = [word for word in argv if word != "--json"]
    if words[:1] == ["--config"]:  # it was given to `leadsman`
        words = [*words[2:], *words[:2]]
    if any(word in ("-h", "--help") for word in words):
        sys.stdout.write(USAGE)
        return 0
    match words[:1]:
        case ["record"]:
            return _record(_out(_options(words[1:], "--out", "--config")))
        case ["watch"]:
            options = _options(words[1:], "--interval", "--out", "--config")
            return _watch(_out(options), _seconds("--interval", options.get("--interval", "60"), above=0))
        case ["report"]:
            known = ("--samples", "--since", "--plot", "--runs-db", "--runs", "--config")
            return _report(_options(words[1:], *known), as_json="--json" in argv)
    raise UsageError("`leadsman load` knows `record`, `watch` and `report`. Try `leadsman load --help`.")


def _options(words: list[str], *known: str) -> dict[str, str]:
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, has_value, value = word.partition("=")
        if name not in known:
            from bot.nearest import did_you_mean

            raise UsageError(
                f"There is no option {name} here{did_you_mean(name, known) or '.'} Known: {', '.join(known)}."
            )
        found[name] = value if has_value else next(rest, "")
        if not found[name]:
            raise UsageError(f"{name} needs a value. `leadsman load --help` shows which.")
    return found


def _seconds(name: str, text: str, *, above: float = -1) -> float:
    try:
        seconds = float(text) if text.isascii() else above
    except ValueError:
        seconds = above
    if not above < seconds < 1e12:
        raise UsageError(f"{name} takes a number of seconds{' above 0' if above == 0 else ''}, not {text!r}.")
    return seconds


def _out(options: dict[str, str]) -> Path:
    if "--out" in options:
        return Path(options["--out"])
    return home.make(home.resolve(None, os.environ)) / load.FILE


def _record(out: Path) -> int:
    try:
        load.record(out, load.sample(os.environ, time.time()))
    except OSError as problem:
        print(f"{out} can't be written: {problem.strerror}.", file=sys.stderr)
        return 1
    return 0


def _watch(out: Path, interval: float) -> int:
    """Records until a signal says that it is enough."""
    enough = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    signal.pthread_sigmask(signal.SIG_BLOCK, enough)
    due = time.monotonic()
    while True:
        if (code := _record(out)) != 0:
            return code
        due = max(due + interval, time.monotonic())
        if signal.sigtimedwait(enough, max(0.0, due - time.monotonic())) is not None:
            return 0


def _report(options: dict[str, str], *, as_json: bool) -> int:
    if "--runs" in options and "--runs-db" in options:
        raise UsageError("--runs and --runs-db are two places for one thing. Name one of them.")
    since = _seconds("--since", options.get("--since", "0"))
    house = home.resolve(None, os.environ)
    trouble: list[str] = []
    samples = _samples(Path(options["--samples"]) if "--samples" in options else house / load.FILE, since, trouble)
    runs, convergence = _convergence(options, since, house, trouble)
    report = {**load.summary(samples), "convergence": convergence}
    if "--plot" in options:
        from bot.loadplot import plot

        try:
            Path(options["--plot"]).write_text(plot(samples.samples, runs), encoding="utf-8")
        except OSError as problem:
            trouble.append(f"{options['--plot']} can't be written: {problem.strerror}.")
    if as_json:
        import json

        print(json.dumps(report))
    else:
        print("\n".join(_told(report)))
    for line in trouble:
        print(line, file=sys.stderr)
    return 1 if trouble else 0


def _samples(path: Path, since: float, trouble: list[str]) -> load.Samples:
    try:
        return load.read(path, since)
    except OSError as problem:
        trouble.append(f"{path} can't be read: {problem.strerror}. `leadsman load record` writes samples.")
        return load.Samples((), 0)


def _convergence(
    options: dict[str, str], since: float, house: Path, trouble: list[str]
) -> tuple[list[JudgedRun], dict[str, Any]]:
    """The runs that could be read, and the verdict on them: a frozen one, where there is one."""
    from bot.convergence import Convergence, UnreadableRuns, Verdicts, judge

    source = str(Path(options["--runs-db"]).resolve()) if "--runs-db" in options else ""
    verdicts = None if "--runs" in options else Verdicts(house, source)
    kept: dict[str, Any] | None = None
    runs: list[JudgedRun] = []
    verdict = Convergence((), None)
    try:
        kept = verdicts.read(since) if verdicts is not None else None
        runs = _runs(options, house)
        verdict = judge(runs, since)
        if kept is None and verdict.converged is not None and verdicts is not None:
            home.make(house)
            verdicts.freeze(since, verdict)
    except UnreadableRuns as problem:
        trouble.append(str(problem))
        runs = list(problem.readable)
        verdict = judge(runs, since)._replace(converged=None)  # what can't be read may belong to them
    except OSError as problem:
        trouble.append(str(problem))
    return runs, kept or verdict.as_json()


def _runs(options: dict[str, str], house: Path) -> list[JudgedRun]:
    """The runs to judge; none where there is no store yet. Raises UnreadableRuns."""
    if "--runs" in options:
        from bot.convergence import runs_of_file

        return runs_of_file(Path(options["--runs"]))
    from bot.runlist import looking_at, own_store, runs_of_home, runs_of_store

    if "--runs-db" not in options:
        return runs_of_home(own_store(house, options.get("--config")), house / "runs")
    store = Path(options["--runs-db"])
    if not store.exists():
        return []
    with looking_at(store) as connection:
        return runs_of_store(connection, store.parent / "runs")


def _told(report: dict[str, Any]) -> list[str]:
    """The report for people."""
    lines = ["Load: no samples in this window."]
    if report["samples"]:
        first, last = (time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(report[name])) for name in ("first", "last"))
        word = "within" if report["load_within_2x_cpus"] else "ABOVE"
        lines = [
            f"Load: {word} 2 x {report['cpus']} CPUs (p95 {report['load1_p95']:.2f}).",
            f"  {_counted(report['samples'], 'sample')}, {first} to {last} UTC",
            f"  p50 {report['load1_p50']:.2f}, max {report['load1_max']:.2f}",
            f"  above 2 x CPUs in {report['share_above_2x_cpus']:.2%} of the samples",
        ]
        if report["pool_held_max"] is not None:
            lines.append(f"  passes held: {report['pool_held_mean']:.2f} on average, {report['pool_held_max']} at most")
    if report["bad_lines"]:
        lines.append(f"  {_counted(report['bad_lines'], 'line')} left out: not a sample")
    return [*lines, *_convergence_told(report["convergence"])]


def _convergence_told(found: dict[str, Any]) -> list[str]:
    word = {None: "pending", True: "yes, all ten", False: "NO"}[found["converged_within_2_fix_rounds"]]
    lines = [
        f"Converged within 2 fix rounds: {word} ({found['runs_considered']} of {found['runs_wanted']} reached review)."
    ]
    for run in found["cohort"]:
        mark = {None: "?", True: "+", False: "-"}[run["converged"]]
        late = f", {run['timed_out']}" if run["timed_out"] else ""
        lines.append(f"  {mark} {run['run']}: {run['status']}, {_counted(run['fix_rounds'], 'fix round')}{late}")
    return lines


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

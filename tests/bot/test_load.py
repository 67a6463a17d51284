"""`leadsman load`: what is recorded, what a window says, and how that looks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from bot.convergence import JudgedRun
from bot.load import FILE, Sample, parse, percentile, read, record, summary
from bot.loadplot import plot
from tests.bot.passes_host import SIZE, Host, release, until
from tests.stories.nursery import nursery

ARGV = [sys.executable, "-c", "from bot.cli import main; raise SystemExit(main())", "load"]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LEADSMAN_HOME": str(tmp_path / "home"),
        "LEADSMAN_POOL_DIR": str(tmp_path / "pool"),
    }


def run(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    ended = nursery().ran(["load", *words], environ, Path.cwd())
    return subprocess.CompletedProcess(words, *ended)


def report(environ: dict[str, str], *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(environ, "report", "--json", *words).stdout)
    return found


def lines(path: Path, *loads: float, cpus: int = 4, held: str = "4\t1", first: int = 1000) -> None:
    path.write_text(
        "".join(f"{first + 60 * n}\t{load:.2f}\t0.10\t0.20\t{cpus}\t{held}\n" for n, load in enumerate(loads))
    )


def test_record_appends_one_line_of_seven_fields(environ: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "load.tsv"
    before = int(time.time())
    for _ in range(2):
        ended = run(environ, "record", "--out", str(out))
        assert (0, "", "") == (ended.returncode, ended.stdout, ended.stderr)
    first, second = (line.split("\t") for line in out.read_text().splitlines())
    assert 7 == len(first) == len(second)
    assert before <= int(first[0]) <= int(second[0]) <= time.time()
    assert all(field == f"{float(field):.2f}" for field in first[1:4])
    assert [str(os.sysconf("SC_NPROCESSORS_ONLN")), str(SIZE), "0"] == first[4:]
    assert 0o600 == out.stat().st_mode & 0o777


def test_the_samples_are_in_the_home_unless_said_otherwise(environ: dict[str, str], tmp_path: Path) -> None:
    assert 0 == run(environ, "record").returncode
    assert 1 == report(environ)["samples"]
    assert (tmp_path / "home" / FILE).is_file()


def test_held_passes_are_counted_and_an_unavailable_pool_leaves_the_fields_empty(tmp_path: Path) -> None:
    host = Host(tmp_path)
    try:
        holder = host.held("--passes=1")
        out = tmp_path / "load.tsv"
        run(host.environ, "record", f"--out={out}")
        release(holder)
        run({**host.environ, "LEADSMAN_POOL_DIR": "/dev/null"}, "record", f"--out={out}")
        held, unavailable = out.read_text().splitlines()
        assert held.endswith(f"\t{SIZE}\t1")
        assert unavailable.endswith("\t\t")
    finally:
        host.end_all()


def test_watch_records_again_and_again_until_it_is_told_to_stop(environ: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "load.tsv"
    for number in (signal.SIGINT, signal.SIGTERM):
        out.unlink(missing_ok=True)
        watch = subprocess.Popen([*ARGV, "watch", "--interval", "0.02", "--out", str(out)], env=environ)
        until(lambda: out.exists() and out.read_bytes().count(b"\n") >= 3)
        watch.send_signal(number)
        assert 0 == watch.wait(60)
    assert 0 == read(out).bad_lines


@pytest.mark.parametrize("interval", ["0", "-1", "0.0", "nan", "inf", "soon", "1e400"])
def test_an_interval_that_is_none_is_usage(environ: dict[str, str], tmp_path: Path, interval: str) -> None:
    assert 2 == run(environ, "watch", f"--interval={interval}", "--out", str(tmp_path / "out")).returncode
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["record", "extra"],
        ["record", "--out"],
        ["report", "--since", "yesterday"],
        ["report", "--since=-1"],
        ["report", "--runs", "a", "--runs-db", "b"],
        ["report", "--sinc", "1"],
    ],
)
def test_wrong_words_are_usage(environ: dict[str, str], words: list[str]) -> None:
    ended = run(environ, *words)
    assert (2, "") == (ended.returncode, ended.stdout)
    assert ended.stderr


def test_a_report_has_exactly_these_keys_and_figures(environ: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "samples"
    lines(path, 1, 2, 9, 3)
    path.write_text(path.read_text() + "1240\t8.00\t0.1\t0.1\t4\t4\t4\n1300\t8.00\t0.1\t0.1\t4\t\t\n")
    found = report(environ, "--samples", str(path))
    assert {
        "samples": 6,
        "first": 1000,
        "last": 1300,
        "cpus": 4,
        "load1_p50": 3.0,
        "load1_p95": 9.0,
        "load1_max": 9.0,
        "share_above_2x_cpus": 0.1667,
        "pool_held_max": 4,
        "pool_held_mean": 1.6,
        "load_within_2x_cpus": False,
        "bad_lines": 0,
    } == {key: value for key, value in found.items() if key != "convergence"}
    assert 1 == report(environ, "--samples", str(path), "--since", "1300")["samples"]
    assert 2 == report(environ, f"--samples={path}", "--since=1240")["samples"]


@pytest.mark.parametrize(
    ("expected", "count", "share"), [(0, 1, 0.95), (1, 2, 0.95), (0, 2, 0.5), (2, 4, 0.5), (18, 20, 0.95), (2, 6, 0.5)]
)
def test_a_percentile_is_the_rank_that_python_rounds_to(expected: int, count: int, share: float) -> None:
    assert expected == percentile(list(range(count)), share)


@pytest.mark.parametrize(("verdict", "load"), [(True, 7.99), (True, 8.0), (False, 8.01)])
def test_twice_the_cpus_is_still_within(tmp_path: Path, verdict: bool, load: float) -> None:
    lines(tmp_path / "samples", load)
    assert verdict is summary(read(tmp_path / "samples"))["load_within_2x_cpus"]


def test_an_empty_window_has_no_verdict(environ: dict[str, str], tmp_path: Path) -> None:
    lines(tmp_path / "samples", 1.0)
    found = report(environ, "--samples", str(tmp_path / "samples"), "--since", "999999999999")
    assert (0, None) == (found["samples"], found["load_within_2x_cpus"])
    ended = run(environ, "report", "--samples", str(tmp_path / "samples"), "--since", "999999999999")
    assert (0, True) == (ended.returncode, ended.stdout.startswith("Load: no samples"))


BAD_LINES = [
    "",
    "1000",
    "1000\t1.00\t1.00\t1.00\t4\t4",
    "1000\t1.00\t1.00\t1.00\t4\t4\t1\t",
    "1000\t1.00\t1.00\t1.00\t4\t4\t",
    "1000\t1.00\t1.00\t1.00\t4\t\t1",
    "1000\t1.00\t1.00\t1.00\t4\t4\t5",
    "1000\t1.00\t1.00\t1.00\t0\t\t",
    "1000\tnan\t1.00\t1.00\t4\t\t",
    "1000\tinf\t1.00\t1.00\t4\t\t",
    "1000\t-1.00\t1.00\t1.00\t4\t\t",
    " 1000\t1.00\t1.00\t1.00\t4\t\t",
    "1000\t1_0.00\t1.00\t1.00\t4\t\t",
    "\uff11000\t1.00\t1.00\t1.00\t4\t\t",
    "1000\t1.00\t1.00\t1.00\t4\t\t\r",
]


@pytest.mark.parametrize("line", BAD_LINES)
def test_what_is_no_sample_is_none(line: str) -> None:
    assert parse(line) is None


def test_bad_lines_are_skipped_and_counted(environ: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "samples"
    path.write_bytes("\n".join([*BAD_LINES, "1000\t1.00\t1.00\t1.00\t4\t\t", ""]).encode() + b"\xff\xfe\n")
    ended = run(environ, "report", "--json", "--samples", str(path))
    found = json.loads(ended.stdout)
    assert (0, 1, len(BAD_LINES) + 1) == (ended.returncode, found["samples"], found["bad_lines"])
    assert (None, None) == (found["pool_held_max"], found["pool_held_mean"])


def test_half_a_line_that_a_crash_left_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    path.write_text("1000\t1.00\t1.0")
    record(path, Sample(1060.0, 1.0, 1.0, 1.0, 4, None, None))
    assert ((1060.0,), 1) == (tuple(taken.at for taken in read(path).samples), read(path).bad_lines)


def test_many_writers_at_once_lose_no_line(environ: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "load.tsv"
    argv = [*ARGV, "watch", "--interval", "0.001", "--out", str(out)]
    writers = [subprocess.Popen(argv, env=environ) for _ in range(3)]
    until(lambda: out.exists() and out.read_bytes().count(b"\n") > 200, 60)
    for writer in writers:
        writer.terminate()
        assert 0 == writer.wait(60)
    assert 0 == read(out).bad_lines


def test_samples_that_can_not_be_read_are_told_and_the_rest_is_printed(environ: dict[str, str], tmp_path: Path) -> None:
    for unreadable in (tmp_path / "missing", tmp_path):
        ended = run(environ, "report", "--json", "--samples", str(unreadable))
        assert (1, 0) == (ended.returncode, json.loads(ended.stdout)["samples"])
        assert str(unreadable) in ended.stderr
    ended = run(environ, "record", "--out", str(tmp_path))
    assert (1, True) == (ended.returncode, str(tmp_path) in ended.stderr)


def test_the_report_reads_well(environ: dict[str, str], tmp_path: Path) -> None:
    lines(tmp_path / "samples", 1.0, 9.0)
    ended = run(environ, "report", "--samples", str(tmp_path / "samples"))
    assert 0 == ended.returncode
    assert ended.stdout == (
        "Load: ABOVE 2 x 4 CPUs (p95 9.00).\n"
        "  2 samples, 1970-01-01 00:16:40 to 1970-01-01 00:17:40 UTC\n"
        "  p50 1.00, max 9.00\n"
        "  above 2 x CPUs in 50.00% of the samples\n"
        "  passes held: 1.00 on average, 1 at most\n"
        "Converged within 2 fix rounds: pending (0 of 10 reached review).\n"
    )


def test_the_plot_is_a_picture_of_the_same_figures(environ: dict[str, str], tmp_path: Path) -> None:
    lines(tmp_path / "samples", *[1.0] * 50, 9.0, *[2.0] * 49)
    picture = tmp_path / "load.svg"
    words = ["report", "--samples", str(tmp_path / "samples"), "--plot", str(picture)]
    assert 0 == run(environ, *words).returncode
    root = ET.parse(picture).getroot()
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert "Load within 2 x CPUs: p95 is 2.00, the bound 8" in texts
    assert {"2 x CPUs", "p95", "CPU passes held"} <= set(texts)
    (curve,) = (element for element in root.iter(f"{SVG}polyline"))
    heights = [float(point.split(",")[1]) for point in curve.attrib["points"].split()]
    (bound,) = (float(line.attrib["y1"]) for line in root.iter(f"{SVG}line") if line.attrib["class"] == "limit")
    assert 100 == len(heights)
    assert [50] == [n for n, height in enumerate(heights) if height < bound]  # above the bound is higher up: less
    assert 1 == run(environ, *words[:-1], str(tmp_path / "no" / "such")).returncode


def test_a_plot_keeps_peaks_gaps_and_runs_and_nothing_breaks_out_of_it() -> None:
    taken = [Sample(60.0 * n, 50.0 if n == 7000 else 1.0, 1, 1, 4, 4, 2) for n in range(10000) if not 3000 < n < 4000]
    hostile = '<script>&"'
    runs = [JudgedRun(hostile, 6000.0, "failed", ended_at=12000.0), JudgedRun("before", -5.0, "done", ended_at=-1.0)]
    root = ET.fromstring(plot(taken, runs))
    curves = [element.attrib["points"] for element in root.iter(f"{SVG}polyline")]
    assert 2 == len(curves)
    assert sum(len(curve.split()) for curve in curves) < 900
    highest = min(float(point.split(",")[1]) for curve in curves for point in curve.split())
    assert highest < 120
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert [f"{hostile} started 1970-01-01 01:40", f"{hostile} failed 1970-01-01 03:20"] == titles[1:]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_plot_of_next_to_nothing_is_still_a_picture(count: int) -> None:
    root = ET.fromstring(plot([Sample(60.0 * n, 0.0, 0, 0, 1, None, None) for n in range(count)], []))
    assert f"{SVG}svg" == root.tag


def test_a_plot_of_the_largest_figures_that_a_line_holds_is_one_too() -> None:
    most = parse("\t".join([*["9" * 12 + "." + "9" * 9] * 4, *["9" * 9] * 3]))
    assert most is not None
    root = ET.fromstring(plot([most._replace(at=0.0), most], []))
    assert len(list(root.iter(f"{SVG}line"))) < 50


def test_where_a_day_begins_on_the_axis_there_is_its_date() -> None:
    root = ET.fromstring(plot([Sample(1800.0 * n, 1, 1, 1, 4, 4, 2) for n in range(40, 56)], []))
    marks = [element.text for element in root.iter(f"{SVG}text") if element.attrib["class"] == "faint mid"]
    assert ["21:00", "22:00", "23:00", "02 Jan", "01:00", "02:00", "03:00"] == marks

"""The load as a picture: an SVG that stands alone, readable by day and by night."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import count, groupby, pairwise
from statistics import median

from bot.convergence import ENDED_WELL, JudgedRun
from bot.load import Sample, percentile

WIDTH, HEIGHT = 960, 430
LEFT, RIGHT = 56, 868
LOAD_TOP, LOAD_FOOT = 84, 270
POOL_TOP, POOL_FOOT = 300, 346
RUNS_AT, TIMES_AT = 374, 406

GAP = 5.0
"""Samples further apart than this many times the usual distance have nothing between them, and no line is drawn."""

DAY = 86400
STEPS = (60, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY)
"""Seconds between two marks on the axis of time."""

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 16px; font-weight: 600 }
.end { text-anchor: end }
.mid { text-anchor: middle }
.ground { fill: #ffffff }
.grid { stroke: #d8dee4 }
.faint { fill: #6e7781 }
.load { stroke: #0969da; stroke-width: 1.5; fill: none }
.under { fill: #0969da; fill-opacity: .12 }
.over { fill: #cf222e; fill-opacity: .25 }
.limit { stroke: #cf222e; stroke-width: 1.5 }
.p95 { stroke: #0969da; stroke-dasharray: 5 4 }
.pool { fill: #8250df; fill-opacity: .35 }
.full { stroke: #8250df; stroke-dasharray: 2 3 }
.start { fill: none; stroke: #6e7781; stroke-width: 1.3 }
.well, text.well { fill: #1a7f37 }
.badly, text.badly { fill: #cf222e }
text.load { fill: #0969da; stroke: none }
text.pool { fill: #8250df; fill-opacity: 1 }
text.limit { fill: #cf222e; stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.ground { fill: #0d1117 }
.grid { stroke: #30363d }
.faint { fill: #8d96a0 }
.start { stroke: #8d96a0 }
.load, .p95 { stroke: #4493f8 }
.under, text.load { fill: #4493f8 }
.limit { stroke: #f85149 }
.over, .badly, text.badly, text.limit { fill: #f85149 }
.full { stroke: #ab7df8 }
.pool, text.pool { fill: #ab7df8 }
.well, text.well { fill: #3fb950 }
}
"""


class _Scale:
    """From seconds and loads to places in the picture."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.first, self.last = samples[0].at, samples[-1].at
        self.span = max(60.0, self.last - self.first)
        self.limit = 2 * samples[-1].cpus
        self.top = 1.15 * max(self.limit, *(taken.load1 for taken in samples))
        self.passes = max((taken.pool_size or 0 for taken in samples), default=0)

    def x(self, at: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (at - self.first) / self.span, 1)

    def y(self, load: float) -> float:
        return round(LOAD_FOOT - (LOAD_FOOT - LOAD_TOP) * load / self.top, 1)

    def pool_y(self, held: int) -> float:
        return round(POOL_FOOT - (POOL_FOOT - POOL_TOP) * held / max(1, self.passes), 1)


def plot(samples: Sequence[Sample], runs: Iterable[JudgedRun]) -> str:
    """The picture of a window: load against 2 x CPUs, passes held, runs as marks. `samples` are in order of time."""
    if not samples:
        return _page([_text(LEFT, 52, "No samples in this window.", "title")], "No samples")
    scale = _Scale(samples)
    p95 = percentile(sorted(taken.load1 for taken in samples), 0.95)
    within = p95 <= scale.limit
    title = f"Load {'within' if within else 'above'} 2 x CPUs: p95 is {p95:.2f}, the bound {scale.limit}"
    fewer = list(_thinned(samples, scale))
    parts = [
        _text(LEFT, 32, title, f"title {'well' if within else 'badly'}"),
        _text(
            LEFT,
            54,
            f"{_moment(scale.first)} to {_moment(scale.last)} UTC, {len(samples)} sample{'s' * (len(samples) > 1)}",
            "faint",
        ),
        *_times(scale),
        *_loads(fewer, scale, p95),
        *_passes(fewer, scale),
        *_runs(runs, scale),
    ]
    return _page(parts, title)


def _thinned(samples: Sequence[Sample], scale: _Scale) -> Iterator[Sample]:
    """One sample a column of pixels at most, with the highest figures of it: a peak must not be lost."""
    for _, column in groupby(samples, key=lambda taken: int(scale.x(taken.at))):
        group = list(column)
        held = [taken.pool_held for taken in group if taken.pool_held is not None]
        yield group[0]._replace(load1=max(taken.load1 for taken in group), pool_held=max(held, default=None))


def _stretches(samples: Sequence[Sample]) -> Iterator[list[Sample]]:
    """The samples between gaps in the recording."""
    distances = [after.at - before.at for before, after in pairwise(samples)]
    longest = GAP * median(distances) if distances else 0.0
    stretch = [samples[0]]
    for taken, distance in zip(samples[1:], distances, strict=True):
        if distance > longest:
            yield stretch
            stretch = []
        stretch.append(taken)
    yield stretch


def _loads(samples: Sequence[Sample], scale: _Scale, p95: float) -> list[str]:
    bound = scale.y(scale.limit)
    parts = [
        f'<clipPath id="above"><rect x="0" y="0" width="{WIDTH}" height="{bound}"/></clipPath>',
        f'<clipPath id="below"><rect x="0" y="{bound}" width="{WIDTH}" height="{HEIGHT}"/></clipPath>',
        _text(LEFT, LOAD_TOP - 8, "load, 1 minute", "load"),
    ]
    for load in _marks(scale.top):
        parts.append(_line("grid", LEFT, scale.y(load), RIGHT, scale.y(load)))
        parts.append(_text(LEFT - 8, scale.y(load) + 4, f"{load:g}", "faint end"))
    for stretch in _stretches(samples):
        points = [(scale.x(taken.at), scale.y(taken.load1)) for taken in stretch]
        line = " ".join(f"{x},{y}" for x, y in points)
        area = f"{points[0][0]},{LOAD_FOOT} {line} {points[-1][0]},{LOAD_FOOT}"
        parts.append(f'<polygon class="under" clip-path="url(#below)" points="{area}"/>')
        parts.append(f'<polygon class="over" clip-path="url(#above)" points="{area}"/>')
        parts.append(f'<polyline class="load" points="{line}"/>')
        if len(points) == 1:
            parts.append(f'<circle class="load" cx="{points[0][0]}" cy="{points[0][1]}" r="2"/>')
    parts.append(_line("limit", LEFT, bound, RIGHT, bound))
    parts.append(_line("p95", LEFT, scale.y(p95), RIGHT, scale.y(p95)))
    label = scale.y(p95)
    if abs(label - bound) < 14:  # the two would be written over each other
        label = bound + (14 if p95 <= scale.limit else -14)
    parts.append(_text(RIGHT + 8, bound + 4, "2 x CPUs", "limit"))
    parts.append(_text(RIGHT + 8, label + 4, "p95", "load"))
    return parts


def _passes(samples: Sequence[Sample], scale: _Scale) -> list[str]:
    parts = [_text(LEFT, POOL_TOP - 8, "CPU passes held", "pool"), _line("grid", LEFT, POOL_FOOT, RIGHT, POOL_FOOT)]
    if not scale.passes:
        return [*parts, _text(LEFT, POOL_FOOT - 16, "the pool was unavailable", "faint")]
    parts.append(_line("full", LEFT, POOL_TOP, RIGHT, POOL_TOP))
    parts.append(_text(LEFT - 8, POOL_TOP + 4, str(scale.passes), "faint end"))
    parts.append(_text(LEFT - 8, POOL_FOOT + 4, "0", "faint end"))
    for stretch in _stretches(samples):
        corners = [f"{scale.x(stretch[0].at)},{POOL_FOOT}"]
        for taken, after in zip(stretch, [*stretch[1:], stretch[-1]], strict=True):
            height = scale.pool_y(taken.pool_held or 0)
            corners += [f"{scale.x(taken.at)},{height}", f"{scale.x(after.at)},{height}"]
        corners.append(f"{scale.x(stretch[-1].at)},{POOL_FOOT}")
        parts.append(f'<polygon class="pool" points="{" ".join(corners)}"/>')
    return parts


def _runs(runs: Iterable[JudgedRun], scale: _Scale) -> list[str]:
    parts = [_line("grid", LEFT, RUNS_AT, RIGHT, RUNS_AT), _text(LEFT - 8, RUNS_AT + 4, "runs", "faint end")]
    for run in runs:
        if scale.first <= run.created_at <= scale.last:
            x = scale.x(run.created_at)
            what = f"<title>{escape(run.run)} started {_moment(run.created_at)}</title>"
            parts.append(f'<path class="start" d="M{x - 4},{RUNS_AT - 14} l8,6 l-8,6 z">{what}</path>')
        if run.ended_at is not None and scale.first <= run.ended_at <= scale.last:
            kind = "well" if run.status in ENDED_WELL else "badly"
            what = f"<title>{escape(f'{run.run} {run.status}')} {_moment(run.ended_at)}</title>"
            parts.append(
                f'<circle class="{kind}" cx="{scale.x(run.ended_at)}" cy="{RUNS_AT + 8}" r="4">{what}</circle>'
            )
    return [*parts, *_legend()]


def _legend() -> list[str]:
    return [
        f'<path class="start" d="M{RIGHT - 214},26 l8,6 l-8,6 z"/>',
        _text(RIGHT - 201, 36, "a run starts", "faint"),
        f'<circle class="well" cx="{RIGHT - 116}" cy="32" r="4"/>',
        _text(RIGHT - 107, 36, "ends well", "faint"),
        f'<circle class="badly" cx="{RIGHT - 36}" cy="32" r="4"/>',
        _text(RIGHT - 27, 36, "ends otherwise", "faint"),
    ]


def _times(scale: _Scale) -> list[str]:
    step = next((step for step in STEPS if scale.span / step <= 9), STEPS[-1] * max(1, int(scale.span / STEPS[-1] / 8)))
    parts = []
    at = (scale.first // step + 1) * step
    while at <= scale.last:
        label = time.strftime("%H:%M" if at % DAY else "%d %b", time.gmtime(at))
        parts.append(_line("grid", scale.x(at), LOAD_TOP, scale.x(at), RUNS_AT))
        parts.append(_text(scale.x(at), TIMES_AT, label, "faint mid"))
        at += step
    return parts


def _marks(top: float) -> list[float]:
    """Four to eight round figures from 0 up."""
    step = next(m * 10.0**e for e in count(-2) for m in (1, 2, 5) if top / (m * 10.0**e) <= 7)
    return [step * n for n in range(int(top / step) + 1)]


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _page(parts: Iterable[str], title: str) -> str:
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    ground = f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", ground, *parts, "</svg>", ""])

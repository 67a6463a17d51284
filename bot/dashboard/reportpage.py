"""A report as a page that needs nothing beside it: no server, no script, no font, no image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from bot.ages import Ran, State
from bot.dashboard import prose
from bot.dashboard.views import Mood
from bot.rendering import facts, headline, result_of, tests_of
from bot.reports import Change, Report
from bot.statement import Statement, carried

_MOODS: dict[State, Mood] = {"green": "good", "red": "bad", "cancelled": "waiting", "unknown": "waiting"}
_GRADES: dict[str, Mood] = {"green": "good", "red": "bad", "neutral": "quiet"}


@dataclass(frozen=True, slots=True)
class Row:
    """A command that ran. `width` is its share of the longest one's time, in percent."""

    what: str
    argv: str
    mood: Mood
    result: Markup
    tests: Markup
    ran: Ran
    width: float


@dataclass(frozen=True, slots=True)
class FileRow:
    """A changed file. The widths are the shares of its lines in those of the file with the most, in percent."""

    change: Change
    path: str
    added: float
    deleted: float


def page(statement: Statement, envelope: str) -> str:
    """The page. It carries the signed envelope along, so that it can be checked like any other form of the report."""
    report = statement.report
    return _template().render(
        report=report,
        mood=_GRADES[report.grade],
        headline=prose.markdown(headline(report)),
        facts=[(name, prose.markdown(text)) for name, text in facts(report)],
        rows=_rows(report),
        files=_files(report),
        carried=Markup(carried(envelope)),  # noqa: S704 - base64 between our own words
    )


@cache
def _template() -> Template:
    surroundings = Environment(
        loader=PackageLoader("bot.dashboard"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    style = PackageLoader("bot.dashboard", "static").get_source(surroundings, "leadsman.css")[0]
    words = {"plain": prose.plain, "line": prose.line, "took": prose.took, "moment": prose.moment, "size": prose.size}
    surroundings.globals.update(words, style=Markup(style))  # noqa: S704 - our own file
    return surroundings.get_template("report.html")


def _rows(report: Report) -> list[Row]:
    longest = max((ran.seconds for ran in report.all_ran), default=0) or 1
    rows = [_row(ran.what, ran, longest) for ran in report.ran]
    for verdict in report.verdicts:
        passed = sum(1 for ran in verdict.tries if ran.passed)
        rows += [_row(f"check, {passed}/{len(verdict.tries)}", ran, longest) for ran in verdict.tries]
        if verdict.at_base is not None:
            what = "red at base" if verdict.was_red_at_base else "NOT red at base"
            rows.append(_row(f"check at base: {what}", verdict.at_base, longest, as_wanted=verdict.was_red_at_base))
    return rows


def _row(what: str, ran: Ran, longest: float, *, as_wanted: bool = False) -> Row:
    return Row(
        what=prose.line(what),
        argv=prose.line(" ".join(ran.argv)),
        mood="good" if as_wanted else _MOODS[ran.state],
        result=prose.markdown(result_of(ran)),
        tests=prose.markdown(tests_of(ran)),
        ran=ran,
        width=round(100 * ran.seconds / longest, 1),
    )


def _files(report: Report) -> list[FileRow]:
    most = max(((one.added or 0) + (one.deleted or 0) for one in report.changes), default=0) or 1
    return [
        FileRow(
            change=one,
            path=prose.line(one.path),
            added=round(100 * (one.added or 0) / most, 1),
            deleted=round(100 * (one.deleted or 0) / most, 1),
        )
        for one in report.changes
    ]

"""`leadsman report`: what a run's report says, in the form that is wanted."""

from __future__ import annotations

import click

from bot.cli.clicked import Setting, examples, json_option
from bot.cli.options import say
from bot.errors import UserError
from bot.rendering import render
from bot.rundir import find
from bot.signing import Malformed
from bot.statefiles import read_plain
from bot.statement import read


@click.command(epilog=examples("leadsman report 20260105-0900 --format html > report.html"))
@click.argument("run")
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "json", "html"]),
    help="md: for people, all of it (the default); json: the signed envelope; html: a page that needs nothing else.",
)
@json_option
@click.pass_obj
def command(setting: Setting, run: str, form: str | None, as_json: bool) -> None:
    """The report of a run. RUN is its id, or the start of it."""
    if as_json and form not in {None, "json"}:
        raise UserError(f"--json and --format {form} are two forms. Name one of them.", code=2)
    files = find(setting.home / "runs", run)
    try:
        text = read_plain(files.report_json)
        if text is None:
            raise UserError(
                f"Run {files.path.name} has no report (yet). `leadsman status {files.path.name}` says how it stands."
            )
        envelope = text.decode("utf-8", "replace")
        statement = read(envelope)
    except OSError as problem:
        raise UserError(f"{files.report_json} can't be read: it {problem.strerror}.") from problem
    except Malformed as problem:
        raise UserError(f"{files.report_json} can't be read: {problem}.") from problem
    match "json" if as_json else form:
        case "json":
            click.echo(envelope)
        case "html":
            from bot.dashboard.reportpage import page

            click.echo(page(statement, envelope), nl=False)
        case _:
            say(render(statement.report, budget=None).rstrip("\n"))

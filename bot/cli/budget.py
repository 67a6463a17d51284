"""`leadsman budget`: the turns and seconds of each difficulty, and whether they fit under the caps."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

import click

from bot.budget import BudgetSettings
from bot.cli import table
from bot.cli.clicked import Setting, examples, json_option
from bot.config.loading import find, open_sheet


@click.command(
    "budget",
    epilog=examples(
        "leadsman budget",
        "leadsman budget --json",
        note="Exit code 1 with a total that is above a cap, or a [budget] that is wrong.",
    ),
)
@json_option
@click.pass_obj
def command(setting: Setting, as_json: bool) -> int:
    """Turns and seconds of each difficulty, from [budget] as it is now."""
    sheet = open_sheet(find(setting.config_file, os.environ))
    # This table alone: it is asked for when the file is wrong, too, and most of all then.
    settings = sheet.table(BudgetSettings, ("budget",))
    if settings is None:
        sheet.finish()
        return 1
    print(json.dumps(as_object(settings), indent=2)) if as_json else _show(settings)
    for key, what in settings.misfits():
        print(f"[budget] {key}: {what}.", file=sys.stderr)
    return 1 if settings.misfits() else 0


def as_object(settings: BudgetSettings) -> dict[str, object]:
    """What `--json` prints."""
    return {
        "per_turn_seconds": settings.per_turn_seconds,
        "run_cap_seconds": settings.run_cap_seconds,
        "job_cap_seconds": settings.job_cap_seconds,
        "rows": [{**asdict(row), "ok": row.ok} for row in settings.rows()],
    }


def _show(settings: BudgetSettings) -> None:
    table.show(
        ("difficulty", "turns", "s a turn", "total s", "min", "run cap", "job cap"),
        [
            (
                row.difficulty,
                str(row.turns),
                str(row.per_turn_s),
                str(row.total_s),
                f"{row.total_min:g}",
                _fits(row.under_run_cap, settings.run_cap_seconds),
                _fits(row.under_job_cap, settings.job_cap_seconds),
            )
            for row in settings.rows()
        ],
    )


def _fits(fits: bool, cap: int) -> str:
    return f"{'fits' if fits else 'ABOVE'} {cap}"

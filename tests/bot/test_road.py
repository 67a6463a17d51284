"""What a run is told to have failed at when it is given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.ages import Ages, Checked, Sealed
from bot.model import UNSEEN, Sha
from bot.road import stage_of
from bot.tasks import Task
from tests.bot.test_rebuilding import SHA, intent

TIP = Sha("b" * 40)


@pytest.mark.parametrize(
    ("stage", "tip", "publish", "checked"),
    [
        (UNSEEN, TIP, "run", True),
        (UNSEEN, TIP, "shared", True),
        ("publish", TIP, "none", True),  # what is never pushed is nowhere
        ("publish", SHA, "run", True),
        ("verify", TIP, "run", False),
    ],
)
def test_only_what_was_to_be_pushed_may_be_there_unseen(
    tmp_path: Path, stage: str, tip: Sha, publish: str, checked: bool
) -> None:
    ages = Ages(tmp_path)
    ages.write("intent", intent(1, task=Task(name="fix", run=("true",), publish=publish)))  # type: ignore[arg-type]
    ages.write("sealed", Sealed(tip=tip, commits=1, leftovers_committed=False, descends=True))
    if checked:
        ages.write("checked", Checked(tip=tip, verdicts=(), not_run=()))
    assert stage == stage_of(ages, started=True)


@pytest.mark.parametrize(("started", "stage"), [(True, "seal"), (False, "start")])
def test_what_has_no_commit_yet_was_given_up_before(tmp_path: Path, started: bool, stage: str) -> None:
    assert stage == stage_of(Ages(tmp_path), started=started)

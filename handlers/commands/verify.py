"""`/verify`: checks the report of an ended run again, now."""

from __future__ import annotations

from bot import wording
from bot.model import Permission
from handlers.decision import Say
from handlers.record import Ask, RunRecord
from handlers.views import Desk, RunView


def _handle(_ask: Ask, desk: Desk, run: RunView) -> tuple[Say, ...]:
    if run.host:
        return (
            Say(wording.files_elsewhere(run.run_id, run.task, run.host, f"leadsman show {run.run_id}"), well=False),
        )
    findings = desk.verified(run)
    if not findings:
        return (Say(wording.no_report(run.run_id), well=False),)
    well = all(finding.verdict == "holds" for finding in findings)
    return (Say(wording.verified(run.run_id, run.task, findings), well=well),)


VERIFY = RunRecord(
    name="verify",
    usage="/verify [RUN]",
    help="checks a run's report again: signature, published commit, figures, logs; without RUN: the newest",
    needs=Permission.READ,
    about="ended",
    purpose="to check again",
    handle=_handle,
)

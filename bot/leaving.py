"""Leaves a report where it is found without the bot: a note on the published commit, and a status on the forge."""

from __future__ import annotations

from bot import wording
from bot.ages import Ages, Left
from bot.errors import Forbidden, Gone
from bot.forges import CommitStatus
from bot.journal import Journal
from bot.model import Failed, Intent, PullRef, Sha
from bot.reports import Report
from bot.repositories import Repositories, git_trouble
from bot.statement import read
from gitops import notes
from gitops.git import Identity
from gitops.push import Pushed


class Leaving:
    """Raises `Unavailable` where the outside does not answer. What it refuses is written down, and is no failure."""

    def __init__(self, repositories: Repositories, identity: Identity, journal: Journal) -> None:
        self._repositories = repositories
        self._identity = identity
        self._journal = journal

    def leave(self, ages: Ages) -> Left:
        """May be repeated: a note stands once, and the last status of a name is the one that shows."""
        envelope = ages.report
        report, intent = read(envelope).report, ages.intent
        left = Left(note=self._note(intent, report, envelope), status=self._status(intent, report))
        self._journal.say("left", run=report.run, note=left.note, status=left.status)
        return left

    def _note(self, intent: Intent, report: Report, envelope: str) -> str:
        if report.ref is None or report.tip is None:
            return report.outcome.published if isinstance(report.outcome, Failed) else "nothing was published"
        mirror = self._repositories.mirror(intent.event.subject.repo)
        with git_trouble("The note on the commit can't be pushed"):
            outcome = notes.write(mirror, report.tip, envelope.encode(), self._identity)
        return outcome.ref if isinstance(outcome, Pushed) else f"refused: {outcome.why}"

    def _status(self, intent: Intent, report: Report) -> str:
        repo = intent.event.subject.repo
        status = CommitStatus(
            name=f"leadsman/{intent.task.name}",
            grade=report.grade,
            text=wording.status_line(report),
            url=report.links.run,
            run=report.run,
        )
        try:
            for sha in _where(intent, report):
                self._repositories.forge(repo).set_status(repo, sha, status)
        except (Gone, Forbidden) as problem:
            return f"refused: {problem}"
        return status.grade


def _where(intent: Intent, report: Report) -> list[Sha]:
    """A pull request shows what its head has; a branch that only the bot works on, what its tip has."""
    head = [intent.head] if isinstance(intent.event.subject, PullRef) else []
    return head + ([report.tip] if report.ref is not None and report.tip is not None else [])

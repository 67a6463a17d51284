"""Shows on a forge's issue that a run works it: a label, and the bot as its assignee. The ref on the remote decides."""

from __future__ import annotations

from collections.abc import Mapping

from bot.errors import Forbidden, Gone
from bot.forges import Forge
from bot.journal import Journal
from bot.model import IssueRef


class IssueLabels:
    """`labels`: by forge, the label that its table names. What the bot's token may not set is left out, and said.

    Calls raise `Unavailable` where the forge did not answer; they may be repeated.
    """

    def __init__(self, forges: Mapping[str, Forge], labels: Mapping[str, str], journal: Journal) -> None:
        self._forges = forges
        self._labels = labels
        self._journal = journal

    def set(self, ref: IssueRef) -> None:
        self._show(ref, on=True)

    def take_off(self, ref: IssueRef) -> None:
        self._show(ref, on=False)

    def _show(self, ref: IssueRef, *, on: bool) -> None:
        label = self._labels.get(ref.repo.forge)
        if label is None:
            return
        forge = self._forges[ref.repo.forge]
        try:
            me = forge.me().login
            assignees = set(forge.issue(ref).assignees)
            if on:
                forge.label(ref, label)
            else:
                forge.unlabel(ref, label)
            if (me in assignees) != on:
                forge.assign(ref, assignees | {me} if on else assignees - {me})
        except (Gone, Forbidden) as problem:
            self._journal.say("unlabeled", issue=str(ref), why=str(problem))

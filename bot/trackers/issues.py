"""A forge as the tracker of its own issues: the status is a label, the journal is comments and changes in one order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from bot.errors import Forbidden, Gone, Unavailable
from bot.forges import Forge, Issue, Past
from bot.forges.claiming import IssueClaims
from bot.model import Actor, AnyTicket, IssueRef, Repo, Thread
from bot.talk import ForgeTalk, Handing
from bot.trackers import Claiming, Entry, Move, Stage, Ticket, Upload
from bot.trackers.notes import neutral

OPEN, CLOSED = "open", "closed"
"""Statuses of an issue without a label that says more."""

Say = Callable[..., None]
"""Notes in the bot's journal what could not be shown."""


class Issues(ForgeTalk):
    """`bot.trackers.Tracker` on a forge.

    A note claims, and the ref before it; label and assignee only show that. What the bot's token may not set of them is
    left out, and said: it fails no run.
    """

    def __init__(self, forge: Forge, settings: IssueClaims, say: Say) -> None:
        super().__init__(forge)
        self.name = forge.name
        self.kind = forge.kind
        self._say = say
        self._offered = settings.claimable_status
        self._done = settings.status_map.get(settings.claim_status)
        self.claiming = Claiming(
            enabled=settings.claim_enabled,
            claimable=self._offered or OPEN,
            claimed=settings.claim_status,
            after={settings.claim_status: self._done or OPEN},
            limit=settings.claim_limit_seconds,
        )

    # what stands there

    def ticket(self, ref: AnyTicket) -> Ticket:
        """Where issues are not claimed nobody looks into the journal."""
        issue = self._forge.issue(_ref(ref))
        if not self.claiming.enabled:
            return self._value(issue)
        me = self._forge.me()
        return replace(
            self._value(issue), journal=tuple(self._entry(one, me) for one in self._forge.history(issue.ref))
        )

    def claimable(self, project: str) -> Iterator[Ticket]:
        if self._offered is None:
            return
        for issue in self._forge.labeled(self._repo(project), self._offered, open_only=True):
            if not issue.has(self.claiming.claimed):
                yield self._value(issue)

    def claimed(self, project: str) -> Iterator[Ticket]:
        for issue in self._forge.labeled(self._repo(project), self.claiming.claimed, open_only=False):
            yield self._value(issue)

    def open_among(self, numbers: Iterable[int]) -> tuple[int, ...]:  # noqa: ARG002
        """Nothing says which issue waits for which."""
        return ()

    def _repo(self, project: str) -> Repo:
        return Repo(self.name, project)

    def _value(self, issue: Issue) -> Ticket:
        status, stage = self._standing(issue)
        return Ticket(
            ref=issue.ref,
            title=issue.title,
            text=issue.body,
            author=issue.author,
            status=status,
            stage=stage,
            is_closed=not issue.open,
            category=None,
            priority=0,
            assignee=None,
            updated_at=issue.updated_at,
        )

    def _standing(self, issue: Issue) -> tuple[str, Stage]:
        if issue.has(self.claiming.claimed):
            return self.claiming.claimed, "claimed"
        if not issue.open:
            return CLOSED, "other"
        return (self.claiming.claimable, "claimable") if self._offered and issue.has(self._offered) else (OPEN, "open")

    def _entry(self, one: Past, me: Actor) -> Entry:
        """Who takes the claim label off, or changes the assignees, takes the issue; who sets it helps the bot."""
        freed = one.lost_label.casefold() == self.claiming.claimed.casefold()
        return Entry(
            id=one.id,
            author=one.author,
            text=one.text,
            private=False,
            at=one.at,
            old_status=self.claiming.claimed if freed else None,
            new_status="" if freed else None,
            assignee_changed=one.assigns,
            by_member=one.by_member or one.author.id == me.id,
        )

    # what is written

    def write(
        self,
        ref: AnyTicket,
        note: str,
        *,
        to: Move | None = None,
        of: Actor | None = None,
        link: str | None = None,  # noqa: ARG002  # the note has it
        upload: Upload | None = None,  # noqa: ARG002
    ) -> Ticket:
        """A claim is the note alone, since only its place in the journal says who won: `hold` follows. At its end label
        and assignee go first: a crash in between leaves a claim that is ended again."""
        on = _ref(ref)
        if to in ("claimable", "done"):
            self._let_go(on, of, done=to == "done")
        said = self._forge.post(on, neutral(note))
        after = self.ticket(ref)
        if all(entry.id != said for entry in after.journal):  # a list may lag; who reads no further knows no winner
            raise Unavailable(f"The note on {on} can't be read back yet.")
        return after

    def upload(self, name: str, content: bytes) -> Upload:  # noqa: ARG002
        raise Forbidden(f"{self.name} takes no files by its API.")

    def hold(self, ticket: Ticket) -> Ticket:
        """Note and ref hold it already; a forge that takes no label now keeps back no run."""
        on, me = _ref(ticket.ref), self._forge.me().login
        with self._shown(on, (Gone, Forbidden, Unavailable)):
            self._forge.label(on, self.claiming.claimed)
        with self._shown(on, (Gone, Forbidden, Unavailable)):
            assignees = set(self._forge.issue(on).assignees)
            if me not in assignees:
                self._forge.assign(on, assignees | {me})
        return replace(ticket, status=self.claiming.claimed, stage="claimed")

    def _let_go(self, on: IssueRef, of: Actor | None, *, done: bool) -> None:
        """One that is done is no longer offered: that label comes off, too, and another one on where configured."""
        issue = self._forge.issue(on)
        off = (self.claiming.claimed, self._offered) if done else (self.claiming.claimed,)
        with self._shown(on):
            for label in off:
                if label is not None and issue.has(label):
                    self._forge.unlabel(on, label)
            if done and self._done is not None:
                self._forge.label(on, self._done)
        with self._shown(on):
            if of is not None and of.login in issue.assignees:
                self._forge.assign(on, set(issue.assignees) - {of.login})

    def hand_over(self, on: Thread, handing: Handing, body: str) -> str:
        """The claim label goes along, so that no bot starts on what a person has."""
        if self.claiming.enabled:
            with self._shown(on):
                change = self._forge.unlabel if handing.to is None else self._forge.label
                change(_ref(on), self.claiming.claimed)
        return super().hand_over(on, handing, body)

    @contextmanager
    def _shown(self, on: Thread, left_out: tuple[type[Exception], ...] = (Gone, Forbidden)) -> Iterator[None]:
        try:
            yield
        except left_out as problem:
            self._say("unshown", issue=str(on), why=str(problem))

    # words

    def look_at_formatting(self, ref: AnyTicket, word: str) -> None:
        """Forges read Markdown."""

    def render(self, markdown: str) -> str:
        return neutral(markdown)

    def ticket_url(self, ref: AnyTicket) -> str:
        return self._forge.comment_url(_ref(ref), "").partition("#")[0]


def _ref(on: Thread) -> IssueRef:
    if not isinstance(on, IssueRef):
        raise TypeError(f"{on} is no issue")
    return on

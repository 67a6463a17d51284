"""Claims tickets where people see it: status and note before a run, the report or the release after it.

The ref on the remote decides (`bot.claims`); this is the same claim in the tracker's journal, read back after each
write. Each call looks at what is, so it may be repeated after a crash at any point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bot import epoch, wording
from bot.ages import Ages
from bot.claimbook import ClaimBook
from bot.errors import Forbidden, Gone, Unavailable
from bot.issuelabels import IssueLabels
from bot.logs import end_of
from bot.model import (
    Claim,
    Commented,
    Failed,
    Held,
    Intent,
    IssueRef,
    Outcome,
    Published,
    RuleFired,
    RunId,
    TicketRef,
    Unchanged,
    Updated,
)
from bot.rendering import render
from bot.rundir import RunDir
from bot.statement import read
from bot.trackers import Entry, Ticket, Tracker

ROOM = 50_000
"""Bytes of a report in a note. MySQL's 65,535 bytes also have to hold what Textile writes out as numbers."""

_BESIDE = "Report of"
"""How the report of a run begins that had no claim of the ticket's status."""

SCHEDULED = "schedule"
"""`on` of the rules that take what is claimable."""


class Tickets:
    """The journal's side of claims. Calls raise `Unavailable` where the tracker did not answer: then nobody knows."""

    def __init__(
        self,
        trackers: Mapping[str, Tracker],
        labels: IssueLabels,
        book: ClaimBook,
        *,
        by: str,
        is_ours: Callable[[str], bool],
        url: Callable[[RunId], str],
        clock: Callable[[], float],
    ) -> None:
        """`by`: `<vertical>@<host>`, as claim notes name this bot (and others of its host); `is_ours`: whether a run,
        by its id, is in our own books; `url`: where a run can be followed."""
        self._trackers = trackers
        self._labels = labels
        self._book = book
        self._by = by
        self._is_ours = is_ours
        self._url = url
        self._clock = clock

    def claim(self, claim: Claim) -> Held | Failed | None:
        """Writes the claim of a run whose ref is held. None: go on; `Held`: somebody else has the ticket.

        A ticket that somebody asked for by name, and that is not in the claimable status, is worked without a claim
        of its status: what people did with it stays as it is.
        """
        intent = claim.intent
        ref = intent.event.subject
        if isinstance(ref, IssueRef):
            self._labels.set(ref)
        if not isinstance(ref, TicketRef) or not (tracker := self._trackers[ref.tracker]).claiming.enabled:
            return None
        try:
            ticket = tracker.ticket(ref)
            if epoch.claim_of(epoch.present(ticket.journal), intent.run_id) is None:
                if (held := self._against(intent, ticket, tracker)) is not None:
                    return held
                if not _same(ticket.status, tracker.claiming.claimable):
                    return None
                if (failed := _workflow(ticket, tracker)) is not None:
                    return failed
                ticket = self._write(claim, ref, tracker)
            return self._read_back(intent, ticket, tracker)
        except (Gone, Forbidden) as problem:
            return Failed("claim", str(problem))

    def _against(self, intent: Intent, ticket: Ticket, tracker: Tracker) -> Held | None:
        """Who has the ticket, or had it when this was asked for: what one bot took up, the next does not do again."""
        holder = epoch.holder(ticket.journal)
        if holder is None and not _is_scheduled(intent):
            claims = (epoch.claim_in(entry) for entry in _since_asked(intent, ticket))
            holder = next((claim for claim in claims if claim is not None and not self._is_ours(claim.run_id)), None)
        if holder is not None:
            return Held(holder.by, holder.at, holder.run_id, tracker.ticket_url(ticket.ref))
        if _is_scheduled(intent) and not _same(ticket.status, tracker.claiming.claimable):
            return Held("somebody", "an unknown time", "", f"{tracker.ticket_url(ticket.ref)}, now {ticket.status}")
        return None

    def _write(self, claim: Claim, ref: TicketRef, tracker: Tracker) -> Ticket:
        run_id = claim.intent.run_id
        note = epoch.claim_note(self._by, self._now(), run_id, self._url(run_id))
        return tracker.write(ref, note, status=tracker.claiming.claimed, link=self._url(run_id))

    def _read_back(self, intent: Intent, ticket: Ticket, tracker: Tracker) -> Held | Failed | None:
        holder = epoch.holder(ticket.journal)
        if holder is None or holder.run_id != intent.run_id:
            first = holder or epoch.Claimed("somebody", "an unknown time", "", ticket.journal[-1])
            return Held(first.by, first.at, first.run_id, tracker.ticket_url(ticket.ref))
        if _same(ticket.status, tracker.claiming.claimed) or epoch.taken_by_person(ticket.journal, holder):
            return None
        why = f"the tracker took the note and left the status at {ticket.status}"
        tracker.write(ticket.ref, epoch.release_note(f"{epoch.FAILED} did not start: {why}"))
        return Failed("claim", f"{why[0].upper()}{why[1:]}.")

    def concede(self, intent: Intent, held: Held) -> None:
        """Says, once, that another run has the ticket. The status is the winner's."""
        ref = intent.event.subject
        if not isinstance(ref, TicketRef) or not held.run_id:
            return
        tracker = self._trackers[ref.tracker]
        if not tracker.claiming.enabled:
            return
        try:
            if any(_conceded(entry.text, intent.run_id) for entry in tracker.ticket(ref).journal):
                return
            tracker.write(ref, epoch.concede_note(self._by, intent.run_id, held.by, held.run_id))
        except (Gone, Forbidden) as problem:
            self._book.say("unsaid", run=intent.run_id, key=str(ref), why=str(problem))
        else:
            self._book.say("concede", run=intent.run_id, key=str(ref), to=held.by, to_run=held.run_id)

    def finish(self, ages: Ages) -> None:
        """Puts the report onto the ticket, and the ticket where it belongs: further after a run that ended well, back
        to claimable after another. Says nothing where the claim was swept meanwhile, or a report stands there."""
        intent, ended = ages.intent, ages.ended
        ref = intent.event.subject
        if isinstance(ref, IssueRef) and not ages.silenced:
            self._labels.take_off(ref)
        if not isinstance(ref, TicketRef) or ended is None or ages.silenced:
            return
        tracker = self._trackers[ref.tracker]
        try:
            ticket = tracker.ticket(ref)
            claim = epoch.claim_of(ticket.journal, intent.run_id)
            if _is_finished(ticket, claim, intent.run_id) or (claim is None and _is_scheduled(intent)):
                return  # what nobody asked for and what was never claimed is no news to the people there
            tracker.look_at_formatting(ref, intent.run_id)
            note, status = self._last_word(ticket, claim, ended.outcome, intent, tracker)
            report = render(read(ages.report).report, budget=ROOM)
            after = self._say_last(ages.path, ref, f"{note}\n\n{tracker.render(report)}", status)
        except (Gone, Forbidden) as problem:
            self._book.say("unanswered", run=intent.run_id, key=str(ref), why=str(problem))
            return
        landed = status is None or _same(after.status, status)
        self._book.say("reported", run=intent.run_id, key=str(ref), status=after.status, wanted=status, landed=landed)

    def _say_last(self, folder: Path, ref: TicketRef, text: str, status: str | None) -> Ticket:
        """One write: the note takes the file along, so that there is one of it however often this is tried. A file that
        the tracker will not have costs the report nothing, which then says so."""
        tracker = self._trackers[ref.tracker]
        log = end_of(RunDir(folder).worker_log, tracker.claiming.log_bytes) if tracker.claiming.log_bytes else b""
        if not log:
            return tracker.write(ref, text, status=status)
        try:
            upload = tracker.upload(f"leadsman-{folder.name}.log", log)
        except (Forbidden, Gone, Unavailable) as problem:
            self._book.say("unattached", run=folder.name, key=str(ref), why=str(problem))
            return tracker.write(ref, f"{text}\n{tracker.render(wording.not_attached(str(problem)))}", status=status)
        after = tracker.write(ref, text, status=status, upload=upload)
        if upload.name not in {one.name for one in after.attached}:
            self._book.say("unattached", run=folder.name, key=str(ref), why="the tracker took the note alone")
        return after

    def _last_word(
        self, ticket: Ticket, claim: epoch.Claimed | None, outcome: Outcome, intent: Intent, tracker: Tracker
    ) -> tuple[str, str | None]:
        """The first line of the last note, and the status that goes with it; None leaves it alone."""
        well = isinstance(outcome, Published | Unchanged)
        about = f"run {intent.run_id} of {intent.task.name}: {outcome.kind}"
        if claim is None:  # no boundary: another one's epoch may be under way
            return f"{_BESIDE} {about}", None
        report = f"{epoch.REPORT} {about}"
        person = epoch.taken_by_person(ticket.journal, claim)
        if person is not None:
            return epoch.release_note(f"{person.author.login} took the ticket ({outcome.kind})"), None
        words = tracker.claiming
        wanted = words.after.get(words.claimed, words.claimed) if well else words.claimable
        why = "" if _may(ticket, wanted) else f". The workflow lets me not set {wanted}: the status stays"
        status = wanted if not why else None
        if well:
            return f"{report}{why}", status
        return epoch.release_note(f"{epoch.FAILED} {_brief(outcome)} (run {intent.run_id}){why}"), status

    def _now(self) -> str:
        at = datetime.fromtimestamp(self._clock(), UTC)
        return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _is_finished(ticket: Ticket, claim: epoch.Claimed | None, run_id: str) -> bool:
    """Did this run's last word land already, or was its claim ended by others?"""
    if claim is not None:
        return any(epoch.is_boundary(entry) for entry in epoch.later(ticket.journal, claim.entry))
    return any(entry.text.startswith(_BESIDE) and run_id in entry.text for entry in ticket.journal)


def _workflow(ticket: Ticket, tracker: Tracker) -> Failed | None:
    claimed = tracker.claiming.claimed
    if _may(ticket, claimed):
        return None
    return Failed(
        "claim",
        f"The workflow of {tracker.name} lets the bot's role not move a ticket from {ticket.status} to {claimed}. "
        "Whoever administers it can add that transition.",
    )


def _may(ticket: Ticket, status: str) -> bool:
    return ticket.allowed is None or any(_same(status, known) for known in ticket.allowed)


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _since_asked(intent: Intent, ticket: Ticket) -> Sequence[Entry]:
    """The journal behind the entry that asked for the run; all of it where the ticket itself did."""
    match intent.event.what:
        case Commented(comment_id=entry) | Updated(note_id=entry):
            return epoch.since(ticket.journal, entry, intent.event.at)
        case _:
            return ticket.journal


def _is_scheduled(intent: Intent) -> bool:
    return isinstance(intent.reason, RuleFired) and intent.reason.on == SCHEDULED


def _conceded(text: str, run_id: str) -> bool:
    return text.startswith(epoch.CONCEDED) and f"(run {run_id})" in text


def _brief(outcome: Outcome) -> str:
    match outcome:
        case Failed(stage, _):
            return f"failed ({stage})"
        case _:
            return {"cancelled": "was cancelled", "lost": "was lost"}.get(outcome.kind, outcome.kind)

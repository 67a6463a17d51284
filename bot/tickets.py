"""Claims tickets where people see it: status and note before a run, the report or the release after it.

The ref on the remote decides (`bot.claims`); this is the same claim in the tracker's journal, read back after each
write. Each call looks at what is, so it may be repeated after a crash at any point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from bot import epoch, wording
from bot.ages import Ages
from bot.claimbook import ClaimBook
from bot.errors import Forbidden, Gone, Unavailable
from bot.logs import end_of
from bot.model import (
    Actor,
    AnyTicket,
    Claim,
    Commented,
    Failed,
    Held,
    Intent,
    IssueRef,
    Labeled,
    Outcome,
    Published,
    Retried,
    RuleFired,
    RunId,
    Subject,
    TicketRef,
    Unchanged,
    Updated,
)
from bot.rendering import render
from bot.rundir import RunDir
from bot.statement import read
from bot.trackers import Entry, Move, Ticket, Tracker

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
        book: ClaimBook,
        *,
        by: str,
        is_ours: Callable[[str], bool],
        url: Callable[[RunId], str],
        answered: Callable[[Intent], str | None],
        clock: Callable[[], float],
    ) -> None:
        """`by`: `<vertical>@<host>`, as claim notes name this bot (and others of its host); `is_ours`: whether a run,
        by its id, is in our own books; `url`: where a run can be followed; `answered`: the comment on a forge that
        tells how it goes, and holds its report in the end, where that is out."""
        self._trackers = trackers
        self._book = book
        self._by = by
        self._is_ours = is_ours
        self._url = url
        self._answered = answered
        self._clock = clock

    def _of(self, subject: Subject) -> tuple[AnyTicket, Tracker] | None:
        """The ticket that it is, and where it stands. A forge whose issues are not claimed has nothing to be told."""
        if not isinstance(subject, AnyTicket):
            return None
        tracker = self._trackers[subject.tracker]
        return (subject, tracker) if tracker.claiming.enabled or isinstance(subject, TicketRef) else None

    def claim(self, claim: Claim) -> Held | Failed | None:
        """Writes the claim of a run whose ref is held. None: go on; `Held`: somebody else has the ticket.

        A ticket that somebody asked for by name, and that is not in the claimable status, is worked without a claim
        of its status: what people did with it stays as it is.
        """
        intent = claim.intent
        found = self._of(intent.event.subject)
        if found is None or not found[1].claiming.enabled:
            return None
        ref, tracker = found
        try:
            ticket = tracker.ticket(ref)
            if epoch.claim_of(epoch.present(ticket.journal), intent.run_id) is None:
                if (held := self._against(intent, ticket, tracker)) is not None:
                    return held
                if ticket.stage not in ("claimable", "open"):
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
            return self._held(holder, ticket, tracker)
        if _is_scheduled(intent) and ticket.stage != "claimable":
            return Held("somebody", "an unknown time", "", f"{tracker.ticket_url(ticket.ref)}, now {ticket.status}")
        return None

    def _held(self, by: epoch.Claimed, ticket: Ticket, tracker: Tracker) -> Held:
        """Of another bot's run its claim note tells more."""
        run_id, note = RunId(by.run_id), tracker.comment_url(ticket.ref, by.entry.id)
        link = self._url(run_id) if self._is_ours(run_id) else note
        return Held(by.by, by.at, run_id, tracker.ticket_url(ticket.ref), link)

    def _write(self, claim: Claim, ref: AnyTicket, tracker: Tracker) -> Ticket:
        run_id = claim.intent.run_id
        note = epoch.claim_note(self._by, self._now(), run_id, self._url(run_id))
        return tracker.write(ref, note, to="claimed", link=self._url(run_id))

    def _read_back(self, intent: Intent, ticket: Ticket, tracker: Tracker) -> Held | Failed | None:
        holder = epoch.holder(ticket.journal)
        if holder is None or holder.run_id != intent.run_id:
            first = holder or epoch.Claimed("somebody", "an unknown time", "", ticket.journal[-1])
            return self._held(first, ticket, tracker)
        if epoch.taken_by_person(ticket.journal, holder) or tracker.hold(ticket).stage == "claimed":
            return None
        why = f"the tracker took the note and left the status at {ticket.status}"
        tracker.write(ticket.ref, epoch.release_note(f"{epoch.FAILED} did not start: {why}"))
        return Failed("claim", f"{why[0].upper()}{why[1:]}.")

    def taken(self, intent: Intent) -> str | None:
        """Who took the ticket from the run that claimed it, and how; None where nobody did. Where that can't be seen
        now, the run goes on: what it comes to is told to whoever took it."""
        found = self._of(intent.event.subject)
        if found is None or not found[1].claiming.enabled:
            return None
        try:
            journal = found[1].ticket(found[0]).journal
        except (Gone, Forbidden, Unavailable) as problem:
            self._book.say("unseen", run=intent.run_id, key=str(found[0]), why=str(problem))
            return None
        claim = epoch.claim_of(journal, intent.run_id)
        entry = epoch.taken_by_person(journal, claim) if claim is not None else None
        return None if entry is None else wording.ticket_taken(entry.author.login, entry.old_status, entry.new_status)

    def concede(self, intent: Intent, held: Held) -> None:
        """Says, once, that another run has the ticket. The status is the winner's."""
        found = self._of(intent.event.subject)
        if found is None or not found[1].claiming.enabled or not held.run_id:
            return
        ref, tracker = found
        try:
            if any(_conceded(entry.text, intent.run_id) for entry in tracker.ticket(ref).journal):
                return
            link = held.link or tracker.ticket_url(ref)
            tracker.write(ref, epoch.concede_note(self._by, intent.run_id, held, link))
        except (Gone, Forbidden) as problem:
            self._book.say("unsaid", run=intent.run_id, key=str(ref), why=str(problem))
        else:
            self._book.say("concede", run=intent.run_id, key=str(ref), to=held.by, to_run=held.run_id)

    def finish(self, ages: Ages) -> None:
        """Puts the report onto the ticket, and the ticket where it belongs: further after a run that ended well, back
        to claimable after another. Says nothing where the claim was swept meanwhile, or a report stands there."""
        intent, ended = ages.intent, ages.ended
        found = self._of(intent.event.subject)
        if found is None or ended is None or ages.silenced:
            return
        ref, tracker = found
        try:
            ticket = tracker.ticket(ref)
            claim = epoch.claim_of(ticket.journal, intent.run_id)
            if _is_finished(ticket, claim, intent.run_id) or (claim is None and _says_nothing(intent)):
                return
            tracker.look_at_formatting(ref, intent.run_id)
            note, move = self._last_word(ticket, claim, ended.outcome, intent, tracker)
            of = None if claim is None else claim.entry.author
            try:
                after = self._say_last(ages, found, f"{note}\n\n{self._report(ages, tracker)}", move, of)
            except Forbidden as problem:  # the status alone may be refused: for a field that it needs, for example
                if move is None:
                    raise
                note = f"{note}. {epoch.stays(str(problem))}"
                after = self._say_last(ages, found, f"{note}\n\n{self._report(ages, tracker)}", None, of)
        except (Gone, Forbidden) as problem:
            self._book.say("unanswered", run=intent.run_id, key=str(ref), why=str(problem))
            return
        landed = move is None or after.stage != "claimed"
        self._book.say("reported", run=intent.run_id, key=str(ref), status=after.status, moved=move, landed=landed)

    def _report(self, ages: Ages, tracker: Tracker) -> str:
        """The report; of an issue where it stands: its comment is brought up to date there, and told by it."""
        intent = ages.intent
        if isinstance(intent.event.subject, IssueRef):
            return f"Its report: {self._answered(intent) or self._url(intent.run_id)}"
        return tracker.render(render(read(ages.report).report, budget=ROOM))

    def _say_last(
        self, ages: Ages, found: tuple[AnyTicket, Tracker], text: str, move: Move | None, of: Actor | None
    ) -> Ticket:
        """One write: the note takes the file along, so that there is one of it however often this is tried. A file that
        the tracker will not have costs the report nothing, which then says so."""
        (ref, tracker), folder = found, ages.path
        log = end_of(RunDir(folder).worker_log, tracker.claiming.log_bytes) if tracker.claiming.log_bytes else b""
        if not log:
            return tracker.write(ref, text, to=move, of=of)
        try:
            upload = tracker.upload(f"leadsman-{folder.name}.log", log)
        except (Forbidden, Gone, Unavailable) as problem:
            self._book.say("unattached", run=folder.name, key=str(ref), why=str(problem))
            return tracker.write(ref, f"{text}\n{tracker.render(wording.not_attached(str(problem)))}", to=move, of=of)
        after = tracker.write(ref, text, to=move, of=of, upload=upload)
        if upload.name not in {one.name for one in after.attached}:
            self._book.say("unattached", run=folder.name, key=str(ref), why="the tracker took the note alone")
        return after

    def _last_word(
        self, ticket: Ticket, claim: epoch.Claimed | None, outcome: Outcome, intent: Intent, tracker: Tracker
    ) -> tuple[str, Move | None]:
        """The first line of the last note, and where the ticket goes with it; None leaves it alone."""
        well = isinstance(outcome, Published | Unchanged)
        about = f"run {intent.run_id} of {intent.task.name}: {outcome.kind}"
        if claim is None or _is_over(ticket, claim):  # no boundary: another one's epoch may be under way
            return f"{_BESIDE} {about}", None
        report = f"{epoch.REPORT} {about}"
        person = epoch.taken_by_person(ticket.journal, claim)
        if person is not None:
            return epoch.release_note(f"{person.author.login} took the ticket ({outcome.kind})"), None
        move: Move = "done" if well else "claimable"
        wanted = tracker.claiming.status(move)
        may = _may(ticket, wanted)
        why = "" if may else f". The workflow lets me not set {wanted}: the status stays"
        if well:
            return f"{report}{why}", move if may else None
        return epoch.release_note(f"{epoch.FAILED} {_brief(outcome)} (run {intent.run_id}){why}"), move if may else None

    def _now(self) -> str:
        at = datetime.fromtimestamp(self._clock(), UTC)
        return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _is_finished(ticket: Ticket, claim: epoch.Claimed | None, run_id: str) -> bool:
    """Did this run's last word land already, or did another bot end its claim? Of a person who wrote such a note
    nothing but that is known: the report is owed all the same."""
    if any(entry.text.startswith(_BESIDE) and run_id in entry.text for entry in ticket.journal):
        return True
    if claim is None:
        return False
    me = claim.entry.author.id
    ends = (entry for entry in epoch.later(ticket.journal, claim.entry) if epoch.is_boundary(entry))
    return any(entry.author.id == me or run_id in entry.text for entry in ends)


def _is_over(ticket: Ticket, claim: epoch.Claimed) -> bool:
    return any(epoch.is_boundary(entry) for entry in epoch.later(ticket.journal, claim.entry))


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
        case Labeled() | Retried():  # neither names an entry
            return epoch.since(ticket.journal, "", intent.event.at)
        case _:
            return ticket.journal


def _is_scheduled(intent: Intent) -> bool:
    return isinstance(intent.reason, RuleFired) and intent.reason.on == SCHEDULED


def _says_nothing(intent: Intent) -> bool:
    """What nobody asked for and what was never claimed is no news to the people there; an issue has its own comment."""
    return _is_scheduled(intent) or isinstance(intent.event.subject, IssueRef)


def _conceded(text: str, run_id: str) -> bool:
    return text.startswith(epoch.CONCEDED) and f"(run {run_id})" in text


def _brief(outcome: Outcome) -> str:
    match outcome:
        case Failed(stage, _):
            return f"failed ({stage})"
        case _:
            return {"cancelled": "was cancelled", "lost": "was lost"}.get(outcome.kind, outcome.kind)

"""What the bots write into a ticket's journal, and what it says of who works the ticket now.

A claim, for people and for the other bots: `claimed by <vertical>@<host> at <RFC3339> run <run_id>`. An epoch is the
journal after its last boundary note, `claim released ...` or `# REPORT - ...`. The first claimant of the present epoch
has the ticket, by the tracker's own order of notes; what was before never stands against a claim.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bot.model import Held
from bot.trackers import Entry

_CLAIM = re.compile(r"claimed by (?P<by>\S+@\S+) at (?P<at>\S+) run (?P<run>\S+)[ \t]*(?:\n|$)")
RELEASED = "claim released"
REPORT = "# REPORT -"
CONCEDED = "conceded to"
FAILED = "the run"
ENDED = "run"
"""What a release note goes on with behind `claim released: ` where the run itself came to nothing, and where it had
ended before and its claim stood there still."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim note."""

    by: str
    at: str
    run_id: str
    entry: Entry


def claim_in(entry: Entry) -> Claimed | None:
    """The claim that a journal entry is."""
    found = _CLAIM.match(entry.text) if _counts(entry) else None
    return Claimed(found["by"], found["at"], found["run"], entry) if found else None


def is_boundary(entry: Entry) -> bool:
    return _counts(entry) and entry.text.startswith((RELEASED, REPORT))


def _counts(entry: Entry) -> bool:
    """Private notes are none of the protocol's, since not every bot could read them; those of a stranger neither."""
    return entry.by_member and not entry.private


def is_of_a_bot(entry: Entry) -> bool:
    """Is it a note of the protocol? What it changes beside, no person changed."""
    return _is_bidding(entry) or is_boundary(entry)


def _is_bidding(entry: Entry) -> bool:
    return claim_in(entry) is not None or (_counts(entry) and entry.text.startswith(CONCEDED))


def _bots(journal: Sequence[Entry]) -> frozenset[str]:
    """The ids of those who claimed or conceded here. What they do beside their notes, on a forge, no person did."""
    return frozenset(entry.author.id for entry in journal if _is_bidding(entry))


def present(journal: Sequence[Entry]) -> Sequence[Entry]:
    """The entries of the present epoch."""
    ends = [n for n, entry in enumerate(journal) if is_boundary(entry)]
    return journal[ends[-1] + 1 :] if ends else journal


def holder(journal: Sequence[Entry]) -> Claimed | None:
    """The first claimant of the present epoch."""
    return next((claim for entry in present(journal) if (claim := claim_in(entry)) is not None), None)


def claim_of(journal: Sequence[Entry], run_id: str) -> Claimed | None:
    """The claim note of a run, in whichever epoch."""
    claims = (claim_in(entry) for entry in journal)
    return next((claim for claim in claims if claim is not None and claim.run_id == run_id), None)


def later(journal: Sequence[Entry], than: Entry) -> Sequence[Entry]:
    """The entries behind that one, which is of this journal."""
    return journal[journal.index(than) + 1 :]


def since(journal: Sequence[Entry], entry_id: str, at: datetime) -> Sequence[Entry]:
    """The entries behind the one with that id; where it is no more, those from that moment on."""
    known = next((entry for entry in journal if entry.id == entry_id), None)
    return [entry for entry in journal if entry.at >= at] if known is None else later(journal, known)


def taken_by_person(journal: Sequence[Entry], claim: Claimed) -> Entry | None:
    """The first change of status or assignee since a claim that is none of the bots' own: whoever made it has the
    ticket now."""
    bots = _bots(journal)
    for entry in later(journal, claim.entry):
        moved = entry.new_status is not None or entry.assignee_changed
        if moved and not is_of_a_bot(entry) and entry.author.id not in bots:
            return entry
    return None


def stamp(journal: Sequence[Entry]) -> str:
    """Tells one state of a ticket from the next, for what looks at it over and over: the last entry that is no news
    but of claims, their losers and runs that came to nothing. A ticket whose run failed is not tried again by itself
    until somebody has done something about it."""
    last = _last_news(journal)
    return "0" if last is None else last.id


def was_tried(journal: Sequence[Entry]) -> bool:
    """Has a bot claimed the ticket since the last news of it?"""
    last = _last_news(journal)
    rest = journal if last is None else later(journal, last)
    return any(claim_in(entry) is not None for entry in rest)


def _last_news(journal: Sequence[Entry]) -> Entry | None:
    bots = _bots(journal)
    return next((entry for entry in reversed(journal) if not _is_routine(entry, bots)), None)


def _is_routine(entry: Entry, bots: frozenset[str]) -> bool:
    """Of a boundary the end of a run, however it came: where its status leads back to the claimable one, it would be
    done again for ever. Of what the bots do and say beside that, all."""
    if is_boundary(entry):
        return entry.text.startswith((REPORT, f"{RELEASED}: {FAILED} ", f"{RELEASED}: {ENDED} "))
    return entry.author.id in bots


# The notes themselves. Plain words: they read the same in every formatting.


def claim_note(by: str, at: str, run_id: str, url: str) -> str:
    return f"claimed by {by} at {at} run {run_id}\n\nIts report will stand here. Meanwhile: {url} (`{run_id}`)"


def concede_note(by: str, run_id: str, held: Held, link: str) -> str:
    """Also the answer to whoever asked for the run: what there is to do stands in it."""
    return (
        f"{CONCEDED} {held.by} run {held.run_id}: {by} starts nothing (run {run_id})\n\n"
        f"It has this since {held.since}: {link}. Wait for its report, or write /cancel {held.run_id} or /release."
    )


def release_note(why: str) -> str:
    return f"{RELEASED}: {why}"


def ended(run_id: str, came_to: str) -> str:
    """Why a claim is given back that stands there though its run is over."""
    return f"{ENDED} {run_id} has ended ({came_to})"


def stays(problem: str) -> str:
    """Behind a note whose change of status was refused."""
    return f"The status stays: {problem}"


Event = Literal["claim", "claim_lost", "release", "concede", "sweep"]

"""`/claim` and `/release`: a person takes a ticket, and gives it back; a run that holds it stops after its turn."""

from __future__ import annotations

from bot import epoch, wording
from bot.model import AnyTicket, Permission
from bot.talk import Handing
from handlers.arguments import Spec
from handlers.decision import Say, TakenBack
from handlers.record import Ask, Record
from handlers.views import Desk, RunView


def _claim(ask: Ask, desk: Desk) -> tuple[Say, ...]:
    if not isinstance(ask.on, AnyTicket):
        return (Say(wording.only_tickets(CLAIM.name), well=False),)
    if (run := next(iter(_runs_on(ask, desk)), None)) is not None:
        asked = run.intent
        return (Say(wording.held_by_run(run.run_id, run.task, asked.event.actor.login, asked.at), well=False),)
    if (claim := epoch.holder(desk.ticket(ask.on).journal)) is not None:
        return (Say(wording.held_elsewhere(claim.by, claim.at, claim.run_id), well=False),)
    return (Say(wording.claimed(ask.who.login), handing=Handing(ask.who)),)


def _release(ask: Ask, desk: Desk) -> tuple[TakenBack | Say, ...]:
    if not isinstance(ask.on, AnyTicket):
        return (Say(wording.only_tickets(RELEASE.name), well=False),)
    reason = ask.arguments.word(0) or ""
    open_runs = _runs_on(ask, desk)
    if open_runs:
        why = wording.released_in_comment(ask.who.login, reason)
        ended = tuple(TakenBack(run.run_id, why) for run in open_runs)
        return (*ended, Say(wording.releasing([run.run_id for run in open_runs])))
    if (claim := epoch.holder(desk.ticket(ask.on).journal)) is not None:
        return (Say(wording.held_elsewhere(claim.by, claim.at, claim.run_id), well=False),)
    return (Say(wording.released(ask.who.login, reason), handing=Handing(None)),)


def _runs_on(ask: Ask, desk: Desk) -> list[RunView]:
    """Also those that an earlier line of the same comment starts."""
    return [*desk.runs.open_on(ask.on), *ask.started(desk.runs)]


CLAIM = Record(
    name="claim",
    usage="/claim",
    help="takes the ticket: it is yours, and no bot starts on it by itself",
    needs=Permission.TRIAGE,
    handle=_claim,
)

RELEASE = Record(
    name="release",
    usage="/release [REASON]",
    help="gives the ticket back, so that it may be claimed; a run that holds it stops after its turn",
    needs=Permission.TRIAGE,
    takes=Spec(free=True),
    handle=_release,
)

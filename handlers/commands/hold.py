"""`/hold` and `/unhold`: no new runs here, and again."""

from __future__ import annotations

from bot import wording
from bot.model import Permission
from handlers.arguments import Spec
from handlers.decision import Hold, Say, Unhold
from handlers.record import Ask, Record, hold_now
from handlers.views import Desk


def _hold(ask: Ask, desk: Desk) -> tuple[Hold | Say, ...]:  # noqa: ARG001
    reason = ask.arguments.word(0) or ""
    return Hold(ask.on, ask.who, reason), Say(wording.hold_set(reason))


def _unhold(ask: Ask, desk: Desk) -> tuple[Unhold | Say, ...]:
    hold = hold_now(ask, desk)
    if hold is None:
        return (Say(wording.hold_absent()),)
    return Unhold(ask.on, ask.who), Say(wording.hold_ended(hold.by))


HOLD = Record(
    name="hold",
    usage="/hold [REASON]",
    help="no new runs start here until /unhold; what runs goes on, what waits waits on",
    needs=Permission.WRITE,
    takes=Spec(free=True),
    handle=_hold,
)

UNHOLD = Record(
    name="unhold", usage="/unhold", help="new runs may start here again", needs=Permission.WRITE, handle=_unhold
)

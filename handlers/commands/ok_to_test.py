"""`/ok-to-test`: lets runs start on one exact commit of a fork."""

from __future__ import annotations

from bot import wording
from bot.model import Permission, PullRef
from handlers.arguments import Spec
from handlers.decision import Approve, Say
from handlers.record import Ask, Record
from handlers.starting import full_sha
from handlers.views import Desk


def _handle(ask: Ask, desk: Desk) -> tuple[Approve | Say, ...]:
    if not isinstance(ask.on, PullRef):
        return (Say(wording.only_pulls(OK_TO_TEST.name), well=False),)
    pull = desk.forge(ask.on.repo).pull(ask.on)
    sha = full_sha(ask.arguments.words[0], argument="SHA", usage=OK_TO_TEST.usage)
    if isinstance(sha, Say):
        return (sha,)
    if not pull.is_fork:
        return (Say(wording.approval_not_needed(ask.on.number)),)
    if sha != pull.head_sha:  # a slip of the hand, or a push while the person was reading
        again = f"/ok-to-test {pull.head_sha}"
        return (Say(wording.approval_misses(f"#{ask.on.number}", was=sha, now=pull.head_sha, again=again), well=False),)
    return Approve(ask.on.repo, sha, ask.who), Say(wording.approved(sha, ask.on.number))


OK_TO_TEST = Record(
    name="ok-to-test",
    usage="/ok-to-test SHA",
    help="lets runs start on one exact commit of a fork; SHA is the full id",
    needs=Permission.WRITE,
    takes=Spec(needed=("SHA",)),
    handle=_handle,
)

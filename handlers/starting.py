"""From a wish to a run: the head that the forge shows now, and all that may stand against it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import assert_never

from bot import wording
from bot.forges import Pull
from bot.model import BranchRef, Command, Intent, IssueRef, Limit, PullRef, Repo, Sha, Subject, TicketRef
from bot.projects import Project
from handlers.decision import Once, Say, Start
from handlers.record import Ask, approved_now, hold_now
from handlers.views import Desk, ForgeView, KnownTask, TaskList

_FULL_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{1,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Head:
    """The commit that a subject stands at now, its name for people, and the branch it is meant for."""

    sha: Sha
    where: str
    why: str
    """Why this commit, for the report."""
    base_ref: str
    pull: Pull | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """What a command asks to be started. `sha` is the commit it names; `again` is the command that asks anew."""

    known: KnownTask
    args: tuple[str, ...]
    sha: Sha | None
    limit: Limit
    again: str


def head_now(subject: Subject, project: Project, forge: ForgeView) -> Head:
    """Reads it from the forge; raises `Gone`, `Forbidden` or `Unavailable`."""
    match subject:
        case PullRef():
            pull = forge.pull(subject)
            return Head(pull.head_sha, f"#{subject.number}", wording.head_of_pull(subject.number), pull.base_ref, pull)
        case IssueRef(repo) | TicketRef(repo):
            base = project.base or forge.repository(repo).default_branch
            return Head(forge.branch_sha(repo, base), base, wording.head_of_base(base), base)
        case BranchRef(repo, ref):
            branch = ref.removeprefix("refs/heads/")
            return Head(forge.branch_sha(repo, branch), branch, wording.pushed_head(branch), branch)
        case _:
            assert_never(subject)


def notes(listing: TaskList, repo: Repo) -> tuple[Once, ...]:
    """What who starts a task should know of where tasks come from."""
    wrong = listing.wrong
    if wrong is None:
        return ()
    said = wording.file_wrong(wrong.sha, wrong.branch, wrong.problems, earlier_counts=wrong.earlier_counts)
    return (Once(repo, f"file {wrong.name}", said),)


def full_sha(text: str, *, argument: str, usage: str) -> Sha | Say:
    """`text` as a full commit id, or what to say: the first digits of one can be made to fit another commit.

    The head that begins with them is not offered either: it may be that other commit, and be copied unread.
    """
    sha = text.lower()
    if _FULL_SHA.fullmatch(sha):
        return Sha(sha)
    if _HEX.fullmatch(sha):
        return Say(wording.short_sha(text), well=False)
    return Say(wording.bad_value(argument, text, "a full commit id (40 hex digits)", usage=usage), well=False)


def start(ask: Ask, desk: Desk, head: Head, wish: Wish) -> Start | Say:
    """The run that is wished for at `head`, or why it can't be."""
    if (refusal := _against(ask, desk, head, wish)) is not None:
        return Say(refusal, well=False)
    return Start(
        Intent(
            run_id=desk.new_run_id(),
            event=ask.event,
            ordinal=ask.ordinal,
            reason=Command(ask.line),
            project=ask.project.name,
            task=wish.known.task,
            args=wish.args,
            head=head.sha,
            head_why=head.why if wish.sha is None else wording.as_asked(head.why),
            base_ref=head.base_ref,
            trusted_from=wish.known.origin,
            limit=wish.limit,
            answer=ask.answer,
            at=ask.now,
            publish=wish.known.publish,
        )
    )


def _against(ask: Ask, desk: Desk, head: Head, wish: Wish) -> str | None:
    """What stands against it, for the person to read."""
    if (hold := hold_now(ask, desk)) is not None:
        return wording.on_hold(hold.by, hold.reason)
    pull = head.pull
    if pull is not None and not pull.open:
        return wording.pull_closed(pull.ref.number, merged=pull.merged)
    expected = wish.sha or _head_when_asked(ask, desk, head.sha)
    if expected is not None and expected != head.sha:
        return wording.head_moved(head.where, was=expected, named=wish.sha is not None, now=head.sha, again=wish.again)
    if pull is not None and pull.is_fork and not approved_now(ask, desk, head.sha):
        return wording.fork_not_approved(pull.ref.number, head.sha)
    return None


def _head_when_asked(ask: Ask, desk: Desk, live: Sha) -> Sha | None:
    """The head that the comment's author could see, as far as the bot knows it."""
    if not isinstance(ask.on, PullRef):
        return None
    return ask.event.head_sha or desk.memory.head_seen(ask.on, ask.made_at, live)

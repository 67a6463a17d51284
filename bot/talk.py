"""Where people and the bot talk: the conversational side of a forge, or of a tracker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.forges import Comment, Forge, Reaction
from bot.model import Actor, IssueRef, Permission, PullRef, Thread, TicketRef


@dataclass(frozen=True, slots=True)
class Handing:
    """A ticket changes hands: to a person, or to nobody, so that it may be claimed again."""

    to: Actor | None


class Talk(Protocol):
    """Calls raise `bot.errors.Gone`, `Forbidden` or `Unavailable`."""

    def me(self) -> Actor: ...
    def permission(self, on: Thread, who: Actor) -> Permission: ...
    def comment(self, on: Thread, comment_id: str) -> Comment: ...
    def comments(self, on: Thread, *, since: datetime | None = None) -> Iterable[Comment]: ...
    def post(self, on: Thread, body: str) -> str: ...
    def hand_over(self, on: Thread, handing: Handing, body: str) -> str:
        """Gives the ticket into other hands and says so, in one write where that can be: the new comment's id."""

    def edit(self, on: Thread, comment_id: str, body: str) -> None: ...
    def react(self, on: Thread, comment_id: str, reaction: Reaction) -> None: ...
    def is_ours(self, posted: str, body: str) -> bool:
        """Whether a comment of the bot that reads `posted` is the one that says, or said before, what `body` does."""

    def comment_url(self, on: Thread, comment_id: str) -> str: ...


class ForgeTalk:
    """The pull requests and issues of a forge."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge

    def me(self) -> Actor:
        return self._forge.me()

    def permission(self, on: Thread, who: Actor) -> Permission:
        return self._forge.permission(on.repo, who)

    def comment(self, on: Thread, comment_id: str) -> Comment:
        return self._forge.comment(_thread(on), comment_id)

    def comments(self, on: Thread, *, since: datetime | None = None) -> Iterable[Comment]:
        return self._forge.comments(_thread(on), since=since)

    def post(self, on: Thread, body: str) -> str:
        return self._forge.post(_thread(on), body)

    def hand_over(self, on: Thread, handing: Handing, body: str) -> str:
        thread = _thread(on)
        self._forge.assign(thread, () if handing.to is None else (handing.to.login,))
        return self._forge.post(thread, body)

    def edit(self, on: Thread, comment_id: str, body: str) -> None:
        self._forge.edit(_thread(on), comment_id, body)

    def react(self, on: Thread, comment_id: str, reaction: Reaction) -> None:
        self._forge.react(_thread(on), comment_id, reaction)

    def is_ours(self, posted: str, body: str) -> bool:
        """By the hidden marker, the first line: what stands below it changes as the run goes on."""
        return posted.partition("\n")[0] == body.partition("\n")[0]

    def comment_url(self, on: Thread, comment_id: str) -> str:
        return self._forge.comment_url(_thread(on), comment_id)


class Talks:
    """Finds whom to talk to about a subject. `trackers`: the forges with their issues, too."""

    def __init__(self, forges: Mapping[str, Forge], trackers: Mapping[str, Talk]) -> None:
        self._forges = forges
        self._trackers = trackers

    def about(self, on: Thread) -> Talk:
        return ForgeTalk(self._forges[on.repo.forge]) if isinstance(on, PullRef) else self._trackers[on.tracker]


def _thread(on: Thread) -> PullRef | IssueRef:
    if isinstance(on, TicketRef):
        raise TypeError(f"{on} is no thread of a forge")
    return on

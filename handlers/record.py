"""What a command is: its words, who may use it, and what it decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from bot.model import Actor, Event, Permission, Sha, Subject
from bot.projects import Project
from handlers.arguments import Arguments, Spec
from handlers.decision import Approve, Hold, Result, Start, Unhold
from handlers.views import Desk, HoldView, Runs, RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One command of one comment, understood."""

    event: Event
    """Its actor is the comment's author, as the forge says now."""
    on: Subject
    line: str
    ordinal: int
    arguments: Arguments
    permission: Permission
    project: Project
    made_at: datetime
    """When the comment was made."""
    now: datetime
    answer: str
    """The key of the comment that answers."""
    commands: Mapping[str, Command]
    earlier: tuple[Result, ...] = ()
    """What the same comment's earlier commands came to: `/ok-to-test` counts for the `/run` below it."""

    @property
    def who(self) -> Actor:
        return self.event.actor

    def started(self, runs: Runs) -> tuple[RunView, ...]:
        """The runs that this comment starts: they are in no book yet. Of a task that goes on here already none is."""
        under_way = {run.task for run in runs.open_on(self.on)}
        found: dict[str, RunView] = {}
        for result in self.earlier:
            if isinstance(result, Start) and result.intent.task.name not in under_way:
                found.setdefault(result.intent.task.name, RunView(result.intent, "waiting", "", 0, is_open=True))
        return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A command. Its usage, help and permission are printed from here, and enforced from here."""

    name: str
    usage: str
    help: str
    """One line."""
    needs: Permission
    takes: Spec = field(default_factory=Spec)
    handle: Callable[[Ask, Desk], tuple[Result, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A command about one run, which is chosen, and its use of it allowed, before `handle` is called.

    Its one optional word is the run's id, or the start of it. `about`: which runs it is for; a stopped one is open and
    waits for people, without a process.
    """

    name: str
    usage: str
    help: str
    needs: Permission
    about: Literal["open", "ended", "stopped", "any"]
    purpose: str
    """What one wants a run for, "to cancel"."""
    or_asker: bool = False
    """Who asked for a run may use it on that run, whatever permission they have."""
    takes: Spec = field(default_factory=lambda: Spec(optional=("RUN",)))
    handle: Callable[[Ask, Desk, RunView], tuple[Result, ...]]


Command = Record | RunRecord


def hold_now(ask: Ask, desk: Desk) -> HoldView | None:
    """The hold that is in force after the comment's earlier commands."""
    for result in reversed(ask.earlier):
        if isinstance(result, Unhold):
            return None
        if isinstance(result, Hold):
            return HoldView(result.by.login, result.reason)
    return desk.memory.held(ask.on)


def approved_now(ask: Ask, desk: Desk, sha: Sha) -> bool:
    """Is this commit approved, by an earlier comment or by an earlier command of this one?"""
    in_this_comment = {result.sha for result in ask.earlier if isinstance(result, Approve)}
    return sha in in_this_comment or desk.memory.approved(ask.on.repo, sha)

"""What is to be done about an event: values, for others to carry out in one transaction."""

from __future__ import annotations

from dataclasses import dataclass

from bot.model import Actor, Intent, Repo, RunId, Sha, Subject, Thread
from bot.talk import Handing


@dataclass(frozen=True, slots=True)
class Start:
    """A run; its part of the answer follows it to its end."""

    intent: Intent


@dataclass(frozen=True, slots=True)
class Say:
    """A part of the answer, in Markdown. `well` is False for a refusal."""

    text: str
    well: bool = True
    handing: Handing | None = None
    """Into whose hands the ticket goes as this is said."""


@dataclass(frozen=True, slots=True)
class Once:
    """A part of the first answer that has the chance to say it, and of no other. `name` tells it from all others."""

    repo: Repo
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    run_id: RunId
    by: Actor
    why: str


@dataclass(frozen=True, slots=True)
class Resume:
    """A stopped run goes on; `start` numbers the start of its command that is asked for, so that it comes once."""

    run_id: RunId
    by: Actor
    start: int


@dataclass(frozen=True, slots=True)
class Hold:
    subject: Subject
    by: Actor
    reason: str


@dataclass(frozen=True, slots=True)
class Unhold:
    subject: Subject
    by: Actor


@dataclass(frozen=True, slots=True)
class Approve:
    """Runs may start on this one commit, whatever fork it comes from."""

    repo: Repo
    sha: Sha
    by: Actor


@dataclass(frozen=True, slots=True)
class MarkOutdated:
    """The open runs on the subject that started from another commit are outdated, or, where their task says
    `on_push = "cancel"`, cancelled."""

    subject: Subject
    new_head: Sha


@dataclass(frozen=True, slots=True)
class CancelAll:
    subject: Subject
    why: str


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A person took the ticket that a run holds: it stops after its turn and publishes nothing; its report says why."""

    run_id: RunId
    why: str


Change = Stop | Resume | Hold | Unhold | Approve | MarkOutdated | CancelAll | TakenBack
"""What leaves no words behind."""

Result = Start | Say | Once | Change


@dataclass(frozen=True, slots=True)
class Answer:
    """The comment that answers: its key, the same each time the same command is decided, and where it goes.

    `comment_id` is the comment that asked, None where nobody did.
    """

    key: str
    on: Thread
    comment_id: str | None


@dataclass(frozen=True, slots=True)
class Obeyed:
    """What to remember, so that a second delivery repeats nothing: a command's text and occurrence in its comment.

    For a rule `comment_id` is "rule" and `line` names the rule and what it fired on.
    """

    repo: Repo
    comment_id: str
    line: str
    occurrence: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, in order. `Say`, `Once` and a command's `Start` are parts of `answer`; a rule's has its own."""

    results: tuple[Result, ...]
    answer: Answer | None = None
    obeyed: tuple[Obeyed, ...] = ()

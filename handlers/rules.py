"""`[[rule]]`: tasks that start without a command."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bot.errors import UserError
from bot.model import (
    Actor,
    BranchRef,
    Claimable,
    Event,
    Happening,
    Intent,
    IssueRef,
    Labeled,
    Opened,
    PullRef,
    Pushed,
    RuleFired,
    Subject,
    TicketRef,
    Updated,
)
from bot.paths import matches
from bot.projects import Project
from bot.tasks import Condition
from handlers.decision import Obeyed, Start
from handlers.patience import patience
from handlers.starting import Head, head_now
from handlers.views import Desk, PlacedRule, TaskList

DOES_NOT_HOLD = "its conditions do not hold."

_MOMENT = 10
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Fired:
    """The runs that rules start, what to remember of them, and why others did not start."""

    starts: tuple[Start, ...] = ()
    obeyed: tuple[Obeyed, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """What all rules are held against."""

    event: Event
    head: Head
    project: Project
    listing: TaskList
    desk: Desk


def fire(event: Event, project: Project, desk: Desk) -> Fired:
    """Works out which rules start what. Raises `Gone` for what the forge does not have (any more)."""
    on = name_of(event)
    listing = desk.tasks(project)
    placed = [rule for rule in listing.rules if rule.rule.on == on]
    if on is None or not placed:
        return Fired(reasons=("No rule is for this.",))
    if not isinstance(event.what, Claimable) and event.actor.id == _me(event.subject, desk).id:
        return Fired(reasons=("It is the bot's own doing, which starts no rule.",))
    with patience(event, desk.now()):
        head = head_now(event.subject, project, desk.forge(event.subject.repo))
    if (why := _against(event, head, desk)) is not None:
        return Fired(reasons=(why,))
    scene = _Scene(event=event, head=head, project=project, listing=listing, desk=desk)
    different = {_fact(rule, scene, ""): rule for rule in placed}  # one that stands in two files fires once
    return _together([_one(rule, n, scene) for n, rule in enumerate(different.values())])


_TICKET_RULES: Mapping[type[Happening], str] = {
    Opened: "redmine.issue.created",
    Updated: "redmine.issue.updated",
    Claimable: "schedule",
}


def name_of(event: Event) -> str | None:
    """The `on` of the rules that this event may fire."""
    if isinstance(event.subject, TicketRef):
        return _TICKET_RULES.get(type(event.what))
    match event.subject, event.what:
        case PullRef(), Opened():
            return "pull_request.opened"
        case PullRef(), Pushed():
            return "pull_request.pushed"
        case IssueRef(), Opened():
            return "issues.opened"
        case IssueRef(), Labeled():
            return "issues.labeled"
        case IssueRef(), Claimable():
            return "schedule"
        case BranchRef(), Pushed(after=after) if after is not None:
            return "push"
        case _:
            return None


def _me(subject: Subject, desk: Desk) -> Actor:
    return desk.talk(subject).me() if isinstance(subject, TicketRef) else desk.forge(subject.repo).me()


def _against(event: Event, head: Head, desk: Desk) -> str | None:
    """Why no rule starts anything here now."""
    if (hold := desk.memory.held(event.subject)) is not None:
        return f"{hold.by} put it on hold."
    if isinstance(event.what, Pushed) and event.what.after != head.sha:
        return "The head has moved on; its own delivery comes, or came, too."
    if head.pull is not None and not head.pull.open:
        return "The pull request is closed."
    if head.pull is not None and head.pull.is_fork and not desk.memory.approved(event.subject.repo, head.sha):
        return f"Commit {head.sha} of a fork was not approved with /ok-to-test."
    return None


def _one(placed: PlacedRule, ordinal: int, scene: _Scene) -> Fired:
    rule, event, desk = placed.rule, scene.event, scene.desk
    known = scene.listing.tasks.get(rule.task)
    if known is None:
        return Fired(reasons=(f"{placed.place}: there is no task {rule.task} in this project.",))
    if (why := _unmet(placed, scene)) is not None:
        return Fired(reasons=(f"{placed.place}: {why}",))
    repo, names = event.subject.repo, [_fact(placed, scene, stamp) for stamp in _stamps(event, scene.head)]
    if any(desk.memory.already_obeyed(repo, "rule", name, 0) for name in names):
        return Fired(reasons=(f"{placed.place}: it has fired for this before.",))
    try:
        limit = desk.limit_for(known.task, None)
    except UserError as problem:
        return Fired(reasons=(f"{placed.place}: {problem.text}",))
    done = Obeyed(repo, "rule", names[0], 0)
    intent = Intent(
        run_id=desk.new_run_id(),
        event=event,
        ordinal=ordinal,
        reason=RuleFired(rule.on, placed.place),
        project=scene.project.name,
        task=known.task,
        args=(),
        head=scene.head.sha,
        head_why=scene.head.why,
        base_ref=scene.head.base_ref,
        trusted_from=known.origin,
        limit=limit,
        answer=done.line,
        at=desk.now(),
        publish=known.publish,
    )
    return Fired(starts=(Start(intent),), obeyed=(done,))


def _unmet(placed: PlacedRule, scene: _Scene) -> str | None:
    """Why its conditions keep it from firing; None where they hold. What can't be told for one keeps no other back."""
    try:
        return None if _holds(placed.rule.if_, scene.event, scene.head, scene.desk) else DOES_NOT_HOLD
    except UserError as problem:
        return problem.text


def _fact(placed: PlacedRule, scene: _Scene, stamp: str) -> str:
    """A name for "this rule, on this": the rule by what it says, since its place moves when others are added."""
    subject = scene.event.subject
    whole = "\0".join([placed.rule.model_dump_json(by_alias=True), subject.kind, str(subject), stamp])
    return f"rule-{hashlib.sha256(whole.encode(errors='surrogatepass')).hexdigest()[:32]}"


def _stamps(event: Event, head: Head) -> tuple[str, ...]:
    """What tells one firing from the next; behind the first one those that mean the same.

    Two webhooks of one repository send the same thing twice, with different ids. A label has no id of its own that
    they share, so a second one within moments is taken for the same.
    """
    match event.what:
        case Labeled(label):
            moment = int(event.at.timestamp() // _MOMENT)
            return tuple(f"{label} {near}" for near in (moment, moment - 1, moment + 1))
        case Opened() if isinstance(event.subject, IssueRef | TicketRef):
            return ("opened",)
        case Updated(note_id=change):
            return (change,)
        case Claimable(stamp):
            return (stamp,)
        case _:
            return (head.sha,)


def _holds(condition: Condition, event: Event, head: Head, desk: Desk) -> bool:
    """Does all of it hold, by what the forge or the tracker says now?"""
    return (
        _stands(condition, event, desk)
        and (condition.author is None or _is(condition.author, event.actor))
        and (condition.label is None or _has_label(condition.label, event, head, desk))
        and (not condition.paths or _touches(condition.paths, event, desk))
    )


def _stands(condition: Condition, event: Event, desk: Desk) -> bool:
    """Category and status: only a tracker's tickets have them. A status that is asked for is the one it just got."""
    if condition.category is None and condition.status is None:
        return True
    if not isinstance(event.subject, TicketRef):
        return False
    if condition.status is not None and not isinstance(event.what, Opened | Updated | Claimable):
        return False
    if condition.status is not None and isinstance(event.what, Updated) and event.what.new == event.what.old:
        return False
    ticket = desk.ticket(event.subject)
    return condition.category in (None, ticket.category) and condition.status in (None, ticket.status)


def _is(login: str, who: Actor) -> bool:
    return login.lower() == who.login.lower()


def _has_label(label: str, event: Event, head: Head, desk: Desk) -> bool:
    """On `issues.labeled` it must be the one that was set, and still be there."""
    if isinstance(event.what, Labeled) and event.what.label.casefold() != label.casefold():
        return False
    if isinstance(event.subject, IssueRef):
        return desk.forge(event.subject.repo).issue(event.subject).has(label)
    return head.pull is not None and head.pull.has(label)


def _touches(globs: tuple[str, ...], event: Event, desk: Desk) -> bool:
    subject = event.subject
    changed: Collection[str] | None = None
    if isinstance(subject, PullRef):
        changed = desk.forge(subject.repo).changed_files(subject)
    elif isinstance(event.what, Pushed) and event.what.before and event.what.after:
        changed = desk.changed_between(subject.repo, event.what.before, event.what.after)
    return changed is not None and any(matches(path, glob) for path in changed for glob in globs)


def _together(fired: list[Fired]) -> Fired:
    return Fired(
        starts=tuple(start for one in fired for start in one.starts),
        obeyed=tuple(done for one in fired for done in one.obeyed),
        reasons=tuple(reason for one in fired for reason in one.reasons),
    )

"""Whether what happens on a forge or a tracker reaches the bot, and what is lost where it does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from urllib.parse import urlsplit

from bot.errors import Forbidden, Gone, Unavailable
from bot.finding import Finding
from bot.forges import Forge
from bot.forges.asking import Hook, Hooks
from bot.missed import KEPT, MOST, delivers_to, door_of, missing
from bot.model import Repo
from bot.projects import Project
from bot.trackers import TicketSystem, Tracker
from gitops.git import GitError

SEE = "give the bot the admin role there, and its token or App the right to webhooks (read and write)"
PING = "a ping from its settings tries it"


def webhooks(project: Project, forge: Forge, url: str, now: datetime) -> Iterator[Finding]:
    """The webhooks that point to our door, what becomes of their deliveries, and what takes their place."""
    if forge.hooks is None:
        return
    subject, door = f"{project.repo.name} webhook", door_of(url, project.repo)
    try:
        found = forge.hooks.of(project.repo)
    except (Gone, Forbidden) as problem:
        yield Finding(subject, "warning", _unseen(project.repo, forge, problem))
        return
    ours = [hook for hook in found if delivers_to(hook, door)]
    if not ours:
        yield Finding(subject, "warning" if _polled(forge) else "wrong", _none(found, door, forge))
    for hook in ours:
        yield _set_up(subject, hook, forge)
        yield from _delivered(subject, hook, forge.hooks, now)


def tracker(name: str, it: TicketSystem, projects: Iterable[str]) -> Iterator[Finding]:
    """Who the bot is there, and whether it may claim in each of the projects."""
    subject = f"[trackers.{name}]"
    yield Finding(subject, "ok", f"works as {it.whoami().login}")
    for project in projects:
        subject = f"{name} {project}"
        yield from asked(subject, _tickets(subject, it, project))


def _polled(forge: Forge) -> int:
    return forge.news.every if forge.news else 0


def _instead(forge: Forge) -> str:
    every = _polled(forge)
    if every:
        return f"serve looks there every {every} s instead (pushes to branches without a pull request are not noticed)"
    return f"nothing that happens there is noticed ([forges.{forge.name}] poll_seconds = 0)"


def _unseen(repo: Repo, forge: Forge, problem: Exception) -> str:
    lost = "so deliveries that fail while the server is away are not sent again"
    if _polled(forge):
        lost = f"{lost}; {_instead(forge)}, whether there is a webhook or not"
    return f"the bot may not see the webhooks of {repo.name} ({problem}), {lost}. To change that, {SEE}"


def _none(found: tuple[Hook, ...], door: str, forge: Forge) -> str:
    path = urlsplit(door).path
    near = [hook.url for hook in found if urlsplit(hook.url).path.rstrip("/") == path]
    if near:
        return f"none points to {door}, but one to {near[0]}: {_instead(forge)}; change it, or [server] public_url"
    here = urlsplit(door).hostname in ("127.0.0.1", "localhost", "::1")
    first = "set [server] public_url to where the forge reaches this server, and " if here else ""
    add = f"{first}add one to {door}: content type application/json, the secret"
    return f"none points here: {_instead(forge)}; {add}; issue comments, issues, pull requests, pushes"


def _set_up(subject: str, hook: Hook, forge: Forge) -> Finding:
    off = []
    if not hook.active:
        off.append("it is switched off: switch it on")
    if not hook.json:
        off.append("it sends forms, which the door refuses (415): set its content type to application/json")
    if hook.lacks:
        off.append(f"it does not bring {', '.join(hook.lacks)}: tick these events")
    if off:
        return Finding(
            subject, "warning" if _polled(forge) else "wrong", f"{'; '.join(off)}. Until then {_instead(forge)}"
        )
    return Finding(subject, "ok", f"{hook.id} points to {hook.url} and brings all that is needed")


def _delivered(subject: str, hook: Hook, hooks: Hooks, now: datetime) -> Iterator[Finding]:
    try:
        tries = hooks.sent(hook, now - KEPT)
    except (Gone, Forbidden) as problem:
        yield Finding(
            subject, "warning", f"the bot may not see its deliveries ({problem}): what fails is not sent again; {SEE}"
        )
        return
    yield _latest(subject, hook, tries[0].code if hook.last_code is None and tries else hook.last_code)
    if lacking := missing(tries):
        lost = sum(1 for one in lacking if one.again >= MOST)
        gone = f"; given up after {MOST + 1} tries: {lost}, say again what they asked" if lost else ""
        yield Finding(subject, "warning", f"not arrived, serve has them sent again: {len(lacking) - lost}{gone}")


def _latest(subject: str, hook: Hook, code: int | None) -> Finding:
    if code is None:
        return Finding(subject, "ok", f"it has delivered nothing yet, so its secret is not known to be right; {PING}")
    if 200 <= code < 300:
        return Finding(subject, "ok", f"its latest delivery was answered {code}: it arrives, and its secret is right")
    if code in (401, 403):
        what = f"its latest delivery was answered {code}: its secret is none of those that the server has"
        return Finding(subject, "wrong", f"{what}, so nothing it sends counts; put the same in both; {PING}")
    what = f"its latest delivery was answered {code}: {hook.url} was not reached, or did not take it"
    return Finding(subject, "wrong", f"{what}; see that serve runs and the way there is open; {PING}")


def _tickets(subject: str, it: TicketSystem, project: str) -> Iterator[Finding]:
    it.latest(project)  # can they be read at all
    yield _claiming(subject, it, project)


def _claiming(subject: str, it: Tracker, project: str) -> Finding:
    """By the first ticket that could be claimed: what its workflow lets the bot do is told by the ticket alone."""
    if not it.claiming.enabled:
        return Finding(subject, "ok", "can be read; claiming is off (claim_enabled)")
    first = next(iter(it.claimable(project)), None)
    if first is None:
        return Finding(
            subject, "ok", f"can be read; no ticket is {it.claiming.claimable} now, so claiming is not tried"
        )
    allowed = it.ticket(first.ref).allowed
    if allowed is None:
        return Finding(subject, "ok", "can be read; the tracker does not say which statuses the bot may set")
    if it.claiming.claimed.casefold() not in {name.casefold() for name in allowed}:
        lost = f"the bot may not set {it.claiming.claimed} on a ticket that is {it.claiming.claimable}: it claims none"
        return Finding(subject, "wrong", f"{lost}; allow that step for its role in the workflow")
    return Finding(subject, "ok", f"the bot may set {it.claiming.claimed} there")


def asked(subject: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The findings; one that says what was in the way of the rest."""
    try:
        yield from findings
    except (Gone, Forbidden, Unavailable, GitError) as problem:
        yield Finding(subject, "wrong", f"{str(problem).rstrip('.')}: {_do(problem)}")


def _do(problem: Exception) -> str:
    match problem:
        case Gone():
            return "correct its name in the configuration, or let the bot see it"
        case Forbidden():
            return "give the bot that right, or a token or key that is valid"
        case _:
            return "see that it runs and can be reached from here, then ask again"

"""Claims: a ref on the repository's remote, made by compare-and-swap, says who works a ticket.

The ref's oid is the fence: whoever publishes, reports or releases checks that the ref still holds it, so that a bot
that was suspended and wakes after its claim was swept does nothing any more.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from bot.claimbook import ClaimBook
from bot.errors import Unavailable
from bot.model import Claim, Held, Intent, IssueRef, Lease, Repo, RunId, Sha, Subject, TicketRef
from bot.repositories import Repositories, git_trouble
from bot.store import hosts, runs, schema
from bot.store.engine import Store
from gitops import refs
from gitops.git import Identity
from gitops.mirror import Mirror

NAMESPACES = ("refs/leadsman/claims/", "refs/heads/leadsman/claims/")
"""Where claims live; the second where a forge refuses refs outside refs/heads."""


_ADDRESS = re.compile(r"https?://[\w.:/%~\[\]-]{1,300}", re.ASCII)
"""What another bot wrote is shown as a link only where it is one, and ends no Markdown."""


def key_of(subject: Subject, task: str) -> str:
    """What is claimed: a ticket whole; on a pull request the pair (pull request, task); on a branch likewise."""
    match subject:
        case IssueRef() | TicketRef():
            return str(subject)
        case _:
            return f"{subject}:{task}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A claim as the remote has it, whoever made it."""

    ref: str
    oid: str
    facts: Mapping[str, str]


class Claims:
    """Takes, checks and gives back claims."""

    def __init__(
        self,
        repositories: Repositories,
        store: Store,
        book: ClaimBook,
        identity: Identity,
        *,
        host: str,
        vertical: str,
        in_journal: Callable[[Subject], bool],
        url: Callable[[RunId], str],
        clock: Callable[[], float],
    ) -> None:
        """`url`: where a run can be followed; `in_journal`: whether a tracker shows the claims of such a subject, too,
        and so says how old one is."""
        self._repositories = repositories
        self._store = store
        self._book = book
        self._identity = identity
        self._host = host
        self._vertical = vertical
        self._in_journal = in_journal
        self._url = url
        self._clock = clock

    def take(self, intent: Intent, lease: Lease) -> Claim | Held:
        """Takes the claim, or names its holder. Taking one that is this run's already returns it: safe to repeat.

        Raises `Unavailable` where the remote did not answer: unknown is not ours.
        """
        repo = intent.event.subject.repo
        key = key_of(intent.event.subject, intent.task.name)
        message = self._message(intent, key)
        mirror = self._repositories.mirror(repo)
        for namespace in self._namespaces(repo):
            ref = namespace + hashlib.sha256(key.encode()).hexdigest()
            with git_trouble(f"The claim of {key} can't be made"):
                answer = refs.create(mirror, ref, message, self._identity)
                if isinstance(answer, refs.Taken) and not self._in_journal(intent.event.subject):
                    seen = _Seen(ref, answer.oid, _facts(answer.message))
                    if self._clear(mirror, seen, key, self._outlived(seen.facts)):
                        answer = refs.create(mirror, ref, message, self._identity)
            match answer:
                case refs.Created(oid):
                    self._remember(repo, namespace)
                    return self._won(intent, lease, key, ref, oid)
                case refs.Taken(oid, held):
                    if _run_of(held) == intent.run_id:  # made by us before a crash, and not yet written down
                        return self._won(intent, lease, key, ref, oid)
                    return self._lost(intent, key, held)
                case refs.NamespaceRefused():
                    continue
        raise Unavailable(f"{repo} takes no claim refs: it refuses both {' and '.join(NAMESPACES)}.")

    def _clear(self, mirror: Mirror, seen: _Seen, key: str, why: str | None) -> bool:
        """Takes away what nobody works any more and no sweep of a tracker finds. Whoever wakes up with it has lost its
        fence: it publishes and says nothing."""
        if why is None or not refs.delete(mirror, seen.ref, seen.oid):
            return False
        self._book.say("sweep", run=seen.facts.get("run_id", ""), key=key, why=why)
        return True

    def clear(self, subject: Subject, run_id: str, why: str = "") -> bool:
        """Takes away a ticket's claim that is a ref alone, as one on a pull request is: its bot went before its note
        stood in the journal, or after its report did. Where nobody says `why`, only one that nobody works any more.
        Whether it was taken away.

        Raises `Unavailable` where the remote did not answer.
        """
        seen = self._holding(subject, run_id)
        if seen is None:
            return False
        with git_trouble(f"The claim of {subject} can't be given back"):
            why_now = why or self._outlived(seen.facts)
            return self._clear(self._repositories.mirror(subject.repo), seen, str(subject), why_now)

    def _outlived(self, facts: Mapping[str, str]) -> str | None:
        """Why a claim that is a ref alone is to be given back: its run is known to have ended, or it is of a bot that
        nothing is known of, and older than twice its limit by its own word."""
        run_id, by = facts.get("run_id", ""), facts.get("by", "an unknown bot")
        with self._store.read() as connection:
            row = runs.get(connection, run_id)
            is_left = row is not None and hosts.is_gone(connection, row.host, self._clock())
        if row is not None and row.closed_at is not None:
            return f"run {run_id} has ended ({row.reason})"
        limit = facts.get("limit", "")
        if (row is not None and not is_left) or not limit.isdecimal() or int(limit) == 0:
            return None
        try:
            age = self._clock() - datetime.fromisoformat(facts.get("at", "")).timestamp()
        except (ValueError, OverflowError):
            return None
        return f"{by} claimed it {int(age)} s ago, and may work {limit} s at a time" if age > 2 * int(limit) else None

    def _message(self, intent: Intent, key: str) -> str:
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return json.dumps(
            {
                "claim": key,
                "run_id": intent.run_id,
                "by": f"{self._vertical}@{self._host}",
                "at": at,
                "task": intent.task.name,
                "asked_by": intent.event.actor.login,
                "answer": intent.answer,
                "limit": intent.limit.seconds,
                "url": self._url(intent.run_id),
            },
            ensure_ascii=True,
        )

    def _won(self, intent: Intent, lease: Lease, key: str, ref: str, oid: str) -> Claim:
        self._book.say("claim", run=intent.run_id, key=key, ref=ref, oid=oid)
        at = datetime.fromtimestamp(self._clock(), UTC)
        return Claim(intent=intent, lease=lease, key=key, ref=ref, oid=Sha(oid), at=at)

    def _lost(self, intent: Intent, key: str, held: str) -> Held:
        holder = _held(_facts(held), key)
        self._say_lost(intent, key, holder)
        return holder

    def give_way(self, claim: Claim, holder: Held) -> None:
        """Gives the claim back since the tracker's journal names another one as the first. Raises `Unavailable`."""
        self.release(claim, f"conceded to {holder.by} run {holder.run_id}")
        self._say_lost(claim.intent, claim.key, holder)

    def _say_lost(self, intent: Intent, key: str, holder: Held) -> None:
        self._book.say("claim_lost", run=intent.run_id, key=key, holder=holder.by, holder_run=holder.run_id)

    def made(self, intent: Intent, lease: Lease) -> Claim | None:
        """The claim of this run that the remote holds, where a crash came before it was written down. Makes none.

        Raises `Unavailable` where the remote did not answer.
        """
        repo = intent.event.subject.repo
        key = key_of(intent.event.subject, intent.task.name)
        mirror = self._repositories.mirror(repo)
        for namespace in self._namespaces(repo):
            ref = namespace + hashlib.sha256(key.encode()).hexdigest()
            with git_trouble(f"The claim of {key} can't be read"):
                oid = refs.read(mirror, ref)
                message = refs.said(mirror, ref, oid) if oid is not None else None
            if oid is not None and message is not None and _run_of(message) == intent.run_id:
                return self._won(intent, lease, key, ref, oid)
        return None

    def limit_of(self, subject: Subject, run_id: str) -> int | None:
        """The time limit, in seconds, of the run that holds the claim of a ticket, as its ref says; None where that is
        another run, or nobody."""
        found = self._holding(subject, run_id)
        limit = found.facts.get("limit", "") if found else ""
        return int(limit) if limit.isdecimal() else None

    def evict(self, subject: Subject, run_id: str) -> bool:
        """Takes the claim of a ticket away from a run that is gone. False where another run holds it now.

        Raises `Unavailable` where the remote did not answer.
        """
        mirror = self._repositories.mirror(subject.repo)
        found = self._holding(subject, run_id)
        if found is None:
            return self._holder(subject) is None
        with git_trouble(f"The claim of {subject} can't be given back"):
            return refs.delete(mirror, found.ref, found.oid)

    def holder(self, subject: Subject) -> Held | None:
        """Who has the claim of a ticket, as its ref says. Raises `Unavailable` where the remote did not answer."""
        seen = self._holder(subject)
        return None if seen is None else _held(seen.facts, str(subject))

    def _holding(self, subject: Subject, run_id: str) -> _Seen | None:
        found = self._holder(subject)
        return found if found is not None and found.facts.get("run_id") == run_id else None

    def _holder(self, subject: Subject) -> _Seen | None:
        """What the remote says of the claim of a ticket, which is claimed whole."""
        mirror = self._repositories.mirror(subject.repo)
        for namespace in self._namespaces(subject.repo):
            ref = namespace + hashlib.sha256(key_of(subject, "").encode()).hexdigest()
            with git_trouble(f"The claim of {subject} can't be read"):
                oid = refs.read(mirror, ref)
                message = refs.said(mirror, ref, oid) if oid is not None else None
            if oid is not None and message is not None:
                return _Seen(ref, oid, _facts(message))
        return None

    def ours(self, claim: Claim) -> bool:
        """Whether the ref still holds this claim's commit. Raises `Unavailable` where that can't be seen."""
        mirror = self._repositories.mirror(claim.intent.event.subject.repo)
        with git_trouble(f"The claim of {claim.key} can't be read"):
            return refs.read(mirror, claim.ref) == claim.oid

    def release(self, claim: Claim, why: str) -> None:
        """Gives the claim back if it still is ours. Raises `Unavailable` where the remote did not answer."""
        mirror = self._repositories.mirror(claim.intent.event.subject.repo)
        with git_trouble(f"The claim of {claim.key} can't be given back"):
            gone = self._delete(mirror, claim)
        self._book.say("release", run=claim.intent.run_id, key=claim.key, why=why, was_ours=gone)

    def _delete(self, mirror: Mirror, claim: Claim) -> bool:
        return refs.delete(mirror, claim.ref, claim.oid)

    def _namespaces(self, repo: Repo) -> tuple[str, ...]:
        with self._store.read() as connection:
            known = connection.execute(
                sa.select(schema.settings.c.value).where(schema.settings.c.key == f"claims:{repo}")
            ).scalar()
        return (known,) if known else NAMESPACES

    def _remember(self, repo: Repo, namespace: str) -> None:
        if namespace == NAMESPACES[0]:
            return
        with self._store.write() as connection:
            row = schema.settings
            connection.execute(row.delete().where(row.c.key == f"claims:{repo}"))
            connection.execute(row.insert().values(key=f"claims:{repo}", value=namespace))


def _facts(message: str) -> dict[str, str]:
    try:
        facts = json.loads(message)
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in facts.items()} if isinstance(facts, dict) else {}


def _held(facts: Mapping[str, str], key: str) -> Held:
    return Held(
        by=facts.get("by", "an unknown bot"),
        since=facts.get("at", "an unknown time"),
        run_id=facts.get("run_id", ""),
        where=key,
        link=url if _ADDRESS.fullmatch(url := facts.get("url", "")) else "",
    )


def _run_of(message: str) -> str:
    return _facts(message).get("run_id", "")

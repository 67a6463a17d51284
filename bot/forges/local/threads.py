"""The pull requests, issues and comments of a local forge, as the store keeps them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from bot.errors import Gone, Unavailable
from bot.model import IssueRef, PullRef, Repo
from bot.store.engine import Store
from bot.store.schema import local_comments as comments
from bot.store.schema import local_threads as threads

Kind = Literal["pull", "issue"]
State = Literal["open", "closed", "merged"]
ChangeKind = Literal["labeled", "unlabeled", "assigned", "unassigned"]
TRIES_FOR_A_NUMBER = 20
"""PostgreSQL lets two take the same next number, and refuses one of them; SQLite takes one writer at a time."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A pull request or an issue. `at` is when it last changed; the two refs are names without refs/heads/."""

    repo: Repo
    number: int
    kind: Kind
    title: str
    body: str
    author: str
    state: State
    head_ref: str
    base_ref: str
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    at: datetime

    @property
    def ref(self) -> PullRef | IssueRef:
        return PullRef(self.repo, self.number) if self.kind == "pull" else IssueRef(self.repo, self.number)


@dataclass(frozen=True, slots=True)
class Said:
    """A comment, with the reactions of the bot to it."""

    id: str
    author: str
    body: str
    created_at: datetime
    updated_at: datetime
    reactions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A label that was set or taken off, somebody who was assigned or unassigned: `what` is that label, or login."""

    id: str
    author: str
    kind: ChangeKind
    what: str
    at: datetime


class Threads:
    """What people and the bot wrote on the forge called `forge`. Raises `Gone` for what isn't there."""

    def __init__(self, store: Store, forge: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._forge = forge
        self._clock = clock

    def open(
        self, repo: str, kind: Kind, *, title: str, body: str, author: str, head_ref: str = "", base_ref: str = ""
    ) -> Thread:
        """A new thread under the repository's next number."""
        values = {
            "forge": self._forge,
            "repo": repo,
            "kind": kind,
            "title": title,
            "body": body,
            "author": author,
            "state": "open",
            "head_ref": head_ref,
            "base_ref": base_ref,
            "at": self._clock(),
        }
        with self._store.write() as connection:
            number = _next_number(connection, values)
        return self.thread(repo, number)

    def thread(self, repo: str, number: int) -> Thread:
        with self._store.read() as connection:
            row = connection.execute(sa.select(threads).where(self._is(repo, number))).one_or_none()
        if row is None:
            raise Gone(f"There is no #{number} in {repo}.")
        return _thread(row)

    def listing(self, repo: str) -> tuple[Thread, ...]:
        """All threads of the repository, the newest first."""
        chosen = sa.select(threads).where(threads.c.forge == self._forge, threads.c.repo == repo)
        with self._store.read() as connection:
            return tuple(_thread(row) for row in connection.execute(chosen.order_by(threads.c.number.desc())))

    def end(self, repo: str, number: int, state: State) -> bool:
        """Closes an open thread; whether it was open."""
        is_open = sa.and_(self._is(repo, number), threads.c.state == "open")
        with self._store.write() as connection:
            done = connection.execute(threads.update().where(is_open).values(state=state, at=self._clock()))
            return done.rowcount == 1

    def touch(self, repo: str, number: int) -> None:
        """Says that the thread changed now."""
        with self._store.write() as connection:
            self._touch(connection, repo, number)

    def label(self, repo: str, number: int, label: str, *, on: bool, by: str) -> bool:
        """Sets or takes off a label; whether that changed anything."""
        with self._store.write() as connection:
            row = connection.execute(sa.select(threads.c.labels).where(self._is(repo, number)).with_for_update()).one()
            before = cast("list[str]", json.loads(row.labels))
            if (label in before) == on:
                return False
            after = [*before, label] if on else [name for name in before if name != label]
            connection.execute(threads.update().where(self._is(repo, number)).values(labels=json.dumps(after)))
            self._changed(connection, repo, number, by, {label: "labeled" if on else "unlabeled"})
            return True

    def assign(self, repo: str, number: int, logins: Collection[str], *, by: str) -> bool:
        """Makes these its assignees, and no others; whether that changed anything."""
        with self._store.write() as connection:
            chosen = sa.select(threads.c.assignees).where(self._is(repo, number)).with_for_update()
            row = connection.execute(chosen).one_or_none()
            if row is None:
                raise Gone(f"There is no #{number} in {repo}.")
            before, after = set(cast("list[str]", json.loads(row.assignees))), set(logins)
            text = json.dumps(sorted(after))
            connection.execute(threads.update().where(self._is(repo, number)).values(assignees=text))
            gone: dict[str, ChangeKind] = dict.fromkeys(sorted(before - after), "unassigned")
            new: dict[str, ChangeKind] = dict.fromkeys(sorted(after - before), "assigned")
            self._changed(connection, repo, number, by, gone | new)
            return before != after

    def _changed(
        self, connection: sa.Connection, repo: str, number: int, by: str, changes: Mapping[str, ChangeKind]
    ) -> None:
        now = self._clock()
        for what, event in changes.items():
            values = {"author": by, "event": event, "body": what, "created_at": now, "updated_at": now}
            connection.execute(comments.insert().values(forge=self._forge, repo=repo, number=number, **values))
        if changes:
            self._touch(connection, repo, number)

    def say(self, repo: str, number: int, author: str, body: str) -> Said:
        """A new comment."""
        now = self._clock()
        with self._store.write() as connection:
            if not self._touch(connection, repo, number):
                raise Gone(f"There is no #{number} in {repo}.")
            done = connection.execute(
                comments.insert()
                .returning(comments)
                .values(
                    forge=self._forge,
                    repo=repo,
                    number=number,
                    author=author,
                    body=body,
                    created_at=now,
                    updated_at=now,
                )
            )
            return _said(done.one())

    def said(self, repo: str, number: int, comment_id: str) -> Said:
        with self._store.read() as connection:
            return _said(self._comment(connection, repo, number, comment_id))

    def conversation(self, repo: str, number: int, since: datetime | None = None) -> tuple[Said, ...]:
        """The comments of a thread in the order they were made; with `since`, those written or edited from then on."""
        chosen = sa.select(comments).where(self._in(repo, number), comments.c.event == "").order_by(comments.c.id)
        if since is not None:
            chosen = chosen.where(comments.c.updated_at >= since.timestamp())
        with self._store.read() as connection:
            return tuple(_said(row) for row in connection.execute(chosen))

    def history(self, repo: str, number: int) -> tuple[Said | Change, ...]:
        """Comments and changes of a thread, in the order they were made."""
        chosen = sa.select(comments).where(self._in(repo, number)).order_by(comments.c.id)
        with self._store.read() as connection:
            return tuple(_change(row) if row.event else _said(row) for row in connection.execute(chosen))

    def edit(self, repo: str, number: int, comment_id: str, body: str) -> Said:
        """Gives a comment another text; returns it as it was before."""
        with self._store.write() as connection:
            before = self._comment(connection, repo, number, comment_id)
            connection.execute(
                comments.update().where(comments.c.id == before.id).values(body=body, updated_at=self._clock())
            )
            self._touch(connection, repo, number)
            return _said(before)

    def react(self, repo: str, number: int, comment_id: str, reaction: str) -> None:
        with self._store.write() as connection:
            row = self._comment(connection, repo, number, comment_id)
            all_of_them = dict.fromkeys([*json.loads(row.reactions), reaction])
            connection.execute(
                comments.update().where(comments.c.id == row.id).values(reactions=json.dumps(list(all_of_them)))
            )

    def _comment(self, connection: sa.Connection, repo: str, number: int, comment_id: str) -> sa.Row[Any]:
        if not (comment_id.isascii() and comment_id.isdigit() and len(comment_id) < 10):
            raise Gone(f"There is no comment {comment_id!r} on {repo}#{number}.")
        chosen = sa.select(comments).where(self._in(repo, number), comments.c.id == int(comment_id))
        chosen = chosen.where(comments.c.event == "").with_for_update()
        row = connection.execute(chosen).one_or_none()
        if row is None:
            raise Gone(f"There is no comment {comment_id} on {repo}#{number}.")
        return row

    def _touch(self, connection: sa.Connection, repo: str, number: int) -> bool:
        done = connection.execute(threads.update().where(self._is(repo, number)).values(at=self._clock()))
        return done.rowcount == 1

    def _is(self, repo: str, number: int) -> sa.ColumnElement[bool]:
        return sa.and_(threads.c.forge == self._forge, threads.c.repo == repo, threads.c.number == _key(number))

    def _in(self, repo: str, number: int) -> sa.ColumnElement[bool]:
        return sa.and_(comments.c.forge == self._forge, comments.c.repo == repo, comments.c.number == _key(number))


def _key(number: int) -> int:
    """`number`, or one that nothing has where it is more than a database's integer."""
    return number if 0 < number < 2**31 else 0


def _next_number(connection: sa.Connection, values: dict[str, Any]) -> int:
    highest = sa.select(sa.func.max(threads.c.number)).where(
        threads.c.forge == values["forge"], threads.c.repo == values["repo"]
    )
    for _ in range(TRIES_FOR_A_NUMBER):
        number = (connection.execute(highest).scalar() or 0) + 1
        try:
            with connection.begin_nested():
                connection.execute(threads.insert().values(values | {"number": number}))
        except IntegrityError:
            continue
        return number
    raise Unavailable(f"{values['repo']} gave no free number in {TRIES_FOR_A_NUMBER} tries. Try again.")


def _thread(row: sa.Row[Any]) -> Thread:
    return Thread(
        repo=Repo(row.forge, row.repo),
        number=row.number,
        kind=row.kind,
        title=row.title,
        body=row.body,
        author=row.author,
        state=row.state,
        head_ref=row.head_ref or "",
        base_ref=row.base_ref or "",
        labels=tuple(json.loads(row.labels)),
        assignees=tuple(json.loads(row.assignees)),
        at=_time(row.at),
    )


def _said(row: sa.Row[Any]) -> Said:
    return Said(
        id=str(row.id),
        author=row.author,
        body=row.body,
        created_at=_time(row.created_at),
        updated_at=_time(row.updated_at),
        reactions=tuple(json.loads(row.reactions)),
    )


def _change(row: sa.Row[Any]) -> Change:
    return Change(id=f"event-{row.id}", author=row.author, kind=row.event, what=row.body, at=_time(row.created_at))


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

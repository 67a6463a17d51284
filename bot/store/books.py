"""What was decided before: commands that were obeyed, holds, approvals, heads and files that were seen."""

from __future__ import annotations

import math

import sqlalchemy as sa

from bot.model import Subject, TicketRef
from bot.store import schema

commands = schema.commands.c
holds = schema.holds.c
settings = schema.settings.c
approvals = schema.approvals.c
heads = schema.heads.c


def name_of(subject: Subject, comment_id: str) -> str:
    """What a comment is called here among all of its repository's: a tracker numbers its notes by itself."""
    return f"{subject.tracker}:{comment_id}" if isinstance(subject, TicketRef) else comment_id


def obeyed(connection: sa.Connection, repo: str, comment_id: str, line: str, occurrence: int) -> bool:
    """Whether this occurrence of the command in this comment was obeyed already."""
    same = (
        (commands.repo == repo)
        & (commands.comment_id == comment_id)
        & (commands.line == line)
        & (commands.occurrence == occurrence)
    )
    return connection.execute(sa.select(commands.at).where(same)).first() is not None


def obey(connection: sa.Connection, repo: str, comment_id: str, line: str, occurrence: int, *, at: float) -> bool:
    """Notes that it is obeyed now; False when it was already."""
    if obeyed(connection, repo, comment_id, line, occurrence):
        return False
    row = {"repo": repo, "comment_id": comment_id, "line": line, "occurrence": occurrence, "at": at}
    connection.execute(schema.commands.insert().values(row))
    return True


def hold_on(connection: sa.Connection, subject: str) -> tuple[str, str] | None:
    """(by, reason) of the hold on it."""
    found = connection.execute(sa.select(holds.by, holds.reason).where(holds.subject == subject)).first()
    return (found[0], found[1]) if found else None


def all_holds(connection: sa.Connection) -> dict[str, str]:
    """What is on hold -> who put it there."""
    return {row.subject: row.by for row in connection.execute(sa.select(holds.subject, holds.by))}


def hold(connection: sa.Connection, subject: str, by: str, reason: str, at: float) -> None:
    unhold(connection, subject)
    connection.execute(schema.holds.insert().values(subject=subject, by=by, reason=reason, at=at))


def unhold(connection: sa.Connection, subject: str) -> None:
    connection.execute(schema.holds.delete().where(holds.subject == subject))


def approved(connection: sa.Connection, repo: str, sha: str) -> bool:
    query = sa.select(approvals.at).where(approvals.repo == repo, approvals.sha == sha)
    return connection.execute(query).first() is not None


def approve(connection: sa.Connection, repo: str, sha: str, by: str, at: float) -> None:
    if not approved(connection, repo, sha):
        connection.execute(schema.approvals.insert().values(repo=repo, sha=sha, by=by, at=at))


def head_before(connection: sa.Connection, subject: str, at: float, live: str) -> str | None:
    """The head that `live` took the place of after `at`, a time of the forge's; None where nothing says it did.

    In the same second counts as after: which came first can't be told then, and a run must not be for the later one.
    """
    of = sa.select(heads.head, heads.at).where(heads.subject == subject)
    since = connection.execute(of.where(heads.head == live).order_by(heads.seen_at.desc()).limit(1)).first()
    if since is None or since.at < at:
        return None
    return connection.execute(
        of.where(heads.head != live, heads.at <= since.at).order_by(heads.seen_at.desc())
    ).scalar()


def last_head(connection: sa.Connection, subject: str) -> str | None:
    """The head that was seen last."""
    query = sa.select(heads.head).where(heads.subject == subject).order_by(heads.seen_at.desc()).limit(1)
    return connection.execute(query).scalar()


def saw_head(
    connection: sa.Connection, subject: str, head: str, *, at: float, now: float, before: str | None = None
) -> None:
    """Notes a head as a delivery showed it; what was seen last already is not noted again.

    `before`: what a push took away, for who had not seen that: it stood there, nobody says since when.
    """
    known = last_head(connection, subject)
    if known == head:
        return
    if before is not None and before != known:
        _note_head(connection, subject, before, at=0.0, seen_at=math.nextafter(now, 0.0))
    _note_head(connection, subject, head, at=at, seen_at=now)


def _note_head(connection: sa.Connection, subject: str, head: str, *, at: float, seen_at: float) -> None:
    connection.execute(schema.heads.insert().values(subject=subject, head=head, at=at, seen_at=seen_at))


def good_file(connection: sa.Connection, repo: str) -> str | None:
    """The commit at which the repository's own file was right last; None where there was none then."""
    return connection.execute(sa.select(settings.value).where(settings.key == _file_key(repo))).scalar()


def file_is_good(connection: sa.Connection, repo: str, sha: str | None) -> None:
    """Notes the commit; None: there is no file now, and that is right, too."""
    connection.execute(schema.settings.delete().where(settings.key == _file_key(repo)))
    if sha is not None:
        connection.execute(schema.settings.insert().values(key=_file_key(repo), value=sha))


def _file_key(repo: str) -> str:
    return f"repository_file {repo}"

"""A Redmine as the bot sees it: the calls of `bot.trackers.Tracker`, through its REST API."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from bot.errors import Forbidden, Gone, Unavailable
from bot.fleet import RepoMap
from bot.forges import Comment, Reaction
from bot.model import Actor, AnyTicket, Permission, Repo, Thread, TicketRef
from bot.talk import Handing
from bot.trackers import PAGE, Claiming, Entry, Move, Ticket, Upload
from bot.trackers.notes import clean, in_textile, neutral
from bot.trackers.redmine import values
from bot.trackers.redmine.door import Door, Json, KeyRefused
from bot.trackers.redmine.settings import Settings

RIGHTS = (
    (Permission.ADMIN, "manage_members"),
    (Permission.MAINTAIN, "edit_project"),
    (Permission.WRITE, "edit_issues"),
    (Permission.TRIAGE, "edit_own_issues"),
    (Permission.READ, "view_issues"),
)
"""What a person may do here, by the strongest permission that one of their roles in the ticket's project has."""

NOBODY = Actor("", "")
"""Who has a ticket that is assigned to nobody."""

FEW = 25
"""Tickets asked for at a time where the first are most often enough: a page of 100 costs a site four times that."""


class Redmine:
    """A tracker of kind `redmine`. `projects` are the site's identifiers of the projects that are ours."""

    kind = "redmine"

    def __init__(
        self, name: str, settings: Settings, projects: Mapping[str, Repo], door: Door, repo_map: RepoMap
    ) -> None:
        self.name = name
        self._repo_map = repo_map
        self._settings = settings
        self._projects = dict(projects)
        self._door = door
        self._lock = threading.Lock()
        self._known: dict[str, Any] = {}
        self._logins: dict[int, str] = {}
        self._markdown = {"markdown": True, "textile": False}.get(settings.formatting)
        self.claiming = Claiming(
            enabled=settings.claim_enabled,
            claimable=settings.claimable_status,
            claimed=settings.claim_status,
            after=settings.status_map,
            link_field=settings.run_link_field,
            limit=settings.claim_limit_seconds,
            log_bytes=settings.attach_log_bytes if settings.attach_log else 0,
        )

    # who is who

    def me(self) -> Actor:
        found: Actor = self._once("me", self.whoami)
        return found

    def whoami(self) -> Actor:
        """Asks anew. A wrong key is no error on a public site, which then answers as to anybody: this call alone
        tells, by `Forbidden`."""
        try:
            user = self._myself()
        except KeyRefused as problem:
            raise Forbidden(str(problem)) from problem
        return Actor(str(user["login"]), str(user["id"]), is_bot=True)

    def permission(self, on: Thread, who: Actor) -> Permission:
        """By the roles of `who` in the ticket's project, as they are now; no member may READ what he can see."""
        if not who.id.isdecimal():
            return Permission.NONE
        project = self._project_id(self.project_of(_ref(on)))
        try:
            user = self._door.get(f"users/{who.id}", f"user {who.login}", include="memberships")["user"]
        except Gone:
            return Permission.NONE
        held = self._rights(user, project)
        return next((permission for permission, right in RIGHTS if right in held), Permission.READ)

    def _myself(self) -> Json:
        return dict(self._door.get("users/current", "the bot's own user", include="memberships")["user"])

    def _rights(self, user: Json, project: int) -> frozenset[str]:
        """What the user's roles in the project allow."""
        roles = {
            int(role["id"])
            for membership in user.get("memberships", ())
            if membership["project"]["id"] == project
            for role in membership["roles"]
        }
        rights = [self._door.get(f"roles/{role}", f"role {role}")["role"].get("permissions", ()) for role in roles]
        return frozenset(right for some in rights for right in some)

    # tickets

    def ticket(self, ref: AnyTicket) -> Ticket:
        ref = _ref(ref)
        issue = self._issue(ref.number, include="journals,allowed_statuses,relations,attachments")
        identifier = self._identifier_of(issue)
        if identifier is None or ref.repo not in self._repo_map.places(self._projects[identifier]):
            raise Gone(f"Ticket {ref} is in another project now.")
        return self._value(ref, issue, self._login)

    def find(self, number: int) -> TicketRef | None:
        try:
            issue = self._issue(number)
            identifier = self._identifier_of(issue)
        except KeyRefused as problem:
            raise Forbidden(str(problem)) from problem
        except (Gone, Forbidden):
            return None
        return self._ref(identifier, issue) if identifier else None

    def project_of(self, ref: TicketRef) -> str:
        """Where its repository does not tell, it is asked."""
        there = [name for name, repo in self._projects.items() if ref.repo in self._repo_map.places(repo)]
        found = there[0] if len(there) == 1 else self._identifier_of(self._issue(ref.number))
        if found is None:
            raise Gone(f"Ticket {ref} is in another project now.")
        return found

    def changed(self, project: str, since: datetime, skip: int = 0) -> tuple[Ticket, ...]:
        found = self._list(project, PAGE, skip, status_id="*", sort="updated_on:asc,id:asc", updated_on=_since(since))
        return tuple(found)

    def latest(self, project: str) -> datetime | None:
        found = self._list(project, 1, 0, status_id="*", sort="updated_on:desc,id:desc")
        return found[0].updated_at if found else None

    def claimable(self, project: str) -> Iterator[Ticket]:
        """A key that is refused would find what anybody may see, and nothing that may be claimed."""
        self.whoami()
        return self._in_status(project, self.claiming.claimable)

    def claimed(self, project: str) -> Iterator[Ticket]:
        return self._in_status(project, self.claiming.claimed)

    def open_among(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Those of these tickets, of any project, that are not closed."""
        wanted = ",".join(map(str, numbers))
        if not wanted:
            return ()
        found = self._door.get("issues", f"tickets {wanted}", issue_id=wanted, status_id="open", limit=PAGE)
        return tuple(int(issue["id"]) for issue in found["issues"])

    def _in_status(self, project: str, status: str) -> Iterator[Ticket]:
        seen: set[int] = set()
        offset = 0
        while True:
            page = self._list(
                project, FEW, offset, status_id=self._status_id(status), sort="priority:desc,created_on:asc,id:asc"
            )
            yield from (ticket for ticket in page if ticket.ref.number not in seen)
            seen |= {ticket.ref.number for ticket in page}
            if len(page) < FEW:
                return
            offset += FEW

    def _list(self, project: str, limit: int, offset: int, **query: object) -> list[Ticket]:
        what = f"the tickets of {project}"
        # Without `subproject_id` the tickets of all projects below come along.
        found = self._door.get(
            "issues", what, project_id=project, subproject_id="!*", limit=limit, offset=offset, **query
        )
        return [self._value(self._ref(project, issue), issue, self._known_login) for issue in found["issues"]]

    def _issue(self, number: int, **query: object) -> Json:
        issue = self._door.get(f"issues/{number}", f"ticket {number}", **query).get("issue")
        if not isinstance(issue, dict) or not isinstance(issue.get("project"), dict):
            raise Unavailable(f"Ticket {number} is not as Redmine documents it.")
        return issue

    def _value(self, ref: TicketRef, issue: Json, login: Any) -> Ticket:
        try:
            return values.ticket(ref, issue, self._statuses(), login, self.claiming)
        except (KeyError, TypeError, ValueError) as problem:
            raise Unavailable(f"Ticket {ref} is not as Redmine documents it ({type(problem).__name__}).") from problem

    # writing

    def write(
        self,
        ref: AnyTicket,
        note: str,
        *,
        to: Move | None = None,
        of: Actor | None = None,
        link: str | None = None,
        upload: Upload | None = None,
    ) -> Ticket:
        """The assignee is people's: a claim sets none, so none ends with it."""
        del of
        status = None if to is None else self.claiming.status(to)
        return self.put(_ref(ref), note, status=status, link=link, upload=upload)

    def hold(self, ticket: Ticket) -> Ticket:
        """The status went along with the note, or the workflow forbids it."""
        return ticket

    def put(
        self,
        ref: TicketRef,
        note: str,
        *,
        status: str | None = None,
        assignee: Actor | None = None,
        link: str | None = None,
        upload: Upload | None = None,
        private: bool = False,
    ) -> Ticket:
        """One write of all that. `private`: to be seen by those who may see private notes. Raises `Forbidden` where the
        bot may not: Redmine would make it public without a word."""
        change: dict[str, object] = {}
        if note:
            change["notes"] = clean(note)
        if private:
            me, project = self._myself(), self._project_id(self.project_of(ref))
            if not me.get("admin") and "set_notes_private" not in self._rights(me, project):
                raise Forbidden(f"The note on {ref} was to be private, and the bot's role may not set that.")
            change["private_notes"] = True
        if status is not None:
            change["status_id"] = self._status_id(status)
        if assignee is not None:
            change["assigned_to_id"] = assignee.id
        if link is not None and (field := self._link_field(ref)) is not None:
            change["custom_fields"] = [{"id": field, "value": link}]
        if upload is not None:
            change["uploads"] = [{"token": upload.token, "filename": upload.name, "content_type": "text/plain"}]
        self._door.put(f"issues/{ref.number}", f"ticket {ref.number}", {"issue": change})
        return self.ticket(ref)

    def upload(self, name: str, content: bytes) -> Upload:
        """What no note takes along, Redmine removes after a day (`redmine:attachments:prune`)."""
        return Upload(name, self._door.upload(name, content))

    def _link_field(self, ref: TicketRef) -> int | None:
        """The id of the field for the run's link: a ticket lists those of its project, even where they are empty."""
        name = self.claiming.link_field
        if name is None:
            return None
        if "link" not in self._known:
            fields = self._issue(ref.number).get("custom_fields", ())
            found = [int(field["id"]) for field in fields if field["name"] == name]
            if not found:
                return None  # this project has it not, another one may
            self._once("link", lambda: found[0])
        return int(self._known["link"])

    # notes as a conversation

    def comment(self, on: Thread, comment_id: str) -> Comment:
        """`Gone` for a private note: what is asked there would be answered in public."""
        ref = _ref(on)
        entry = next((one for one in self.ticket(ref).journal if one.id == comment_id), None)
        if entry is None or entry.private or not entry.text:
            raise Gone(f"Ticket {ref} has no note {comment_id} (any more).")
        return _comment(entry)

    def comments(self, on: Thread, *, since: datetime | None = None) -> tuple[Comment, ...]:
        return tuple(
            _comment(entry)
            for entry in self.ticket(_ref(on)).journal
            if entry.text and (since is None or entry.at >= since)
        )

    def post(self, on: Thread, body: str) -> str:
        return self._said(_ref(on), body)

    def hand_over(self, on: Thread, handing: Handing, body: str) -> str:
        """The status goes along where the bot's workflow lets it; the assignee and the note in any case."""
        ref, words = _ref(on), self.claiming
        wanted = words.claimable if handing.to is None else words.claimed
        may = {status.casefold() for status in self.ticket(ref).allowed or ()}
        status = wanted if words.enabled and wanted.casefold() in may else None
        return self._said(ref, body, status=status, assignee=handing.to or NOBODY)

    def _said(self, ref: TicketRef, body: str, *, status: str | None = None, assignee: Actor | None = None) -> str:
        text = self.render(body)
        after = self.put(ref, text, status=status, assignee=assignee)
        mine = [entry for entry in after.journal if entry.author.id == self.me().id]
        said = [entry for entry in mine if entry.text.strip() == text.strip()]
        if not said:
            raise Unavailable(f"The note on {ref} can't be read back.")
        return said[-1].id

    def edit(self, on: Thread, comment_id: str, body: str) -> None:  # noqa: ARG002
        """Notes stay as they were written: most roles may not edit even their own."""
        raise Forbidden(f"Notes on {self.name} are not edited.")

    def react(self, on: Thread, comment_id: str, reaction: Reaction) -> None:
        """Redmine has no reactions."""

    def is_ours(self, posted: str, body: str) -> bool:
        return posted.strip() == self.render(body).strip()

    def render(self, markdown: str) -> str:
        text = neutral(clean(markdown))
        return text if self._markdown else in_textile(text)

    def look_at_formatting(self, ref: AnyTicket, word: str) -> None:
        """Finds out how the site reads notes, once, where its table says `auto`: by the public feed of a ticket that
        has a note with `word` as a code span. Where nobody may read that, it stays textile, Redmine's own default."""
        if self._markdown is not None:
            return
        feed = self._door.public(f"issues/{ref.number}.atom") or ""
        if f"&lt;code&gt;{word}" in feed:
            self._markdown = True
        elif f"`{word}`" in feed:
            self._markdown = False

    # links

    def ticket_url(self, ref: AnyTicket) -> str:
        return f"{self._settings.url}/issues/{ref.number}"

    def comment_url(self, on: Thread, comment_id: str) -> str:
        # The number behind # is a note's place on the page; Redmine also finds `change-<id>`.
        return self.ticket_url(_ref(on)) + (f"#change-{comment_id}" if comment_id else "")

    # what changes seldom

    def _once(self, key: str, ask: Any) -> Any:
        with self._lock:
            if key in self._known:
                return self._known[key]
        found = ask()
        with self._lock:
            self._known[key] = found
        return found

    def _statuses(self) -> dict[int, str]:
        found: dict[int, str] = self._once(
            "statuses",
            lambda: {
                int(s["id"]): str(s["name"]) for s in self._door.get("issue_statuses", "statuses")["issue_statuses"]
            },
        )
        return found

    def _status_id(self, name: str) -> int:
        for number, known in self._statuses().items():
            if known.casefold() == name.casefold():
                return number
        raise Forbidden(f'[trackers.{self.name}] names the status "{name}", and Redmine has none of that name.')

    def _project_id(self, identifier: str) -> int:
        found: int = self._once(
            f"project {identifier}",
            lambda: int(self._door.get(f"projects/{identifier}", f"project {identifier}")["project"]["id"]),
        )
        return found

    def _identifier_of(self, issue: Json) -> str | None:
        """Which of our projects it is in: a ticket tells its project's number alone."""
        wanted = int(issue["project"]["id"])
        for identifier in self._projects:
            try:
                if self._project_id(identifier) == wanted:
                    return identifier
            except (Gone, Forbidden):
                continue
        return None

    def _ref(self, identifier: str, issue: Json) -> TicketRef:
        category = issue.get("category")
        name = str(category["name"]) if isinstance(category, dict) and "name" in category else None
        number = int(issue["id"])
        repo = self._repo_map.repository(number, name, default=self._projects[identifier])
        return TicketRef(repo, self.name, number)

    def _known_login(self, number: int, name: str) -> str:
        return self._logins.get(number, name)

    def _login(self, number: int, name: str) -> str:
        """The login of a user's id; the full name where the bot may not see the user."""
        if number not in self._logins:
            try:
                user = self._door.get(f"users/{number}", f"user {number}")["user"]
            except (Gone, Forbidden):
                return re.sub(r"\s+", "-", name) or "anonymous"
            self._logins[number] = str(user.get("login") or name)
        return self._logins[number]


def _ref(on: Thread) -> TicketRef:
    if not isinstance(on, TicketRef):
        raise TypeError(f"{on} is no ticket of a tracker")
    return on


def _since(at: datetime) -> str:
    return f">={values.told(at)}"


def _comment(entry: Entry) -> Comment:
    return Comment(entry.id, entry.author, entry.text, entry.at, entry.at)

"""What people do on a local forge: each act is written to the store, and told as the event that a webhook brings."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from bot.errors import Gone, UserError
from bot.forges.local.forge import BOT, Local, actor
from bot.forges.local.threads import Thread
from bot.model import (
    BranchRef,
    Closed,
    Commented,
    Event,
    Happening,
    IssueRef,
    Labeled,
    Opened,
    PullRef,
    Pushed,
    Repo,
    Sha,
    Subject,
    Updated,
)

MAX_TEXT = 65_536
MAX_LINE = 256
HOOK_SECONDS = 600
"""How late git's hook may tell of a push."""
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,38}(\[bot\])?")


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody did on a pull request or issue, as an event; `comment_id` is empty where nothing was said."""

    on: PullRef | IssueRef
    event: Event
    comment_id: str = ""


class People:
    """The people's side of `forge`. Raises `UserError` with what to do instead.

    It asks for no password: who can write to the home can be anyone here.
    """

    def __init__(
        self,
        forge: Local,
        *,
        clock: Callable[[], float] = time.time,
        new_delivery: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._forge = forge
        self._clock = clock
        self._new_delivery = new_delivery

    def thread(self, repo: str, number: int) -> Thread:
        """The pull request or issue with that number."""
        self._here(repo)
        try:
            return self._forge.threads.thread(repo, number)
        except Gone as problem:
            raise UserError(f"{problem} `leadsman local list {repo}` shows what there is.") from problem

    def open_pull(
        self, repo: str, *, head: str, base: str | None, title: str | None, author: str, body: str = ""
    ) -> Act:
        """Opens a pull request for the branch `head`. Default base: the default branch; default title: `head`."""
        base = base or self._default_branch(repo)
        tip, onto = self._branch(repo, head), self._branch(repo, base)
        bares = self._forge.bares
        if bares.merge_base(repo, tip, onto) == tip:
            raise UserError(f"{head} has no commits that {base} does not have. Commit to it and push it first.")
        for other in self._forge.threads.listing(repo):
            if (other.kind, other.state, other.head_ref, other.base_ref) == ("pull", "open", head, base):
                raise UserError(f"{repo}#{other.number} is open for {head} into {base} already. Push to the branch.")
        thread = self._forge.threads.open(
            repo,
            "pull",
            title=_line(title or head),
            body=_text(body),
            author=_login(author),
            head_ref=head,
            base_ref=base,
        )
        bares.keep_pull_head(repo, thread.number, tip)
        return Act(thread.ref, self._event(thread.ref, author, Opened(title=thread.title), tip))

    def open_issue(self, repo: str, *, title: str, author: str, body: str = "") -> Act:
        self._here(repo)
        thread = self._forge.threads.open(repo, "issue", title=_line(title), body=_text(body), author=_login(author))
        return Act(thread.ref, self._event(thread.ref, author, Opened(title=thread.title)))

    def comment(self, repo: str, number: int, *, author: str, text: str) -> Act:
        if not text.strip():
            raise UserError("A comment needs a text.")
        thread = self.thread(repo, number)
        said = self._forge.threads.say(repo, number, _login(author), _text(text))
        happening = Commented(comment_id=said.id, author=actor(author), text=said.body, before=None)
        return Act(thread.ref, self._event(thread.ref, author, happening, self._head(thread)), said.id)

    def edit_comment(self, repo: str, number: int, comment_id: str, *, editor: str, text: str) -> Event:
        thread = self.thread(repo, number)
        _login(editor)
        try:
            before = self._forge.threads.edit(repo, number, comment_id, _text(text))
        except Gone as problem:
            raise UserError(f"{problem} `leadsman local show {repo}#{number}` lists them.") from problem
        happening = Commented(comment_id=before.id, author=actor(before.author), text=text, before=before.body)
        return self._event(thread.ref, editor, happening, self._head(thread))

    def close(self, repo: str, number: int, *, author: str) -> Event | None:
        """Closes a pull request or issue; None when it was closed before."""
        _login(author)
        thread = self.thread(repo, number)
        head = self._head(thread)  # read while it is open: from now on it stays
        if not self._forge.threads.end(repo, number, "closed"):
            return None
        return self._event(thread.ref, author, Closed(merged=False), head)

    def label(self, repo: str, number: int, label: str, *, author: str) -> Event | None:
        """Sets a label; None when it was set before."""
        _login(author)
        thread, label = self.thread(repo, number), _line(label)
        if not self._forge.threads.label(repo, number, label, on=True, by=author):
            return None
        return self._event(thread.ref, author, Labeled(label=label), self._head(thread))

    def unlabel(self, repo: str, number: int, label: str, *, author: str) -> Event | None:
        """Takes a label off; None when it was not on, and for a pull request, where nothing waits for it."""
        _login(author)
        thread, label = self.thread(repo, number), _line(label)
        was = self._forge.threads.label(repo, number, label, on=False, by=author)
        return self._updated(thread, author, Updated("", label, "", assignee=False)) if was else None

    def assign(self, repo: str, number: int, who: str, *, on: bool, author: str) -> Event | None:
        """Assigns somebody, or nobody of that name any more; None where that changes nothing."""
        _login(author)
        thread = self.thread(repo, number)
        after = {*thread.assignees, who} if on else {*thread.assignees} - {who}
        if not self._forge.threads.assign(repo, number, after, by=author):
            return None
        return self._updated(thread, author, Updated("", "", "", assignee=True))

    def _updated(self, thread: Thread, author: str, what: Updated) -> Event | None:
        return self._event(thread.ref, author, what) if isinstance(thread.ref, IssueRef) else None

    def pushed(self, repo: str, ref: str, before: Sha | None, after: Sha | None, *, author: str) -> tuple[Event, ...]:
        """A push to a branch, as git's post-receive hook tells it: for it, and for each pull request it touches."""
        self._here(repo)
        if not ref.startswith("refs/heads/"):
            return ()
        _login(author)
        branch = ref.removeprefix("refs/heads/")
        events = [self._event(BranchRef(self._repo(repo), ref), author, Pushed(before, after), after)]
        for thread in self._forge.threads.listing(repo):
            if thread.kind == "pull" and thread.state == "open" and branch in {thread.head_ref, thread.base_ref}:
                events += self._settle(thread, branch, before, after, author)
            elif branch == thread.base_ref and self._was_merged_by(thread, before, after):
                merged = PullRef(thread.repo, thread.number)
                events.append(self._event(merged, author, Closed(merged=True), self._head(thread)))
        return tuple(events)

    def make_repository(self, repo: str, *, source: Path | None, author: str) -> Path:
        """A new repository: with everything of `source`, or with one commit of a README. Where it is."""
        try:
            return self._forge.bares.make(repo, source=source, author=_login(author))
        except Gone as problem:
            raise UserError(f"{problem} A name looks like acme/shop.") from problem

    def _settle(self, thread: Thread, branch: str, before: Sha | None, after: Sha | None, author: str) -> list[Event]:
        ref = PullRef(thread.repo, thread.number)
        now, head = self._forge.settled(ref)
        events = []
        if branch == thread.head_ref and after is not None:
            events.append(self._event(ref, author, Pushed(before, after), head))
        if now.state == "merged":
            events.append(self._event(ref, author, Closed(merged=True), head))
        return events

    def _was_merged_by(self, thread: Thread, before: Sha | None, after: Sha | None) -> bool:
        """Whether it was this push that merged it, and somebody has looked at it before git's hook came to tell."""
        if thread.state != "merged" or self._clock() - thread.at.timestamp() > HOOK_SECONDS or not (before and after):
            return False
        head, name = self._head(thread), thread.repo.name
        holds = [self._forge.bares.merge_base(name, base, head) == head for base in (before, after) if head]
        return holds == [False, True]

    def _event(self, subject: Subject, login: str, what: Happening, head: Sha | None = None) -> Event:
        return Event(
            source=self._forge.name,
            delivery=self._new_delivery(),
            subject=subject,
            actor=actor(login),
            what=what,
            head_sha=head,
            at=datetime.fromtimestamp(self._clock(), UTC),
        )

    def _repo(self, name: str) -> Repo:
        return Repo(self._forge.name, name)

    def _here(self, repo: str) -> None:
        try:
            self._forge.bares.path(repo)
        except Gone as problem:
            raise UserError(f"{problem} `leadsman local init-repo {repo}` makes one.") from problem

    def _default_branch(self, repo: str) -> str:
        self._here(repo)
        return self._forge.bares.default_branch(repo)

    def _branch(self, repo: str, branch: str) -> Sha:
        self._here(repo)
        sha = self._forge.bares.branch(repo, branch)
        if sha is None:
            raise UserError(f"There is no branch {branch} in {repo}. Push it to {self._forge.bares.path(repo)} first.")
        return sha

    def _head(self, thread: Thread) -> Sha | None:
        match thread.ref:
            case PullRef() as ref:
                return self._forge.settled(ref)[1]
            case IssueRef():
                return None


def _login(login: str) -> str:
    if not _LOGIN.fullmatch(login) or login == BOT:
        raise UserError(f"{login!r} can't be a person's login here. Use letters, digits, dots and dashes.")
    return login


def _text(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise UserError(f"The text has {len(text)} characters; a comment takes {MAX_TEXT}. Make it shorter.")
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise UserError("The text is not valid UTF-8. Write it in UTF-8.") from problem
    if "\0" in text:
        raise UserError("The text has a NUL character in it. Leave it out.")
    return text


def _line(text: str) -> str:
    line = " ".join(_text(text).split())
    if not line or len(line) > MAX_LINE:
        raise UserError(f"A title or label needs 1 to {MAX_LINE} characters; this one has {len(line)}.")
    return line

"""The local forge as the bot sees it: the calls of `bot.forges.Forge`, answered by a folder and the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from urllib.parse import quote

from bot.errors import Gone
from bot.forges import Comment, CommitStatus, GitAccess, Issue, Past, Pull, Reaction, RepoFacts
from bot.forges.local.bares import Bares
from bot.forges.local.settings import Settings, right
from bot.forges.local.threads import Change, Kind, Said, Thread, Threads
from bot.model import Actor, IssueRef, Permission, PullRef, Repo, Sha

BOT = "leadsman[bot]"


class Local:
    """A forge of kind `local`. `threads` and `bares` are its two halves, for the people's side and the pages."""

    kind = "local"
    hooks = None
    news = None
    checkup = None

    def __init__(
        self, *, name: str, settings: Settings, threads: Threads, bares: Bares, public_url: str, owner: str
    ) -> None:
        self.name = name
        self.threads = threads
        self.bares = bares
        self._settings = settings
        self._public_url = public_url
        self._owner = owner

    def me(self) -> Actor:
        return actor(BOT)

    def repository(self, repo: Repo) -> RepoFacts:
        name = self.bare(repo)
        return RepoFacts(
            repo=repo,
            default_branch=self.bares.default_branch(name),
            clone_url=str(self.bares.path(name)),
            web_url=self._url(repo),
        )

    def branch_sha(self, repo: Repo, branch: str) -> Sha:
        sha = self.bares.branch(self.bare(repo), branch)
        if sha is None:
            raise Gone(f"There is no branch {branch} in {repo.name}.")
        return sha

    def file(self, repo: Repo, path: str, at: Sha) -> bytes | None:
        return self.bares.file(self.bare(repo), path, at)

    def pull(self, ref: PullRef) -> Pull:
        thread, head = self.settled(ref)
        return Pull(
            ref=ref,
            title=thread.title,
            author=actor(thread.author),
            open=thread.state == "open",
            merged=thread.state == "merged",
            head_sha=head,
            head_ref=thread.head_ref,
            head_repo=ref.repo.name,
            base_ref=thread.base_ref,
            labels=thread.labels,
            updated_at=thread.at,
        )

    def changed_between(self, repo: Repo, before: Sha, after: Sha) -> tuple[str, ...] | None:
        return self.bares.changed_between(self.bare(repo), before, after)

    def changed_files(self, ref: PullRef) -> tuple[str, ...]:
        thread, head = self.settled(ref)
        return self.bares.changed_files(ref.repo.name, self.branch_sha(ref.repo, thread.base_ref), head)

    def issue(self, ref: IssueRef) -> Issue:
        thread = self.thread(ref)
        return Issue(
            ref=ref,
            title=thread.title,
            body=thread.body,
            author=actor(thread.author),
            open=thread.state == "open",
            labels=thread.labels,
            assignees=thread.assignees,
            updated_at=thread.at,
        )

    def labeled(self, repo: Repo, label: str, *, open_only: bool) -> Iterable[Issue]:
        listed = reversed(self.threads.listing(self.bare(repo)))
        issues = (self.issue(ref) for one in listed if isinstance(ref := one.ref, IssueRef))
        return [one for one in issues if one.has(label) and (one.open or not open_only)]

    def history(self, ref: IssueRef) -> tuple[Past, ...]:
        self.thread(ref)
        return tuple(_past(one) for one in self.threads.history(ref.repo.name, ref.number))

    def permission(self, repo: Repo, who: Actor) -> Permission:
        self.bare(repo)
        return Permission.WRITE if who.login == BOT else right(self._settings, who.login, self._owner)

    def comment(self, on: PullRef | IssueRef, comment_id: str) -> Comment:
        return _comment(self.threads.said(self.bare(on.repo), on.number, comment_id))

    def comments(self, on: PullRef | IssueRef, *, since: datetime | None = None) -> Iterable[Comment]:
        self.thread(on)
        return [_comment(said) for said in self.threads.conversation(on.repo.name, on.number, since)]

    def post(self, on: PullRef | IssueRef, body: str) -> str:
        self.thread(on)
        return self.threads.say(on.repo.name, on.number, BOT, body).id

    def edit(self, on: PullRef | IssueRef, comment_id: str, body: str) -> None:
        self.threads.edit(self.bare(on.repo), on.number, comment_id, body)

    def assign(self, on: PullRef | IssueRef, logins: Collection[str]) -> None:
        self.threads.assign(self.bare(on.repo), on.number, logins, by=BOT)

    def label(self, on: PullRef | IssueRef, name: str) -> None:
        self.thread(on)
        self.threads.label(on.repo.name, on.number, name, on=True, by=BOT)

    def unlabel(self, on: PullRef | IssueRef, name: str) -> None:
        self.thread(on)
        self.threads.label(on.repo.name, on.number, name, on=False, by=BOT)

    def react(self, on: PullRef | IssueRef, comment_id: str, reaction: Reaction) -> None:
        self.threads.react(self.bare(on.repo), on.number, comment_id, reaction)

    def git(self, repo: Repo) -> GitAccess:
        return GitAccess(url=str(self.bares.path(self.bare(repo))))

    def set_status(self, repo: Repo, sha: Sha, status: CommitStatus) -> None:
        """There is nowhere to show it: the comment says the same."""

    def open_pull(self, repo: Repo, *, head: str, base: str, title: str, body: str, draft: bool) -> str:  # noqa: ARG002
        """There are no drafts here."""
        name = self.bare(repo)
        for thread in self.threads.listing(name):
            if thread.state == "open" and (thread.head_ref, thread.base_ref) == (head, base):
                return self.thread_url(thread.ref)
        made = self.threads.open(name, "pull", title=title, body=body, author=BOT, head_ref=head, base_ref=base)
        return self.thread_url(made.ref)

    def protected(self, repo: Repo, branch: str) -> bool:  # noqa: ARG002
        """Nothing is: who may write into the folder may push."""
        return False

    def thread_url(self, on: PullRef | IssueRef) -> str:
        return f"{self._url(on.repo)}/{on.number}"

    def comment_url(self, on: PullRef | IssueRef, comment_id: str) -> str:
        return f"{self.thread_url(on)}#comment-{comment_id}"

    def commit_url(self, repo: Repo, sha: Sha) -> str:
        return f"{self._url(repo)}/commit/{sha}"

    def branch_url(self, repo: Repo, branch: str) -> str:
        return f"{self._url(repo)}/branch/{quote(branch)}"

    def bare(self, repo: Repo) -> str:
        """The repository's name, once it is known to be one of this forge. Raises `Gone`."""
        if repo.forge != self.name:
            raise Gone(f"{repo} is not on the forge {self.name}.")
        self.bares.path(repo.name)
        return repo.name

    def thread(self, ref: PullRef | IssueRef) -> Thread:
        """The pull request or issue; one is not the other. Raises `Gone`."""
        found = self.threads.thread(self.bare(ref.repo), ref.number)
        if found.kind != ref.kind:
            raise Gone(f"{ref.repo.name}#{ref.number} is {_A[found.kind]}, not {_A[ref.kind]}.")
        return found

    def settled(self, ref: PullRef) -> tuple[Thread, Sha]:
        """The pull request with its head, once both say what the repository says now.

        While it is open, `refs/pull/<n>/head` follows its branch, and it is merged as soon as its base holds its head.
        After that, or once the branch is gone, the head is the last one seen.
        """
        thread = self.thread(ref)
        name = ref.repo.name
        kept = self.bares.pull_head(name, ref.number)
        live = self.bares.branch(name, thread.head_ref) if thread.state == "open" else None
        head = live or kept
        if head is None:
            raise Gone(f"{name}#{ref.number} has no head: its branch {thread.head_ref} is gone.")
        if thread.state != "open":
            return thread, head
        moved = self.bares.keep_pull_head(name, ref.number, head)
        base = self.bares.branch(name, thread.base_ref)
        merged = base is not None and self.bares.merge_base(name, base, head) == head
        if merged:
            self.threads.end(name, ref.number, "merged")
        elif moved:
            self.threads.touch(name, ref.number)
        return (self.thread(ref) if moved or merged else thread), head

    def _url(self, repo: Repo) -> str:
        return f"{self._public_url}/local/{repo.name}"


_A: dict[Kind, str] = {"pull": "a pull request", "issue": "an issue"}


def actor(login: str) -> Actor:
    """The person or bot behind a login; here the login is the id, too."""
    return Actor(login=login, id=login, is_bot=login.endswith("[bot]"))


def _past(one: Said | Change) -> Past:
    if isinstance(one, Said):
        return Past(id=one.id, author=actor(one.author), at=one.created_at, text=one.body)
    return Past(
        id=one.id,
        author=actor(one.author),
        at=one.at,
        set_label=one.what if one.kind == "labeled" else "",
        lost_label=one.what if one.kind == "unlabeled" else "",
        assigns=one.kind in ("assigned", "unassigned"),
    )


def _comment(said: Said) -> Comment:
    return Comment(
        id=said.id,
        author=actor(said.author),
        body=said.body,
        created_at=said.created_at,
        updated_at=said.updated_at,
    )

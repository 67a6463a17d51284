"""GitHub as a forge: each call of `bot.forges.Forge`, by one request where GitHub has one for it."""

from __future__ import annotations

import base64
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from urllib.parse import quote

import github
from github.GithubObject import NotSet
from github.IssueComment import IssueComment
from github.Repository import Repository

from bot.errors import Gone, UserError
from bot.forges import Comment, CommitStatus, GitAccess, Issue, Past, Pull, Reaction, RepoFacts
from bot.forges.github import history, values
from bot.forges.github.access import Access, there
from bot.forges.github.checkup import Checkup
from bot.forges.github.hooks import Hooks
from bot.forges.github.news import News
from bot.forges.github.settings import Settings
from bot.forges.github.values import given
from bot.model import Actor, IssueRef, Permission, PullRef, Repo, Sha

MOST_FILES = 3000
"""GitHub lists no more of a pull request: https://docs.github.com/en/rest/pulls/pulls#list-pull-requests-files"""

_MOST_COMPARED = 300
"""And no more of a comparison."""

_STATUS_TEXT = 140
"""Characters that a commit status' description may have."""


class Github:
    """`bot.forges.Forge` on GitHub."""

    kind = "github"

    def __init__(self, name: str, settings: Settings, access: Access) -> None:
        self.name = name
        self.hooks = Hooks(access)
        self.news = News(name, settings, access)
        self.checkup = Checkup(name, settings, access)
        self._web = settings.web_url
        self._is_app = settings.app_id is not None
        self._access = access
        self._lock = threading.Lock()
        self._me: Actor | None = None

    @contextmanager
    def _there(self, repo: Repo, what: str, *, writes: bool = False) -> Iterator[Repository]:
        """The repository, unread, for one call."""
        with there(self._access, repo, what, writes=writes) as found:
            yield found

    def me(self) -> Actor:
        with self._lock:
            if self._me is None:
                self._me = self._access.me()
            return self._me

    # the repository

    def repository(self, repo: Repo) -> RepoFacts:
        with self._there(repo, "the default branch") as there:
            branch = given(there.default_branch)
        return RepoFacts(repo, branch, self.git_url(repo), f"{self._web}/{repo.name}")

    def branch_sha(self, repo: Repo, branch: str) -> Sha:
        """By its ref: the call for branches would follow a rename to another branch."""
        with self._there(repo, f"branch {branch}") as there:
            return Sha(given(there.get_git_ref(f"heads/{branch}").object.sha))

    def file(self, repo: Repo, path: str, at: Sha) -> bytes | None:
        """None where no file stands. Above a megabyte the content comes with a second call."""
        with self._there(repo, f"{path} at {at}") as there:
            try:
                found = there.get_contents(path, ref=at)
            except github.UnknownObjectException:
                return None
            if isinstance(found, list) or found.type != "file":
                return None
            if found.encoding == "base64":
                return found.decoded_content
            return base64.b64decode(there.get_git_blob(found.sha).content)

    def changed_between(self, repo: Repo, before: Sha, after: Sha) -> tuple[str, ...] | None:
        """The paths that a push changed, old and new names of a rename; None where GitHub can't tell them all.

        It compares with the commit where the two met: what a forced push took away does not show.
        """
        try:
            with self._there(repo, f"{before}...{after}") as there:
                found = there.compare(before, after)
                files = given(found.files)
                whole = given(found.status) in ("ahead", "identical") and len(files) < _MOST_COMPARED
        except Gone:
            return None
        return _paths((file.filename, file.previous_filename) for file in files) if whole else None

    # pull requests and issues

    def pull(self, ref: PullRef) -> Pull:
        with self._there(ref.repo, f"#{ref.number}") as there:
            return values.pull(ref, there.get_pull(ref.number))

    def changed_files(self, ref: PullRef) -> tuple[str, ...]:
        """Every path that the pull request touches: of a renamed file the old name, too."""
        with self._there(ref.repo, f"the files of #{ref.number}") as there:
            pull = there.get_pull(ref.number)
            files = [(file.filename, file.previous_filename) for file in pull.get_files()]
            count = pull.changed_files if len(files) >= MOST_FILES else len(files)
        if count > MOST_FILES:
            raise UserError(
                f"#{ref.number} changes {count} files, and GitHub lists only {MOST_FILES} of them. "
                "Split it: what is not listed can't be judged."
            )
        return _paths(iter(files))

    def issue(self, ref: IssueRef) -> Issue:
        with self._there(ref.repo, f"#{ref.number}") as there:
            return values.issue(ref, there.get_issue(ref.number))

    def labeled(self, repo: Repo, label: str, *, open_only: bool) -> tuple[Issue, ...]:
        with self._there(repo, f"the issues with the label {label}") as there:
            return tuple(history.labeled(repo, there, label, open_only=open_only))

    def history(self, ref: IssueRef) -> tuple[Past, ...]:
        with self._there(ref.repo, f"what happened on #{ref.number}") as there:
            return tuple(history.history(there, ref.number))

    def permission(self, repo: Repo, who: Actor) -> Permission:
        try:
            with self._there(repo, f"the rights of {who.login}") as there:
                path = f"{there.url}/collaborators/{quote(who.login, safe='')}/permission"
                _, answer = there.requester.requestJsonAndCheck("GET", path)
                return values.permission(answer, who)
        except Gone:
            return Permission.NONE

    # comments

    def comment(self, on: PullRef | IssueRef, comment_id: str) -> Comment:
        """`Gone` for a comment that stands on another issue: GitHub numbers them by repository."""
        with self._there(on.repo, f"comment {comment_id}") as there:
            found = _comment(there, on, comment_id)
            if given(found.issue_url).rpartition("/")[2] != str(on.number):
                raise Gone(f"Comment {comment_id} stands on another issue than #{on.number}.")
            return values.comment(found)

    def comments(self, on: PullRef | IssueRef, *, since: datetime | None = None) -> tuple[Comment, ...]:
        """Oldest first; `since`: those written or edited at or after that second."""
        with self._there(on.repo, f"the comments of #{on.number}") as there:
            start = NotSet if since is None else since.astimezone(UTC)
            return tuple(values.comment(found) for found in there.get_issue(on.number).get_comments(start))

    def post(self, on: PullRef | IssueRef, body: str) -> str:
        with self._there(on.repo, f"a new comment on #{on.number}", writes=True) as there:
            return f"{there.get_issue(on.number).create_comment(body).id:d}"

    def edit(self, on: PullRef | IssueRef, comment_id: str, body: str) -> None:
        with self._there(on.repo, f"comment {comment_id}", writes=True) as there:
            _comment(there, on, comment_id).edit(body)

    def assign(self, on: PullRef | IssueRef, logins: Collection[str]) -> None:
        with self._there(on.repo, f"the assignees of #{on.number}", writes=True) as there:
            issue = there.get_issue(on.number)
            present = {person.login for person in issue.assignees}
            if gone := present - set(logins):
                issue.remove_from_assignees(*sorted(gone))
            if new := set(logins) - present:
                issue.add_to_assignees(*sorted(new))

    def label(self, on: PullRef | IssueRef, name: str) -> None:
        with self._there(on.repo, f"a label of #{on.number}", writes=True) as there:
            there.get_issue(on.number).add_to_labels(name)

    def unlabel(self, on: PullRef | IssueRef, name: str) -> None:
        with suppress(Gone), self._there(on.repo, f"a label of #{on.number}", writes=True) as there:
            there.get_issue(on.number).remove_from_labels(name)

    def react(self, on: PullRef | IssueRef, comment_id: str, reaction: Reaction) -> None:
        with self._there(on.repo, f"a reaction to comment {comment_id}", writes=True) as there:
            _comment(there, on, comment_id).create_reaction(reaction)

    # git and links

    def git_url(self, repo: Repo) -> str:
        return f"{self._web}/{repo.name}.git"

    def git(self, repo: Repo) -> GitAccess:
        """The name before the token is what GitHub's manual gives for an App's; any does for an account's."""
        return GitAccess(self.git_url(repo), "x-access-token", self._access.secret(repo))

    def comment_url(self, on: PullRef | IssueRef, comment_id: str) -> str:
        kind = "pull" if isinstance(on, PullRef) else "issues"
        return f"{self._web}/{on.repo.name}/{kind}/{on.number}#issuecomment-{comment_id}"

    def commit_url(self, repo: Repo, sha: Sha) -> str:
        return f"{self._web}/{repo.name}/commit/{sha}"

    def branch_url(self, repo: Repo, branch: str) -> str:
        return f"{self._web}/{repo.name}/tree/{quote(branch)}"

    def protected(self, repo: Repo, branch: str) -> bool:
        """https://docs.github.com/en/rest/branches/branches#get-a-branch"""
        try:
            with self._there(repo, f"the protection of {branch}") as there:
                url = f"{there.url}/branches/{quote(branch, safe='')}"
                _, answer = there.requester.requestJsonAndCheck("GET", url)
                # GitHub follows a rename: then it is another branch's protection, and this one is not there.
                return bool(answer["protected"]) and answer["name"] == branch
        except Gone:
            return False

    def open_pull(self, repo: Repo, *, head: str, base: str, title: str, body: str, draft: bool) -> str:
        """https://docs.github.com/en/rest/pulls/pulls#create-a-pull-request"""
        with self._there(repo, f"the pull request of {head}", writes=True) as there:
            owner = repo.name.partition("/")[0]
            query = {"head": f"{owner}:{head}", "base": base, "state": "open"}
            _, found = there.requester.requestJsonAndCheck("GET", f"{there.url}/pulls", query)
            if found:
                return str(found[0]["html_url"])
            wish = {"head": head, "base": base, "title": title, "body": body, "draft": draft}
            _, made = there.requester.requestJsonAndCheck("POST", f"{there.url}/pulls", input=wish)
            return str(made["html_url"])

    def set_status(self, repo: Repo, sha: Sha, status: CommitStatus) -> None:
        """A check run where the bot is an App: only that has a word for neither; else a commit status, where it stays
        pending. https://docs.github.com/en/rest/checks/runs, https://docs.github.com/en/rest/commits/statuses"""
        with self._there(repo, f"the status of {sha}", writes=True) as there:
            if self._is_app:
                path, body = "check-runs", _check_run(sha, status)
            else:
                path, body = f"statuses/{sha}", _commit_status(status)
            there.requester.requestJsonAndCheck("POST", f"{there.url}/{path}", input=body)

    def close(self) -> None:
        """Ends the connections that are open."""
        self._access.close()


_STATES = {"green": "success", "red": "failure", "neutral": "pending"}
_CONCLUSIONS = {"green": "success", "red": "failure", "neutral": "neutral"}


def _commit_status(status: CommitStatus) -> dict[str, object]:
    text = status.text if len(status.text) <= _STATUS_TEXT else f"{status.text[: _STATUS_TEXT - 1]}…"
    return {"state": _STATES[status.grade], "context": status.name, "description": text, "target_url": status.url}


def _check_run(sha: Sha, status: CommitStatus) -> dict[str, object]:
    return {
        "name": status.name,
        "head_sha": sha,
        "external_id": status.run,
        "details_url": status.url,
        "status": "completed",
        "conclusion": _CONCLUSIONS[status.grade],
        "output": {"title": status.text, "summary": status.text},
    }


def _comment(there: Repository, on: PullRef | IssueRef, comment_id: str) -> IssueComment:
    """The comment, unread."""
    if not (comment_id.isascii() and comment_id.isdecimal()):
        raise Gone(f"{comment_id!r} is no comment of GitHub's.")
    return there.get_issue(on.number).get_comment(int(comment_id))


def _paths(names: Iterator[tuple[str, str | None]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for pair in names for name in pair if name))

"""A repository of the world: a real bare git repository, its collaborators, issues, pull requests and statuses."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from tests.world import deliveries
from tests.world.gitrepo import ZERO, BareRepo, Files
from tests.world.state import Activity, CheckRun, Comment, Hook, IssueEvent, Label, Role, Status, User
from tests.world.threads import Issue, Pull

if TYPE_CHECKING:
    from tests.world.world import World


class Repository:
    """`world.repo("acme/shop", files={...})`."""

    def __init__(
        self, world: World, owner: User, name: str, *, private: bool, parent: Repository | None = None
    ) -> None:
        self.world = world
        self.id = world.new_id()
        self.owner = owner
        self.name = name
        self.private = private
        self.parent = parent
        self.default_branch: str = "main" if parent is None else parent.default_branch
        self.created_at: datetime = world.now()
        self.pushed_at = self.created_at
        self.git = BareRepo(world.git_root / f"{self.full_name}.git")
        if parent is None:
            self.git.create(self.default_branch)
        else:
            self.git.fork_of(parent.git)
        self.roles: dict[int, Role] = {}
        self.threads: dict[int, Issue] = {}
        self.comments: dict[int, Comment] = {}
        self.labels: dict[str, Label] = {}
        self.statuses: list[Status] = []
        self.check_runs: list[CheckRun] = []
        self.hooks: list[Hook] = []
        self.issue_events: list[IssueEvent] = []
        self.activity: list[Activity] = []
        self.rules: dict[str, tuple[str, ...]] = {}
        """Glob of branches -> types of the rules that a ruleset has for them."""
        self.protected: set[str] = set()
        self.has_issues = True

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def clone_url(self) -> str:
        return f"{self.world.url}/{self.full_name}.git"

    # who may do what

    def allow(self, who: str | User, role: str, *, base: str | None = None) -> Repository:
        """Gives a role; a name that is none of GitHub's five is a custom role, which builds on `base`."""
        self.roles[self.world.person(who).id] = Role(role, base or role)
        return self

    def revoke(self, who: str | User) -> None:
        self.roles.pop(self.world.person(who).id, None)

    def role_of(self, user: User | None) -> Role | None:
        """Owners are admins; a public repository may be read by everybody."""
        if user is not None and user is self.owner:
            return Role("admin", "admin")
        if user is not None and user.id in self.roles:
            return self.roles[user.id]
        return None if self.private else Role("read", "read")

    def may(self, user: User | None, what: str) -> bool:
        role = self.role_of(user)
        return role is not None and role.permissions[what]

    # branches

    @property
    def branches(self) -> dict[str, str]:
        """Name -> SHA."""
        prefix = "refs/heads/"
        return {ref.removeprefix(prefix): sha for ref, sha in self.git.refs().items() if ref.startswith(prefix)}

    def sha(self, branch: str | None = None) -> str:
        return self.branches[branch or self.default_branch]

    def files(self, at: str | None = None) -> dict[str, str]:
        """Path -> text of every file on a branch (default: the default branch) or commit."""
        commit = self.git.sha(f"refs/heads/{at or self.default_branch}") or self.git.sha(at or "")
        if commit is None:
            raise KeyError(at)
        listing = self.git.git("ls-tree", "-r", "-z", commit).split("\0")[:-1]
        entries = (entry.split("\t", 1) for entry in listing)
        return {path: self.git.content(head.split()[2]).decode(errors="replace") for head, path in entries}

    def commit(
        self, files: Files, *, branch: str | None = None, by: str | User = "octocat", message: str = "Change",
        parent: str | None = None,
    ) -> str:  # fmt: skip
        """A commit on a branch (made from the default one where it is new); tells of the push; returns the SHA."""
        with self.world.lock:
            pusher, ref = self.world.person(by), f"refs/heads/{branch or self.default_branch}"
            before = self.git.sha(ref)
            start = parent or before or self.git.sha(f"refs/heads/{self.default_branch}")
            at = int(self.world.now().timestamp())
            sha = self.git.commit(ref, files, parent=start, message=message, author=pusher.login, at=at)
            self.moved(ref, before, sha, pusher)
            return sha

    def delete_branch(self, branch: str, *, by: str | User) -> None:
        with self.world.lock:
            ref = f"refs/heads/{branch}"
            before = self.git.sha(ref)
            self.git.set_ref(ref, None)
            self.moved(ref, before, None, self.world.person(by))

    def protect(self, branch: str) -> None:
        self.protected.add(branch)
        self.git.protect(f"refs/heads/{branch}")

    def moved(self, ref: str, before: str | None, after: str | None, by: User) -> None:
        """Tells of a push, and lets the pull requests follow whose head this is."""
        self.pushed_at = self.world.now()
        kind = "branch_deletion" if after is None else "branch_creation" if before is None else "push"
        now = self.world.now()
        self.activity.append(Activity(self.world.new_id(), ref, before or ZERO, after or ZERO, by, now, kind))
        deliveries.tell_push(self, ref, before or ZERO, after or ZERO, by)
        if after is None or not ref.startswith("refs/heads/"):
            return
        for repo in (self, self.parent) if self.parent else (self,):
            for pull in repo.pulls():
                if pull.open and pull.head_repo is self and f"refs/heads/{pull.head_ref}" == ref:
                    pull.follow(after, by)

    def merge(self, sha: str, *, into: str, by: User, number: int) -> str:
        """Returns the commit the branch stands at afterwards."""
        base = self.sha(into)
        ref, merged = f"refs/heads/{into}", sha
        if not self.git.is_ancestor(base, sha):
            tree = self.git.git("merge-tree", "--write-tree", base, sha).split()[0]
            who = ("-c", f"user.name={by.login}", "-c", f"user.email={by.login}@users.noreply.example")
            message = f"Merge pull request #{number}"
            merged = self.git.git(*who, "commit-tree", tree, "-p", base, "-p", sha, "-m", message).strip()
        self.git.set_ref(ref, merged)
        self.moved(ref, base, merged, by)
        return merged

    # issues and pull requests

    def issue(self, title: str, *, author: str | User, body: str | None = None, labels: tuple[str, ...] = ()) -> Issue:
        with self.world.lock:
            issue = Issue(self, self._next_number(), title, body, self.world.person(author))
            issue.labels = [self.label(name) for name in labels]
            self.threads[issue.number] = issue
            issue.announce()
            return issue

    def pull(
        self, *, head: str, author: str | User, files: Files | None = None, title: str | None = None,
        body: str | None = None, base: str | None = None, fork: bool = False,
    ) -> Pull:  # fmt: skip
        """Opens a pull request; with `files` its head branch gets them in a commit first, with `fork` in a fork."""
        with self.world.lock:
            person, target = self.world.person(author), base or self.default_branch
            source = self.fork(person) if fork else self
            if files is not None:
                source.commit(
                    files,
                    branch=head,
                    by=person,
                    message=title or head,
                    parent=source.branches.get(head, self.sha(target)),
                )
            return self.open_pull(title or head, body, person, head=(source, head), base=target)

    def open_pull(self, title: str, body: str | None, author: User, *, head: tuple[Repository, str], base: str) -> Pull:
        pull = Pull(self, self._next_number(), title, body, author, head=head, base=base)
        self.threads[pull.number] = pull
        pull.announce()
        return pull

    def fork(self, owner: str | User) -> Repository:
        """The person's fork of this repository, made when there is none."""
        person = self.world.person(owner)
        name = f"{person.login}/{self.name}"
        if name not in self.world.repositories:
            self.world.repositories[name] = Repository(self.world, person, self.name, private=self.private, parent=self)
        return self.world.repositories[name]

    def delete(self) -> None:
        """The repository is gone; pull requests from it lose their head's repository, as GitHub shows them then."""
        with self.world.lock:
            del self.world.repositories[self.full_name]
            for pull in self.parent.pulls() if self.parent else ():
                if pull.head_repo is self:
                    pull.head_repo = None

    def pulls(self) -> list[Pull]:
        return [thread for thread in self.threads.values() if isinstance(thread, Pull)]

    def label(self, name: str) -> Label:
        """The label, made where there is none; GitHub takes `Bug` and `bug` for one."""
        return self.labels.setdefault(name.casefold(), Label(self.world.new_id(), name))

    def hook(self, url: str, *, secret: str | None = None, events: tuple[str, ...] = ("*",)) -> Hook:
        """A webhook; its secret signs this repository's deliveries from now on (else the world's own secret does)."""
        hook = Hook(self.world.new_id(), url, list(events), secret, True, self.world.now())
        self.hooks.append(hook)
        return hook

    def _next_number(self) -> int:
        return max(self.threads, default=0) + 1

"""Issues and pull requests, and what people do with them. Each doing is stored and told by a signed delivery."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from tests.world import deliveries
from tests.world.deliveries import Delivery
from tests.world.gitrepo import Files
from tests.world.state import Comment, IssueEvent, Label, Reaction, User

if TYPE_CHECKING:
    from tests.world.repository import Repository


class Issue:
    """An issue: `issue.comment("alice", "/run fix")` stores the comment and returns the delivery that tells of it."""

    def __init__(self, repo: Repository, number: int, title: str, body: str | None, author: User) -> None:
        self.repo = repo
        self.world = repo.world
        self.id = self.world.new_id()
        self.number = number
        self.title = title
        self.body = body
        self.author: User | None = author
        self.created_at: datetime = self.world.now()
        self.updated_at = self.created_at
        self.closed_at: datetime | None = None
        self.closed_by: User | None = None
        self.locked = False
        self.labels: list[Label] = []
        self.assignees: list[User] = []
        self.comments: list[Comment] = []
        self.timeline: list[Comment | IssueEvent] = []
        self.reactions: list[Reaction] = []
        self.opened: Delivery

    @property
    def open(self) -> bool:
        return self.closed_at is None

    def touch(self) -> None:
        self.updated_at = self.world.now()

    # what people do

    def comment(self, by: str | User, text: str) -> Delivery:
        with self.world.lock:
            author, now = self.world.person(by), self.world.now()
            comment = Comment(self.world.new_id(), self.number, author, text, now, now)
            self.comments.append(comment)
            self.timeline.append(comment)
            self.repo.comments[comment.id] = comment
            self.touch()
            return self._commented("created", author, comment)

    def edit(self, comment: Comment | Delivery, text: str, *, by: str | User | None = None) -> Delivery:
        """`by`: the author where not said; somebody with write access may, too."""
        with self.world.lock:
            said = _said(comment)
            before, said.body, said.updated_at = said.body, text, self.world.now()
            editor = self.world.person(by) if by else said.author or self.world.ghost
            return self._commented("edited", editor, said, {"changes": {"body": {"from": before}}})

    def delete(self, comment: Comment | Delivery, *, by: str | User | None = None) -> Delivery:
        with self.world.lock:
            said = _said(comment)
            self.comments.remove(said)
            self.timeline.remove(said)
            del self.repo.comments[said.id]
            return self._commented("deleted", self.world.person(by) if by else said.author or self.world.ghost, said)

    def label(self, name: str, *, by: str | User) -> Delivery:
        with self.world.lock:
            label = self.repo.label(name)
            if label not in self.labels:
                self.labels.append(label)
            self.touch()
            self._note("labeled", self.world.person(by), label)
            return self._happened(
                "labeled", self.world.person(by), {"label": self.world.shapes.label(self.repo, label)}
            )

    def unlabel(self, name: str, *, by: str | User) -> Delivery:
        with self.world.lock:
            label = self.repo.label(name)
            self.labels.remove(label)
            self.touch()
            self._note("unlabeled", self.world.person(by), label)
            return self._happened(
                "unlabeled", self.world.person(by), {"label": self.world.shapes.label(self.repo, label)}
            )

    def assign(self, who: str | User, *, by: str | User) -> Delivery:
        with self.world.lock:
            self.assignees.append(self.world.person(who))
            return self._assignment("assigned", self.world.person(who), self.world.person(by))

    def unassign(self, who: str | User, *, by: str | User) -> Delivery:
        with self.world.lock:
            self.assignees.remove(self.world.person(who))
            return self._assignment("unassigned", self.world.person(who), self.world.person(by))

    def _assignment(self, action: str, who: User, by: User) -> Delivery:
        self.touch()
        self._note(action, by, assignee=who)
        return self._happened(action, by, {"assignee": self.world.shapes.user(who)})

    def close(self, *, by: str | User) -> Delivery:
        with self.world.lock:
            self.closed_at, self.closed_by = self.world.now(), self.world.person(by)
            self.touch()
            self._note("closed", self.closed_by)
            return self._happened("closed", self.closed_by)

    def reopen(self, *, by: str | User) -> Delivery:
        with self.world.lock:
            self.closed_at = self.closed_by = None
            self.touch()
            self._note("reopened", self.world.person(by))
            return self._happened("reopened", self.world.person(by))

    def react(self, to: Comment | Issue, by: User, content: str) -> tuple[Reaction, bool]:
        """The reaction, and whether it is new: a person can give each only once."""
        for reaction in to.reactions:
            if reaction.user is by and reaction.content == content:
                return reaction, False
        to.reactions.append(Reaction(self.world.new_id(), by, content, self.world.now()))
        return to.reactions[-1], True

    # what is told

    def _note(self, event: str, by: User, label: Label | None = None, *, assignee: User | None = None) -> None:
        number = self.world.new_event_id()
        one = IssueEvent(number, event, self.number, by, self.world.now(), label, assignee)
        self.timeline.append(one)
        self.repo.issue_events.append(one)

    def _commented(self, action: str, by: User, comment: Comment, extra: dict[str, object] | None = None) -> Delivery:
        shapes = self.world.shapes
        payload = {"issue": shapes.issue(self), "comment": shapes.comment(self.repo, comment), **(extra or {})}
        return deliveries.tell(self.repo, "issue_comment", by, {"action": action, **payload}, comment=comment)

    def _happened(self, action: str, by: User, extra: dict[str, object] | None = None) -> Delivery:
        payload = {"action": action, "issue": self.world.shapes.issue(self), **(extra or {})}
        return deliveries.tell(self.repo, "issues", by, payload)

    def announce(self) -> None:
        self.opened = self._happened("opened", self.author or self.world.ghost)


class Pull(Issue):
    """A pull request: `head_repo` is a fork's repository for one from a fork, None when that fork was deleted."""

    def __init__(
        self, repo: Repository, number: int, title: str, body: str | None, author: User, *,
        head: tuple[Repository, str], base: str,
    ) -> None:  # fmt: skip
        super().__init__(repo, number, title, body, author)
        self.pull_id = self.world.new_id()
        self.head_repo: Repository | None = head[0]
        self.head_owner = head[0].owner
        self.head_ref = head[1]
        self.base_ref = base
        self.base_sha = repo.branches[base]
        self.head_sha = head[0].branches[head[1]]
        self.merged_at: datetime | None = None
        self.merged_by: User | None = None
        self.merge_sha: str | None = None
        self.draft = False
        self._publish_head()

    def push(self, files: Files, *, by: str | User | None = None, message: str = "More") -> Delivery:
        """A further commit on the head branch. Returns the `synchronize` delivery; the outbox has `push` before it."""
        return self._pushed(files, by, message, parent=self.head_sha)

    def force_push(self, files: Files, *, by: str | User | None = None, message: str = "Again") -> Delivery:
        """The head's history is replaced by one commit on the base."""
        return self._pushed(files, by, message, parent=self.base_sha)

    def _pushed(self, files: Files, by: str | User | None, message: str, *, parent: str) -> Delivery:
        with self.world.lock:
            if self.head_repo is None:
                raise ValueError("The head's repository was deleted: nobody can push to it.")
            pusher = self.world.person(by) if by else self.author or self.world.ghost
            self.head_repo.commit(files, branch=self.head_ref, by=pusher, message=message, parent=parent)
            return self.world.told("pull_request", "synchronize", number=self.number)

    def follow(self, sha: str, by: User) -> Delivery:
        """The head branch has moved to `sha`."""
        before, self.head_sha = self.head_sha, sha
        self._publish_head()
        self.touch()
        return self._happened("synchronize", by, {"before": before, "after": sha})

    def _publish_head(self) -> None:
        ref = f"refs/pull/{self.number}/head"
        if self.head_repo is self.repo or self.head_repo is None:
            self.repo.git.set_ref(ref, self.head_sha)
        else:
            self.repo.git.fetch(self.head_repo.git, self.head_sha, ref)

    def merge(self, *, by: str | User) -> Delivery:
        """Merged by a fast-forward where it is one, else by a merge commit."""
        with self.world.lock:
            merger = self.world.person(by)
            self.merge_sha = self.repo.merge(self.head_sha, into=self.base_ref, by=merger, number=self.number)
            self.merged_at, self.merged_by = self.world.now(), merger
            self._note("merged", merger)
            return self.close(by=merger)

    def announce(self) -> None:
        self.opened = self._happened("opened", self.author or self.world.ghost)

    def _happened(self, action: str, by: User, extra: dict[str, object] | None = None) -> Delivery:
        payload = {"action": action, "number": self.number, "pull_request": self.world.shapes.pull(self)}
        return deliveries.tell(self.repo, "pull_request", by, payload | (extra or {}))


def _said(comment: Comment | Delivery) -> Comment:
    if isinstance(comment, Comment):
        return comment
    if comment.comment is None:
        raise ValueError(f"A delivery of {comment.event} brings no comment.")
    return comment.comment

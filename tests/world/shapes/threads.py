"""Issues, pull requests, comments, labels and reactions as GitHub writes them down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.world.shapes.people import Json, maybe, stamp
from tests.world.shapes.repositories import RepositoryShapes
from tests.world.state import Comment, IssueEvent, Label, Reaction, User
from tests.world.threads import Issue, Pull

if TYPE_CHECKING:
    from tests.world.repository import Repository

_REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


class ThreadShapes(RepositoryShapes):
    def label(self, repo: Repository, label: Label) -> Json:
        return {
            "id": label.id,
            "node_id": self.node("L", label.id),
            "url": f"{self.repo_api(repo)}/labels/{label.name}",
            "name": label.name,
            "color": label.color,
            "default": False,
            "description": label.description,
        }

    def issue_event(self, repo: Repository, one: IssueEvent) -> Json:
        assigner = {"assigner": self.user(one.actor)} if one.assignee else {}
        return self.timeline_event(repo, one) | assigner | {"issue": self.issue(repo.threads[one.number])}

    def comment_event(self, repo: Repository, comment: Comment) -> Json:
        """As a timeline has it."""
        return self.comment(repo, comment) | {"event": "commented", "actor": self.someone(comment.author)}

    def timeline_event(self, repo: Repository, one: IssueEvent) -> Json:
        assignee = {"assignee": self.user(one.assignee)} if one.assignee else {}
        label = {"label": {"name": one.label.name, "color": one.label.color}} if one.label else {}
        return {
            "id": one.id,
            "node_id": self.node("LE", one.id),
            "url": f"{self.repo_api(repo)}/issues/events/{one.id}",
            "actor": self.user(one.actor),
            "event": one.event,
            "commit_id": None,
            "commit_url": None,
            "created_at": stamp(one.at),
            **label,
            **assignee,
            "performed_via_github_app": None,
        }

    def reactions(self, url: str, given: list[Reaction]) -> Json:
        counts = {content: sum(reaction.content == content for reaction in given) for content in _REACTIONS}
        return {"url": f"{url}/reactions", "total_count": len(given), **counts}

    def issue(self, issue: Issue) -> Json:
        repo, api = issue.repo, f"{self.repo_api(issue.repo)}/issues/{issue.number}"
        pull = {"pull_request": self._pull_links(issue)} if isinstance(issue, Pull) else {}
        kind = "pull" if isinstance(issue, Pull) else "issues"
        return {
            "url": api,
            "repository_url": self.repo_api(repo),
            "labels_url": f"{api}/labels{{/name}}",
            "comments_url": f"{api}/comments",
            "events_url": f"{api}/events",
            "timeline_url": f"{api}/timeline",
            "html_url": f"{self.repo_web(repo)}/{kind}/{issue.number}",
            **self._thread(issue),
            "comments": len(issue.comments),
            "closed_by": self.someone(issue.closed_by),
            "reactions": self.reactions(api, issue.reactions),
            "performed_via_github_app": None,
            "state_reason": None if issue.open else "completed",
            "draft": isinstance(issue, Pull) and issue.draft,
            **pull,
        }

    def _thread(self, issue: Issue) -> Json:
        """What an issue and a pull request have in common."""
        people = [self.user(user) for user in issue.assignees]
        return {
            "id": issue.id,
            "node_id": self.node("I", issue.id),
            "number": issue.number,
            "title": issue.title,
            "user": self.someone(issue.author),
            "labels": [self.label(issue.repo, label) for label in issue.labels],
            "state": "open" if issue.open else "closed",
            "locked": issue.locked,
            "active_lock_reason": None,
            "assignee": people[0] if people else None,
            "assignees": people,
            "milestone": None,
            "created_at": stamp(issue.created_at),
            "updated_at": stamp(issue.updated_at),
            "closed_at": maybe(issue.closed_at),
            "author_association": self.association(issue.repo, issue.author),
            "body": issue.body,
        }

    def _pull_links(self, pull: Pull) -> Json:
        html = f"{self.repo_web(pull.repo)}/pull/{pull.number}"
        api = f"{self.repo_api(pull.repo)}/pulls/{pull.number}"
        merged = maybe(pull.merged_at)
        return {
            "url": api,
            "html_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "merged_at": merged,
        }

    def comment(self, repo: Repository, comment: Comment) -> Json:
        url = f"{self.repo_api(repo)}/issues/comments/{comment.id}"
        kind = "pull" if isinstance(repo.threads[comment.number], Pull) else "issues"
        return {
            "url": url,
            "html_url": f"{self.repo_web(repo)}/{kind}/{comment.number}#issuecomment-{comment.id}",
            "issue_url": f"{self.repo_api(repo)}/issues/{comment.number}",
            "id": comment.id,
            "node_id": self.node("IC", comment.id),
            "user": self.someone(comment.author),
            "created_at": stamp(comment.created_at),
            "updated_at": stamp(comment.updated_at),
            "author_association": self.association(repo, comment.author),
            "body": comment.body,
            "reactions": self.reactions(url, comment.reactions),
            "performed_via_github_app": None,
        }

    def reaction(self, reaction: Reaction) -> Json:
        at, node = stamp(reaction.created_at), self.node("RE", reaction.id)
        user = self.user(reaction.user)
        return {"id": reaction.id, "node_id": node, "user": user, "content": reaction.content, "created_at": at}

    def pull_simple(self, pull: Pull) -> Json:
        """As a list of pull requests has it."""
        api, links = self.repo_api(pull.repo), self._pull_links(pull)
        url, issue = links["url"], f"{api}/issues/{pull.number}"
        more = {
            "issue_url": issue,
            "commits_url": f"{url}/commits",
            "review_comments_url": f"{url}/comments",
            "review_comment_url": f"{api}/pulls/comments{{/number}}",
            "comments_url": f"{issue}/comments",
            "statuses_url": f"{api}/statuses/{pull.head_sha}",
        }
        ends = {"self": url, "html": links["html_url"], "issue": issue}
        ends |= {key.removesuffix("_url"): href for key, href in more.items() if key != "issue_url"}
        return {
            **links,
            **more,
            **self._thread(pull),
            "id": pull.pull_id,
            "node_id": self.node("PR", pull.pull_id),
            "merge_commit_sha": pull.merge_sha,
            "requested_reviewers": [],
            "requested_teams": [],
            "draft": pull.draft,
            "head": self._end(pull.head_repo, pull.head_owner, pull.head_ref, pull.head_sha),
            "base": self._end(pull.repo, pull.repo.owner, pull.base_ref, pull.base_sha),
            "_links": {key: {"href": href} for key, href in ends.items()},
            "auto_merge": None,
        }

    def pull(self, pull: Pull) -> Json:
        changes = pull.repo.git.changes(pull.base_sha, pull.head_sha)
        return self.pull_simple(pull) | {
            "merged": pull.merged_at is not None,
            "mergeable": None,
            "rebaseable": None,
            "mergeable_state": "unknown",
            "merged_by": self.someone(pull.merged_by),
            "comments": len(pull.comments),
            "review_comments": 0,
            "maintainer_can_modify": pull.head_repo is not pull.repo,
            "commits": int(pull.repo.git.git("rev-list", "--count", f"{pull.base_sha}..{pull.head_sha}")),
            "additions": sum(change.additions for change in changes),
            "deletions": sum(change.deletions for change in changes),
            "changed_files": len(changes),
        }

    def _end(self, repo: Repository | None, owner: User, ref: str, sha: str) -> Json:
        """Head or base. The repository of a head is null once the fork was deleted."""
        shown = None if repo is None else self.repository(repo)
        return {"label": f"{owner.login}:{ref}", "ref": ref, "sha": sha, "user": self.user(owner), "repo": shown}

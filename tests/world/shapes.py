"""How GitHub writes things down as JSON, in REST answers and in deliveries alike.

A test validates what these make against GitHub's published OpenAPI description and against its published examples.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.world.gitrepo import Change, Commit, Entry
from tests.world.state import App, CheckRun, Comment, Hook, Installation, Label, Reaction, Role, Status, User
from tests.world.threads import Issue, Pull

if TYPE_CHECKING:
    from tests.world.repository import Repository

Json = dict[str, Any]

_USER_LINKS = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}

_REPO_LINKS = {
    "forks_url": "/forks",
    "keys_url": "/keys{/key_id}",
    "collaborators_url": "/collaborators{/collaborator}",
    "teams_url": "/teams",
    "hooks_url": "/hooks",
    "issue_events_url": "/issues/events{/number}",
    "events_url": "/events",
    "assignees_url": "/assignees{/user}",
    "branches_url": "/branches{/branch}",
    "tags_url": "/tags",
    "blobs_url": "/git/blobs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "trees_url": "/git/trees{/sha}",
    "statuses_url": "/statuses/{sha}",
    "languages_url": "/languages",
    "stargazers_url": "/stargazers",
    "contributors_url": "/contributors",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "commits_url": "/commits{/sha}",
    "git_commits_url": "/git/commits{/sha}",
    "comments_url": "/comments{/number}",
    "issue_comment_url": "/issues/comments{/number}",
    "contents_url": "/contents/{+path}",
    "compare_url": "/compare/{base}...{head}",
    "merges_url": "/merges",
    "archive_url": "/{archive_format}{/ref}",
    "downloads_url": "/downloads",
    "issues_url": "/issues{/number}",
    "pulls_url": "/pulls{/number}",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "labels_url": "/labels{/name}",
    "releases_url": "/releases{/id}",
    "deployments_url": "/deployments",
}

_REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


def stamp(at: datetime) -> str:
    """Whole seconds, as GitHub has them."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _maybe(at: datetime | None) -> str | None:
    return None if at is None else stamp(at)


class Shapes:
    """`api`: where REST answers (without a slash at the end); `web`: where people and git go."""

    def __init__(self, api: str, web: str) -> None:
        self.api = api
        self.web = web

    @staticmethod
    def node(kind: str, number: int) -> str:
        return base64.b64encode(f"{kind}_{number}".encode()).decode()

    # people

    def user(self, user: User) -> Json:
        api = f"{self.api}/users/{user.login.replace('[', '%5B').replace(']', '%5D')}"
        return {
            "login": user.login,
            "id": user.id,
            "node_id": self.node("U", user.id),
            "avatar_url": f"{self.web}/avatars/u/{user.id}?v=4",
            "gravatar_id": "",
            "url": api,
            "html_url": f"{self.web}/{user.login.removesuffix('[bot]')}",
            **{key: api + path for key, path in _USER_LINKS.items()},
            "type": user.type,
            "user_view_type": "public",
            "site_admin": False,
        }

    def public_user(self, user: User) -> Json:
        nothing = dict.fromkeys(("name", "company", "location", "email", "hireable", "bio", "twitter_username"))
        counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
        at = stamp(user.created_at)
        return self.user(user) | nothing | counts | {"blog": "", "created_at": at, "updated_at": at}

    def private_user(self, user: User) -> Json:
        counts = ("private_gists", "total_private_repos", "owned_private_repos", "disk_usage", "collaborators")
        private = dict.fromkeys(counts, 0) | {"two_factor_authentication": True, "user_view_type": "private"}
        return self.public_user(user) | private

    def organization(self, owner: User) -> Json:
        api = f"{self.api}/orgs/{owner.login}"
        return {
            "login": owner.login,
            "id": owner.id,
            "node_id": self.node("O", owner.id),
            "url": api,
            "repos_url": f"{api}/repos",
            "events_url": f"{api}/events",
            "hooks_url": f"{api}/hooks",
            "issues_url": f"{api}/issues",
            "members_url": f"{api}/members{{/member}}",
            "public_members_url": f"{api}/public_members{{/member}}",
            "avatar_url": f"{self.web}/avatars/u/{owner.id}?v=4",
            "description": "",
        }

    def association(self, repo: Repository, user: User | None) -> str:
        if user is repo.owner:
            return "OWNER"
        return "COLLABORATOR" if user is not None and user.id in repo.roles else "NONE"

    # repositories

    def repo_api(self, repo: Repository) -> str:
        return f"{self.api}/repos/{repo.full_name}"

    def repo_web(self, repo: Repository) -> str:
        return f"{self.web}/{repo.full_name}"

    def repository(self, repo: Repository) -> Json:
        host = self.web.partition("://")[2]
        issues = sum(thread.open for thread in repo.threads.values())
        return {
            "id": repo.id,
            "node_id": self.node("R", repo.id),
            "name": repo.name,
            "full_name": repo.full_name,
            "private": repo.private,
            "owner": self.user(repo.owner),
            "html_url": self.repo_web(repo),
            "description": None,
            "fork": repo.parent is not None,
            "url": self.repo_api(repo),
            **{key: self.repo_api(repo) + path for key, path in _REPO_LINKS.items()},
            "created_at": stamp(repo.created_at),
            "updated_at": stamp(repo.pushed_at),
            "pushed_at": stamp(repo.pushed_at),
            "git_url": f"git://{host}/{repo.full_name}.git",
            "ssh_url": f"git@{host}:{repo.full_name}.git",
            "clone_url": repo.clone_url,
            "svn_url": self.repo_web(repo),
            "homepage": None,
            "language": None,
            "mirror_url": None,
            "license": None,
            **dict.fromkeys(("size", "stargazers_count", "watchers_count", "watchers", "forks_count", "forks"), 0),
            **dict.fromkeys(("has_issues", "has_projects", "has_downloads", "has_wiki", "allow_forking"), True),
            **dict.fromkeys(("has_pages", "has_discussions", "archived", "disabled", "is_template"), False),
            **dict.fromkeys(("allow_squash_merge", "allow_merge_commit", "allow_rebase_merge"), True),
            "delete_branch_on_merge": False,
            "web_commit_signoff_required": False,
            "topics": [],
            "custom_properties": {},
            "visibility": "private" if repo.private else "public",
            "open_issues_count": issues,
            "open_issues": issues,
            "default_branch": repo.default_branch,
        }

    def pushed_repository(self, repo: Repository) -> Json:
        """As push deliveries have it: times in seconds, the owner with name and e-mail."""
        owner = {"name": repo.owner.login, "email": f"{repo.owner.id}+{repo.owner.login}@users.noreply.example"}
        return self.repository(repo) | {
            "owner": owner | self.user(repo.owner),
            "url": self.repo_web(repo),
            "created_at": int(repo.created_at.timestamp()),
            "pushed_at": int(repo.pushed_at.timestamp()),
            "stargazers": 0,
            "master_branch": repo.default_branch,
        }

    def full_repository(self, repo: Repository, role: Role | None) -> Json:
        full: Json = {"subscribers_count": 0, "network_count": 0, "temp_clone_token": None}
        if role is not None:
            full["permissions"] = role.permissions
        if repo.parent is not None:
            full |= {"parent": self.repository(repo.parent), "source": self.repository(repo.parent)}
        return self.repository(repo) | full

    def collaborator_permission(self, user: User, role: Role | None, permissions: dict[str, bool]) -> Json:
        """The old field `permission` knows neither triage nor maintain, nor custom roles: `role_name` does.

        https://docs.github.com/en/rest/collaborators/collaborators#get-repository-permissions-for-a-user
        """
        old = {"triage": "read", "maintain": "write"}
        name, legacy = (role.name, old.get(role.base, role.base)) if role else ("none", "none")
        person = self.user(user) | {"permissions": permissions, "role_name": name}
        return {"permission": legacy, "role_name": name, "user": person}

    # git

    def ref(self, repo: Repository, ref: str, sha: str) -> Json:
        api = self.repo_api(repo)
        target = {"type": "commit", "sha": sha, "url": f"{api}/git/commits/{sha}"}
        return {"ref": ref, "node_id": self.node(ref, repo.id), "url": f"{api}/git/{ref}", "object": target}

    def branch(self, repo: Repository, name: str, commit: Commit) -> Json:
        url = f"{self.repo_api(repo)}/branches/{name}"
        return {
            "name": name,
            "commit": self.commit(repo, commit),
            "_links": {"self": url, "html": f"{self.repo_web(repo)}/tree/{name}"},
            "protected": name in repo.protected,
            "protection": {
                "enabled": name in repo.protected,
                "required_status_checks": {"enforcement_level": "off", "contexts": [], "checks": []},
            },
            "protection_url": f"{url}/protection",
        }

    def commit(self, repo: Repository, commit: Commit) -> Json:
        api, sha = self.repo_api(repo), commit.sha
        people = {"author": commit.author, "committer": commit.committer}
        signature = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}
        return {
            "sha": sha,
            "node_id": self.node("C", repo.id),
            "commit": {
                **{key: {"name": name, "email": email, "date": at} for key, (name, email, at) in people.items()},
                "message": commit.message,
                "tree": {"sha": commit.tree, "url": f"{api}/git/trees/{commit.tree}"},
                "url": f"{api}/git/commits/{sha}",
                "comment_count": 0,
                "verification": signature,
            },
            "url": f"{api}/commits/{sha}",
            "html_url": f"{self.repo_web(repo)}/commit/{sha}",
            "comments_url": f"{api}/commits/{sha}/comments",
            "author": None,
            "committer": None,
            "parents": [
                {"sha": one, "url": f"{api}/commits/{one}", "html_url": f"{self.repo_web(repo)}/commit/{one}"}
                for one in commit.parents
            ],
        }

    def pushed_commit(self, repo: Repository, commit: Commit) -> Json:
        """As push deliveries list it."""
        changes = repo.git.changes(commit.parents[0], commit.sha) if commit.parents else []
        listed = {"added": ("added", "renamed", "copied"), "removed": ("removed",), "modified": ("modified", "changed")}
        people = {"author": commit.author, "committer": commit.committer}
        return {
            "id": commit.sha,
            "tree_id": commit.tree,
            "distinct": True,
            "message": commit.message,
            "timestamp": commit.committer[2],
            "url": f"{self.repo_web(repo)}/commit/{commit.sha}",
            **{key: {"name": name, "email": mail, "username": name} for key, (name, mail, _) in people.items()},
            **{key: [change.path for change in changes if change.status in kinds] for key, kinds in listed.items()},
        }

    def file_change(self, repo: Repository, change: Change, head: str) -> Json:
        renamed = {"previous_filename": change.before} if change.before else {}
        return {
            "sha": change.blob,
            "filename": change.path,
            "status": change.status,
            "additions": change.additions,
            "deletions": change.deletions,
            "changes": change.additions + change.deletions,
            "blob_url": f"{self.repo_web(repo)}/blob/{head}/{quote(change.path)}",
            "raw_url": f"{self.repo_web(repo)}/raw/{head}/{quote(change.path)}",
            "contents_url": f"{self.repo_api(repo)}/contents/{quote(change.path)}?ref={head}",
            **renamed,
        }

    def content(self, repo: Repository, path: str, ref: str, entry: Entry) -> Json:
        """Above a megabyte GitHub leaves the content out and says `none` for its encoding."""
        url = f"{self.repo_api(repo)}/contents/{quote(path)}?ref={ref}"
        git, html = f"{self.repo_api(repo)}/git/blobs/{entry.oid}", f"{self.repo_web(repo)}/blob/{ref}/{quote(path)}"
        shown: Json = {
            "name": path.rpartition("/")[2],
            "path": path,
            "sha": entry.oid,
            "size": len(entry.content),
            "url": url,
            "html_url": html,
            "git_url": git,
            "download_url": f"{self.repo_web(repo)}/raw/{ref}/{quote(path)}",
            "_links": {"self": url, "git": git, "html": html},
        }
        if entry.kind == "symlink":
            return shown | {"type": "symlink", "target": entry.content.decode()}
        large = len(entry.content) > 1024 * 1024
        text = "" if large else base64.encodebytes(entry.content).decode()
        return shown | {"type": "file", "content": text, "encoding": "none" if large else "base64"}

    def blob(self, repo: Repository, oid: str, content: bytes) -> Json:
        return {
            "sha": oid,
            "node_id": self.node("B", repo.id),
            "size": len(content),
            "url": f"{self.repo_api(repo)}/git/blobs/{oid}",
            "content": base64.encodebytes(content).decode(),
            "encoding": "base64",
        }

    # issues, pull requests, comments

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
            "closed_by": self._someone(issue.closed_by),
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
            "user": self._someone(issue.author),
            "labels": [self.label(issue.repo, label) for label in issue.labels],
            "state": "open" if issue.open else "closed",
            "locked": issue.locked,
            "active_lock_reason": None,
            "assignee": people[0] if people else None,
            "assignees": people,
            "milestone": None,
            "created_at": stamp(issue.created_at),
            "updated_at": stamp(issue.updated_at),
            "closed_at": _maybe(issue.closed_at),
            "author_association": self.association(issue.repo, issue.author),
            "body": issue.body,
        }

    def _pull_links(self, pull: Pull) -> Json:
        html = f"{self.repo_web(pull.repo)}/pull/{pull.number}"
        api = f"{self.repo_api(pull.repo)}/pulls/{pull.number}"
        merged = _maybe(pull.merged_at)
        return {
            "url": api,
            "html_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "merged_at": merged,
        }

    def _someone(self, user: User | None) -> Json | None:
        return None if user is None else self.user(user)

    def comment(self, repo: Repository, comment: Comment) -> Json:
        url = f"{self.repo_api(repo)}/issues/comments/{comment.id}"
        kind = "pull" if isinstance(repo.threads[comment.number], Pull) else "issues"
        return {
            "url": url,
            "html_url": f"{self.repo_web(repo)}/{kind}/{comment.number}#issuecomment-{comment.id}",
            "issue_url": f"{self.repo_api(repo)}/issues/{comment.number}",
            "id": comment.id,
            "node_id": self.node("IC", comment.id),
            "user": self._someone(comment.author),
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
            "merged_by": self._someone(pull.merged_by),
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

    # statuses, checks, hooks

    def status(self, repo: Repository, status: Status) -> Json:
        at = stamp(status.at)
        return {
            "url": f"{self.repo_api(repo)}/statuses/{status.sha}",
            "avatar_url": f"{self.web}/avatars/u/{status.creator.id}?v=4",
            "id": status.id,
            "node_id": self.node("SC", status.id),
            "state": status.state,
            "description": status.description,
            "target_url": status.target_url,
            "context": status.context,
            "created_at": at,
            "updated_at": at,
            "creator": self.user(status.creator),
        }

    def check_run(self, repo: Repository, run: CheckRun) -> Json:
        url = f"{self.repo_api(repo)}/check-runs/{run.id}"
        output = {key: run.output.get(key) for key in ("title", "summary", "text")}
        return {
            "id": run.id,
            "head_sha": run.head_sha,
            "node_id": self.node("CR", run.id),
            "external_id": run.external_id,
            "url": url,
            "html_url": f"{self.repo_web(repo)}/runs/{run.id}",
            "details_url": run.details_url,
            "status": run.status,
            "conclusion": run.conclusion,
            "started_at": stamp(run.started_at),
            "completed_at": _maybe(run.completed_at),
            "output": output | {"annotations_count": 0, "annotations_url": f"{url}/annotations"},
            "name": run.name,
            "check_suite": {"id": repo.id},
            "app": None if run.app is None else self.app(run.app),
            "pull_requests": [],
        }

    def hook(self, repo: Repository, hook: Hook) -> Json:
        url = f"{self.repo_api(repo)}/hooks/{hook.id}"
        config = {"content_type": "json", "url": hook.url, "insecure_ssl": "0"}
        return {
            "type": "Repository",
            "id": hook.id,
            "name": "web",
            "active": hook.active,
            "events": hook.events,
            "config": config | ({"secret": "********"} if hook.secret else {}),
            "updated_at": stamp(hook.created_at),
            "created_at": stamp(hook.created_at),
            "url": url,
            "test_url": f"{url}/test",
            "ping_url": f"{url}/pings",
            "deliveries_url": f"{url}/deliveries",
            "last_response": {"code": None, "status": "unused", "message": None},
        }

    # apps

    def app(self, app: App) -> Json:
        return {
            "id": app.id,
            "slug": app.slug,
            "node_id": self.node("A", app.id),
            "owner": self.user(app.owner),
            "name": app.name,
            "description": "",
            "external_url": self.web,
            "html_url": f"{self.web}/apps/{app.slug}",
            "created_at": stamp(app.created_at),
            "updated_at": stamp(app.created_at),
            "permissions": app.permissions,
            "events": ["issue_comment", "issues", "pull_request", "push"],
        }

    def installation(self, one: Installation) -> Json:
        url = f"{self.api}/app/installations/{one.id}"
        return {
            "id": one.id,
            "account": self.user(one.account),
            "repository_selection": "selected",
            "access_tokens_url": f"{url}/access_tokens",
            "repositories_url": f"{self.api}/installation/repositories",
            "html_url": f"{self.web}/settings/installations/{one.id}",
            "app_id": one.app.id,
            "app_slug": one.app.slug,
            "target_id": one.account.id,
            "target_type": one.account.type,
            "permissions": one.app.permissions,
            "events": ["issue_comment", "issues", "pull_request", "push"],
            "created_at": stamp(one.created_at),
            "updated_at": stamp(one.created_at),
            "single_file_name": None,
            "suspended_by": None,
            "suspended_at": None,
        }

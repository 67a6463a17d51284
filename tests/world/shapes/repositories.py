"""Repositories and their hooks as GitHub writes them down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.world.shapes.people import Json, PeopleShapes, stamp
from tests.world.state import Attempt, Hook, Role, User

if TYPE_CHECKING:
    from tests.world.repository import Repository

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


class RepositoryShapes(PeopleShapes):
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

    def hook(self, repo: Repository, hook: Hook) -> Json:
        url = f"{self.repo_api(repo)}/hooks/{hook.id}"
        config = {"content_type": hook.content_type, "url": hook.url, "insecure_ssl": "0"}
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
            "last_response": self._last_response(hook),
        }

    @staticmethod
    def _last_response(hook: Hook) -> Json:
        if not hook.attempts:
            return {"code": None, "status": "unused", "message": None}
        last = hook.attempts[-1]
        return {"code": last.code, "status": "active", "message": last.status}

    def attempt(self, one: Attempt) -> Json:
        """As a list of deliveries has it."""
        return {
            "id": one.id,
            "guid": one.delivery.id,
            "delivered_at": stamp(one.at),
            "redelivery": one.again,
            "duration": 0.03,
            "status": one.status,
            "status_code": one.code,
            "event": one.delivery.event,
            "action": one.delivery.action,
            "installation_id": None,
            "repository_id": one.repository_id,
            "throttled_at": None,
        }

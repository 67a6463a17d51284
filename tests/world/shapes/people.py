"""Accounts as GitHub writes them down."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.world.state import User

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


def stamp(at: datetime) -> str:
    """Whole seconds, as GitHub has them."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def maybe(at: datetime | None) -> str | None:
    return None if at is None else stamp(at)


class PeopleShapes:
    """`api`: where REST answers (without a slash at the end); `web`: where people and git go."""

    def __init__(self, api: str, web: str) -> None:
        self.api = api
        self.web = web

    @staticmethod
    def node(kind: str, number: int) -> str:
        return base64.b64encode(f"{kind}_{number}".encode()).decode()

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

    def someone(self, user: User | None) -> Json | None:
        """Null for an account that was deleted."""
        return None if user is None else self.user(user)

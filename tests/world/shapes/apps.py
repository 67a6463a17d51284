"""GitHub Apps and their installations as GitHub writes them down."""

from __future__ import annotations

from tests.world.shapes.people import Json, PeopleShapes, maybe, stamp
from tests.world.state import App, Installation

_EVENTS = ["issue_comment", "issues", "pull_request", "push"]


class AppShapes(PeopleShapes):
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
            "events": _EVENTS,
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
            "events": _EVENTS,
            "created_at": stamp(one.created_at),
            "updated_at": stamp(one.created_at),
            "single_file_name": None,
            "suspended_by": self.user(one.account) if one.suspended_at else None,
            "suspended_at": maybe(one.suspended_at),
        }

"""The calls on people, repositories, their collaborators and hooks."""

from __future__ import annotations

from typing import Any

from tests.world.calls import Call, Refuse, invalid, not_found
from tests.world.exchange import Answer
from tests.world.state import NOTHING


def rate_limit(call: Call) -> Answer:
    figures = call.world.allowance(call.key).figures
    return Answer(200, {"resources": {"core": figures, "search": figures}, "rate": figures})


def me(call: Call) -> Answer:
    if call.app is not None or (call.viewer is not None and call.viewer.installation is not None):
        raise Refuse(403, "Resource not accessible by integration")
    return Answer(200, call.world.shapes.private_user(call.user))


def user(call: Call) -> Answer:
    if call.app is not None:
        raise Refuse(401, "Bad credentials")
    person = call.world.users.get(call.args["username"])
    if person is None:
        raise not_found()
    return Answer(200, call.world.shapes.public_user(person))


def repository(call: Call) -> Answer:
    role = None if call.viewer is None or call.viewer.installation else call.repo.role_of(call.viewer.user)
    return Answer(200, call.world.shapes.full_repository(call.repo, role))


def permission(call: Call) -> Answer:
    """Everybody may read a public repository: whoever has an account gets an answer."""
    if not call.world.may(call.repo, call.viewer, "push"):
        raise Refuse(403, "Must have push access to view collaborator permission.")
    person = call.world.users.get(call.args["username"])
    if person is None:
        raise Refuse(404, f"{call.args['username']} is not a user")
    role = call.repo.role_of(person)
    permissions = role.permissions if role else NOTHING
    return Answer(200, call.world.shapes.collaborator_permission(person, role, permissions))


def hooks(call: Call) -> Answer:
    repo = _administered(call)
    return call.page([call.world.shapes.hook(repo, hook) for hook in repo.hooks])


def add_hook(call: Call) -> Answer:
    repo = _administered(call)
    config: Any = call.body.get("config")
    if not isinstance(config, dict) or not config.get("url"):
        raise invalid("Hook", "url", "missing_field")
    if any(hook.url == config["url"] for hook in repo.hooks):
        message = "Hook already exists on this repository"
        raise Refuse(422, "Validation Failed", [{"resource": "Hook", "code": "custom", "message": message}])
    hook = repo.hook(config["url"], secret=config.get("secret"), events=tuple(call.body.get("events", ("push",))))
    return Answer(201, call.world.shapes.hook(repo, hook))


def _administered(call: Call) -> Any:
    """GitHub hides hooks from all but admins: 404."""
    if not call.world.may(call.repo, call.viewer, "admin"):
        raise not_found()
    return call.repo

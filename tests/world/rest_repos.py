"""The calls on people, repositories and their collaborators."""

from __future__ import annotations

from tests.world.calls import Call, Refuse, not_found
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

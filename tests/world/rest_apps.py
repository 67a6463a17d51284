"""The calls of a GitHub App: signed with its key (RS256), they give tokens that last an hour.

https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jwt

from tests.world.calls import Call, Refuse, not_found
from tests.world.exchange import Answer
from tests.world.shapes import stamp
from tests.world.state import App

if TYPE_CHECKING:
    from tests.world.world import World


def signed_in(world: World, token: str) -> App:
    """Whose JWT it is; the signature, the times and the longest life of ten minutes are checked."""
    refused = Refuse(401, "A JSON web token could not be decoded")
    try:
        issuer = jwt.decode(token, options={"verify_signature": False}).get("iss")
        app = world.apps.get(str(issuer))
        if app is None:
            raise Refuse(404, "Integration not found")
        claims = jwt.decode(token, app.public_key, algorithms=["RS256"], options={"require": ["iat", "exp"]})
    except jwt.PyJWTError:
        raise refused from None
    if claims["exp"] - claims["iat"] > 660:
        raise Refuse(401, "'Expiration time' claim ('exp') is too far in the future")
    return app


def signed_app(call: Call) -> App:
    if call.app is None:
        raise Refuse(401, "A JSON web token could not be decoded")
    return call.app


def app(call: Call) -> Answer:
    return Answer(200, call.world.shapes.app(signed_app(call)))


def installations(call: Call) -> Answer:
    own = [one for one in call.world.installations.values() if one.app is signed_app(call)]
    return call.page([call.world.shapes.installation(one) for one in own])


def installation_of(call: Call) -> Answer:
    name = f"{call.args['owner']}/{call.args['repo']}"
    for one in call.world.installations.values():
        if one.app is signed_app(call) and name in one.repositories:
            return Answer(200, call.world.shapes.installation(one))
    raise not_found()


def access_token(call: Call) -> Answer:
    """For all of the installation's repositories, or for those named."""
    one = call.world.installations.get(call.number("installation_id"))
    if one is None or one.app is not signed_app(call):
        raise not_found()
    if one.suspended_at is not None:
        raise Refuse(403, "This installation has been suspended")
    names = {f"{one.account.login}/{name}" for name in call.body.get("repositories", ())} or one.repositories
    if not names <= one.repositories:
        raise Refuse(422, "There is at least one repository that does not exist or is not accessible.", [])
    token, expires_at = call.world.installation_token(one, frozenset(names))
    answer = {
        "token": token,
        "expires_at": stamp(expires_at),
        "permissions": one.app.permissions,
        "repository_selection": "selected",
    }
    return Answer(201, answer)

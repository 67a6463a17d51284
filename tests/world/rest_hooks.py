"""The calls on webhooks: a repository's, an App's, and what became of their deliveries.

https://docs.github.com/en/rest/repos/webhooks
"""

from __future__ import annotations

from typing import Any

from tests.world.calls import Call, Refuse, invalid, not_found
from tests.world.exchange import API, Answer
from tests.world.repository import Repository
from tests.world.rest_apps import signed_app
from tests.world.state import Attempt, Hook

_MAY_READ = {"repo", "public_repo", "admin:repo_hook", "write:repo_hook", "read:repo_hook"}
_MAY_WRITE = _MAY_READ - {"read:repo_hook"}


def _administered(call: Call, *, writes: bool = False) -> Repository:
    """GitHub hides webhooks from all but admins, from tokens without the scope, from Apps without the permission."""
    viewer = call.viewer
    if viewer is not None and viewer.installation is not None:
        has = viewer.installation.app.permissions.get("repository_hooks")
        if has is None or (writes and has != "write"):
            raise Refuse(403, "Resource not accessible by integration")
        return call.repo
    scopes = viewer.user.scopes if viewer is not None else ()
    scoped = scopes is None or set(scopes) & (_MAY_WRITE if writes else _MAY_READ)
    if not scoped or not call.world.may(call.repo, viewer, "admin"):
        raise not_found()
    return call.repo


def hooks(call: Call) -> Answer:
    repo = _administered(call)
    return call.page([call.world.shapes.hook(repo, hook) for hook in repo.hooks])


def add_hook(call: Call) -> Answer:
    repo = _administered(call, writes=True)
    config: Any = call.body.get("config")
    if not isinstance(config, dict) or not config.get("url"):
        raise invalid("Hook", "url", "missing_field")
    if any(hook.url == config["url"] for hook in repo.hooks):
        message = "Hook already exists on this repository"
        raise Refuse(422, "Validation Failed", [{"resource": "Hook", "code": "custom", "message": message}])
    hook = repo.hook(config["url"], secret=config.get("secret"), events=tuple(call.body.get("events", ("push",))))
    return Answer(201, call.world.shapes.hook(repo, hook))


def deliveries(call: Call) -> Answer:
    return _listed(call, _hook(call, _administered(call)))


def send_again(call: Call) -> Answer:
    return _again(call, _hook(call, _administered(call, writes=True)))


def app_hook(call: Call) -> Answer:
    hook = signed_app(call).hook
    config = {"content_type": hook.content_type, "insecure_ssl": "0", "url": hook.url} if hook else {}
    return Answer(200, config)


def app_deliveries(call: Call) -> Answer:
    return _listed(call, _of_app(call))


def send_again_of_app(call: Call) -> Answer:
    return _again(call, _of_app(call))


def _hook(call: Call, repo: Repository) -> Hook:
    for hook in repo.hooks:
        if hook.id == call.number("hook_id"):
            return hook
    raise not_found()


def _of_app(call: Call) -> Hook:
    hook = signed_app(call).hook
    if hook is None:
        raise not_found()
    return hook


def _listed(call: Call, hook: Hook) -> Answer:
    """Newest first; the next page by a cursor, not by a number."""
    size = min(int(call.query.get("per_page", "30")), 100)
    before = int(call.query.get("cursor", "0").removeprefix("v1_") or 0)
    left = [one for one in reversed(hook.attempts) if not before or one.id < before]
    shown = left[:size]
    headers = {}
    if len(left) > size:
        url = f"{call.world.url}{API}{call.request.path}?per_page={size}&cursor=v1_{shown[-1].id}"
        headers["Link"] = f'<{url}>; rel="next"'
    return Answer(200, [call.world.shapes.attempt(one) for one in shown], headers)


def _again(call: Call, hook: Hook) -> Answer:
    tried: Attempt | None = next((one for one in hook.attempts if one.id == call.number("delivery_id")), None)
    if tried is None:
        raise not_found()
    call.world.later(lambda: call.world.attempt(hook, tried.delivery, tried.repository_id, again=True))
    return Answer(202, {})

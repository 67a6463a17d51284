"""GitHub's REST API, as far as a workflow bot uses it: who asks, may they, and the table of all calls.

https://docs.github.com/en/rest
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tests.world import rest_apps, rest_git, rest_hooks, rest_repos, rest_threads
from tests.world.calls import Call, Refuse, not_found
from tests.world.exchange import Answer, Request

if TYPE_CHECKING:
    from tests.world.world import World

R = "/repos/{owner}/{repo}"

CALLS: dict[str, Callable[[Call], Answer]] = {
    "GET /rate_limit": rest_repos.rate_limit,
    "GET /user": rest_repos.me,
    "GET /users/{username}": rest_repos.user,
    "GET /app": rest_apps.app,
    "GET /app/installations": rest_apps.installations,
    "POST /app/installations/{installation_id}/access_tokens": rest_apps.access_token,
    f"GET {R}/installation": rest_apps.installation_of,
    f"GET {R}": rest_repos.repository,
    f"GET {R}/collaborators/{{username}}/permission": rest_repos.permission,
    "GET /app/hook/config": rest_hooks.app_hook,
    "GET /app/hook/deliveries": rest_hooks.app_deliveries,
    "POST /app/hook/deliveries/{delivery_id}/attempts": rest_hooks.send_again_of_app,
    f"GET {R}/hooks": rest_hooks.hooks,
    f"POST {R}/hooks": rest_hooks.add_hook,
    f"GET {R}/hooks/{{hook_id}}/deliveries": rest_hooks.deliveries,
    f"POST {R}/hooks/{{hook_id}}/deliveries/{{delivery_id}}/attempts": rest_hooks.send_again,
    f"GET {R}/activity": rest_git.activity,
    f"GET {R}/rules/branches/{{branch}}": rest_git.rules,
    f"GET {R}/branches": rest_git.branches,
    f"GET {R}/branches/{{branch}}": rest_git.branch,
    f"GET {R}/git/ref/{{ref}}": rest_git.ref,
    f"GET {R}/git/blobs/{{file_sha}}": rest_git.blob,
    f"GET {R}/contents/{{path}}": rest_git.content,
    f"GET {R}/commits/{{ref}}/status": rest_git.combined_status,
    f"GET {R}/commits/{{ref}}/check-runs": rest_git.check_runs,
    f"GET {R}/commits/{{ref}}": rest_git.commit,
    f"GET {R}/compare/{{basehead}}": rest_git.compare,
    f"POST {R}/statuses/{{sha}}": rest_git.add_status,
    f"POST {R}/check-runs": rest_git.add_check_run,
    f"PATCH {R}/check-runs/{{check_run_id}}": rest_git.edit_check_run,
    f"GET {R}/pulls": rest_threads.pulls,
    f"POST {R}/pulls": rest_threads.add_pull,
    f"GET {R}/pulls/{{pull_number}}": rest_threads.pull,
    f"GET {R}/pulls/{{pull_number}}/files": rest_threads.files,
    f"GET {R}/issues": rest_threads.issues,
    f"POST {R}/issues": rest_threads.add_issue,
    f"GET {R}/issues/events": rest_threads.issue_events,
    f"GET {R}/issues/comments": rest_threads.all_comments,
    f"GET {R}/issues/comments/{{comment_id}}": rest_threads.comment,
    f"PATCH {R}/issues/comments/{{comment_id}}": rest_threads.edit_comment,
    f"DELETE {R}/issues/comments/{{comment_id}}": rest_threads.delete_comment,
    f"GET {R}/issues/comments/{{comment_id}}/reactions": rest_threads.comment_reactions,
    f"POST {R}/issues/comments/{{comment_id}}/reactions": rest_threads.react,
    f"GET {R}/issues/{{issue_number}}": rest_threads.issue,
    f"PATCH {R}/issues/{{issue_number}}": rest_threads.edit_issue,
    f"GET {R}/issues/{{issue_number}}/comments": rest_threads.comments,
    f"GET {R}/issues/{{issue_number}}/timeline": rest_threads.timeline,
    f"POST {R}/issues/{{issue_number}}/comments": rest_threads.add_comment,
    f"POST {R}/issues/{{issue_number}}/labels": rest_threads.add_labels,
    f"DELETE {R}/issues/{{issue_number}}/labels/{{name}}": rest_threads.remove_label,
    f"POST {R}/issues/{{issue_number}}/assignees": rest_threads.add_assignees,
    f"DELETE {R}/issues/{{issue_number}}/assignees": rest_threads.remove_assignees,
}
"""`METHOD template` as the OpenAPI description names them; the first that fits answers."""

_SPANNING = {"path", "ref", "branch", "basehead"}  # these may hold slashes


def _pattern(key: str) -> re.Pattern[str]:
    def group(match: re.Match[str]) -> str:
        name = match[1]
        return f"(?P<{name}>{'.+' if name in _SPANNING else '[^/]+'})"

    return re.compile(re.sub(r"\\{(\w+)\\}", group, re.escape(key)))


_TABLE = [(_pattern(key), key.partition(" ")[2], call) for key, call in CALLS.items()]


def answer(world: World, request: Request) -> Answer:
    """What the API says to one request; every answer carries the rate limit's headers."""
    with world.lock:
        given, headers = _admitted(world, request)
        if given.status == 200 and request.method == "GET":
            given = _conditional(request, given)
        given.headers = headers | given.headers
        return given


def _admitted(world: World, request: Request) -> tuple[Answer, dict[str, str]]:
    headers: dict[str, str] = {}
    try:
        call = _identified(world, request)
        allowance = world.allowance(call.key)
        admitted = allowance.use(world.now())
        headers = allowance.headers() | _scopes(call)
        return (_route(call) if admitted else _exceeded(call)), headers
    except Refuse as refused:
        return refused.answer(), headers


def _scopes(call: Call) -> dict[str, str]:
    """A classic token's scopes are shown with every answer."""
    scopes = call.viewer.user.scopes if call.viewer and call.viewer.installation is None else None
    return {} if scopes is None else {"X-OAuth-Scopes": ", ".join(scopes)}


def _exceeded(call: Call) -> Answer:
    return Refuse(403, f"API rate limit exceeded for {call.key}.").answer()


def _identified(world: World, request: Request) -> Call:
    """An App's JWT, a token, or nobody; a token that is no good is refused even where nobody could read."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if not token:
        return Call(world, request)
    if token.count(".") == 2:
        return Call(world, request, app=rest_apps.signed_in(world, token))
    viewer = world.viewer(token) if kind.lower() in ("token", "bearer") else None
    if viewer is None:
        raise Refuse(401, "Bad credentials")
    return Call(world, request, viewer=viewer)


def _route(call: Call) -> Answer:
    target = f"{call.request.method} {call.request.path}"
    for pattern, template, respond in _TABLE:
        if match := pattern.fullmatch(target):
            call.request.template = template
            call.args = {name: unquote(value) for name, value in match.groupdict().items()}
            return respond(call)
    raise not_found()


def _conditional(request: Request, given: Answer) -> Answer:
    """https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#use-conditional-requests"""
    etag = f'W/"{hashlib.sha256(json.dumps(given.body).encode()).hexdigest()}"'
    if request.headers.get("if-none-match") == etag:
        return Answer(304, None, {"ETag": etag})
    return Answer(given.status, given.body, given.headers | {"ETag": etag})

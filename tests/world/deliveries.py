"""What the world tells of what happened: webhook deliveries as GitHub sends them, headers and bytes, signed.

https://docs.github.com/en/webhooks/webhook-events-and-payloads
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.world.gitrepo import ZERO
from tests.world.state import Comment, User

if TYPE_CHECKING:
    from tests.world.repository import Repository


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery, ready to be posted; posted again it is a redelivery: the same id, the same bytes."""

    id: str
    event: str
    headers: dict[str, str]
    body: bytes
    comment: Comment | None = None
    """The comment it tells of."""

    @property
    def payload(self) -> Any:
        return json.loads(self.body)

    @property
    def action(self) -> str | None:
        action = self.payload.get("action")
        return None if action is None else str(action)

    def signed(self, secret: str) -> Delivery:
        """The same delivery under another secret."""
        return Delivery(self.id, self.event, self.headers | signatures(secret, self.body), self.body, self.comment)


def signatures(secret: str, body: bytes) -> dict[str, str]:
    """https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries"""
    return {
        "X-Hub-Signature": "sha1=" + hmac.new(secret.encode(), body, hashlib.sha1).hexdigest(),
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }


def tell(
    repo: Repository, event: str, by: User, payload: dict[str, Any], *, comment: Comment | None = None
) -> Delivery:
    """Builds the delivery, puts it into the world's outbox and returns it."""
    world = repo.world
    whole = payload | {"repository": payload.get("repository") or world.shapes.repository(repo)}
    if repo.owner.type == "Organization":
        whole["organization"] = world.shapes.organization(repo.owner)
    whole["sender"] = world.shapes.user(by)
    installation = world.installation_of(repo)
    if installation is not None:
        whole["installation"] = {"id": installation.id, "node_id": world.shapes.node("I", installation.id)}
    delivery = _delivery(repo, event, whole, comment)
    world.outbox.append(delivery)
    return delivery


def _delivery(repo: Repository, event: str, payload: dict[str, Any], comment: Comment | None) -> Delivery:
    body = json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    hook = repo.hooks[-1] if repo.hooks else None
    guid = str(uuid.uuid4())
    headers = {
        "Accept": "*/*",
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/044aadd",
        "X-GitHub-Delivery": guid,
        "X-GitHub-Event": event,
        "X-GitHub-Hook-ID": str(hook.id if hook else repo.id),
        "X-GitHub-Hook-Installation-Target-ID": str(repo.id),
        "X-GitHub-Hook-Installation-Target-Type": "repository",
    }
    secret = (hook.secret if hook else None) or repo.world.secret
    return Delivery(guid, event, headers | signatures(secret, body), body, comment)


def ping(repo: Repository) -> Delivery:
    """What a new hook gets first."""
    hook = repo.hooks[-1]
    payload = {"zen": "Keep it logically awesome.", "hook_id": hook.id, "hook": repo.world.shapes.hook(repo, hook)}
    return tell(repo, "ping", repo.owner, payload)


def tell_push(repo: Repository, ref: str, before: str, after: str, by: User) -> Delivery:
    """`before` or `after` is forty zeros where the ref was made or deleted."""
    world, git = repo.world, repo.git
    known = ZERO not in (before, after)
    new = [] if after == ZERO else git.log(before, after) if known else [git.read(after)]
    commits = [world.shapes.pushed_commit(repo, commit) for commit in new]
    tip = None if after == ZERO else world.shapes.pushed_commit(repo, git.read(after))
    spans = f"{before[:12]}...{after[:12]}" if known else after[:12]
    payload = {
        "ref": ref,
        "before": before,
        "after": after,
        "repository": world.shapes.pushed_repository(repo),
        "pusher": {"name": by.login, "email": f"{by.id}+{by.login}@users.noreply.example"},
        "created": before == ZERO,
        "deleted": after == ZERO,
        "forced": known and not git.is_ancestor(before, after),
        "base_ref": None,
        "compare": f"{world.url}/{repo.full_name}/compare/{spans}",
        "commits": commits,
        "head_commit": tip,
    }
    return tell(repo, "push", by, payload)

"""A pull request or issue of the local forge, for programs and for people at a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bot.forges.local import Local
from bot.forges.local.threads import Said, Thread
from bot.invisible import made_visible
from bot.model import PullRef

_MARKERS = re.compile(r"\A(?:<!-- leadsman .*?-->\s*)+|<!-- leadsman report=\S+ -->")


def facts(forge: Local, thread: Thread, conversation: Sequence[Said] | None = None) -> dict[str, Any]:
    """What `--json` prints of it; with its comments where they are given."""
    ref = thread.ref
    found: dict[str, Any] = {
        "subject": f"{thread.repo.name}#{thread.number}",
        "kind": thread.kind,
        "title": thread.title,
        "body": thread.body,
        "author": thread.author,
        "state": thread.state,
        "labels": list(thread.labels),
        "assignees": list(thread.assignees),
        "url": forge.thread_url(ref),
    }
    if isinstance(ref, PullRef):
        pull = forge.pull(ref)
        found |= {"state": _state(pull.open, pull.merged), "head": pull.head_ref, "base": pull.base_ref}
        found["head_sha"] = pull.head_sha
    if conversation is not None:
        found["comments"] = [_comment(said) for said in conversation]
    return found


def page(thread: Thread, known: dict[str, Any], conversation: Sequence[Said]) -> str:
    """The same for people, the oldest comment first."""
    lines = [f"{known['subject']} {plain(thread.title)}", f"{known['state']} {thread.kind} by {thread.author}"]
    if thread.kind == "pull":
        lines.append(f"{plain(known['head'])} into {plain(known['base'])} at {known['head_sha']}")
    if thread.labels:
        lines.append(f"labels: {', '.join(map(plain, thread.labels))}")
    if thread.assignees:
        lines.append(f"assigned to: {', '.join(map(plain, thread.assignees))}")
    lines.append(known["url"])
    if thread.body:
        lines += ["", plain(thread.body)]
    for said in conversation:
        reactions = f" [{', '.join(said.reactions)}]" if said.reactions else ""
        lines += [
            "",
            f"-- {said.id}: {said.author}, {said.created_at:%Y-%m-%d %H:%M:%SZ}{reactions}",
            plain(without_markers(said.body)),
        ]
    return "\n".join(lines)


def _comment(said: Said) -> dict[str, Any]:
    return {
        "id": said.id,
        "author": said.author,
        "at": said.created_at.isoformat().replace("+00:00", "Z"),
        "edited": said.updated_at > said.created_at,
        "body": said.body,
        "reactions": list(said.reactions),
    }


def without_markers(body: str) -> str:
    """A comment of the bot without the HTML comments by which it finds it again, and in which a report is carried."""
    return _MARKERS.sub("", body).strip()


def _state(is_open: bool, merged: bool) -> str:
    return "open" if is_open else "merged" if merged else "closed"


def plain(text: str) -> str:
    """Text that can't move the cursor or turn the line around."""
    return made_visible(text.replace("\r\n", "\n"), keep="\n")

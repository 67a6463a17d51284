"""Which names of branches, refs and commits are acceptable: asked before git sees them."""

from __future__ import annotations

import re

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_SHA = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")

COMPONENT_BYTES = 250
"""A loose ref's component is a file name, and git appends `.lock` to it: 255 less five."""


def is_sha(text: str) -> bool:
    """Is it a full object id: 40 or 64 lower-case hex digits?"""
    return _SHA.fullmatch(text) is not None


def is_ref(name: str) -> bool:
    """Is it a full ref name (`refs/...`) by the rules of git-check-ref-format(1)?"""
    return name.startswith("refs/") and _well_formed(name)


def is_branch(name: str) -> bool:
    """Is it a branch name that `git check-ref-format --branch` takes, and no shorthand such as `@{-1}`?

    One that begins with `-` would be read as an option, and `HEAD` means something else everywhere.
    """
    return not name.startswith("-") and name != "HEAD" and _well_formed(f"refs/heads/{name}")


def _well_formed(name: str) -> bool:
    if _FORBIDDEN.search(name) or name.endswith((".", "/")):
        return False
    try:
        parts = name.encode().split(b"/")
    except UnicodeEncodeError:
        return False
    return all(
        part and not part.startswith(b".") and not part.endswith(b".lock") and len(part) <= COMPONENT_BYTES
        for part in parts
    )

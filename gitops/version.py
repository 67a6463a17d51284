"""Which git is here."""

from __future__ import annotations

import re
from pathlib import Path

from gitops.git import Git, GitError


def git_version() -> tuple[int, ...] | None:
    """Its version as numbers; None where there is no git on PATH."""
    try:
        text = Git(Path("/.git")).run("version", timeout=10.0).text
    except (GitError, OSError):
        return None
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in found.groups() if part is not None) if found else None

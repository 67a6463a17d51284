"""The git hooks that a run gets: its commits carry trailers, and it pushes nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from gitops.credentials import censor_urls
from gitops.git import Identity, config_environment

_COMMIT_MSG = """#!/bin/sh
# Adds what each commit of this run says of where it comes from, and leaves the trailers it has already.
set -eu
message=$1
here=$(dirname -- "$0")
set --
while IFS= read -r trailer; do
    set -- "$@" --trailer "$trailer"
done < "$here/trailers"
[ "$#" -eq 0 ] || exec git interpret-trailers --in-place --if-exists addIfDifferent "$@" -- "$message"
"""

_PRE_PUSH = """#!/bin/sh
# Refuses, and notes what was tried: the remote, then a line for each ref (githooks(5)).
here=$(dirname -- "$0")
{ printf '%s\\n' "to $1"; cat; } >> "$here/pushes" 2>/dev/null
echo "Nothing can be pushed from inside a run. Commit it: Leadsman publishes the commits after the run has ended." >&2
exit 1
"""


_PUSHES = "pushes"
_PUSHES_READ = 65_536
_PUSHES_TOLD = 20


def write(folder: Path, trailers: Mapping[str, str]) -> None:
    """Write the hooks into `folder`, made if it is missing. An empty value gives no trailer."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (f"{key}: {line}\n" for key, value in trailers.items() if (line := _one_line(value)))
    _put(folder / "trailers", "".join(lines), 0o600)
    _put(folder / "commit-msg", _COMMIT_MSG, 0o700)
    _put(folder / "pre-push", _PRE_PUSH, 0o700)


def run_environment(folder: Path, identity: Identity) -> dict[str, str]:
    """The variables that let git inside a run use the hooks of `folder`, commit as `identity` and ask nobody anything.

    No credential helper of the host's answers for it.
    """
    settings = (("core.hooksPath", str(folder.absolute())), ("credential.helper", ""), ("gc.auto", "0"))
    return {**identity.environment(), **config_environment(settings), "GIT_TERMINAL_PROMPT": "0"}


def refused_pushes(folder: Path) -> list[str]:
    """What was tried to be pushed past the hook of `folder`, in words; the first few, and what a run made of the file.

    The run could write that file: it tells what can be told, and proves nothing.
    """
    try:
        descriptor = os.open(folder / _PUSHES, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
        lines = os.read(descriptor, _PUSHES_READ).decode(errors="replace").splitlines() if plain else []
    finally:
        os.close(descriptor)
    told, remote = [], ""
    for line in lines:
        words = line.split(" ")
        if words[0] == "to":
            remote = censor_urls(line.removeprefix("to "))
        elif len(words) == 4:
            told.append(f"push of {words[0]} to {words[2]} of {remote}")
    return [_one_line(line) for line in told[:_PUSHES_TOLD]]


def _one_line(text: str) -> str:
    """`text` without what would begin another line or end a string."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _put(path: Path, text: str, mode: int) -> None:
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_text(text)
    temporary.chmod(mode)
    temporary.replace(path)

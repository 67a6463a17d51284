"""The hook by which a repository of the local forge tells of pushes, and what it tells."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.config import Config
from bot.model import Sha
from gitops.hooks import REFUSED_PUSHES

HOOK = """#!/bin/sh
# Tells Leadsman what was pushed to a branch. Its own pushes are no news to it: they come from a git whose home is
# nowhere.
[ "$HOME" = /nonexistent ] && exit 0
pushed=$(grep ' refs/heads/') || exit 0
printf '%s\\n' "$pushed" | {call}
"""


GUARD = f"""#!/bin/sh
# Nothing comes from inside a run: Leadsman publishes its commits after it has ended, and after they were checked.
# A run can empty the environment of what it starts, and not its own.
refuse() {{
    echo "Nothing can be pushed from inside a run." >&2
    exit 1
}}
[ -z "${{{REFUSED_PUSHES}-}}" ] || refuse
[ "$HOME" = /nonexistent ] && exit 0
next=$$ seen=
while [ "${{next:-0}}" -gt 1 ]; do
    pid=$next next=
    seen="$seen /proc/$pid/environ"
    while read -r name value; do [ "$name" = PPid: ] && next=$value; done 2>/dev/null < "/proc/$pid/status"
done
grep -qsz "^{REFUSED_PUSHES}=." $seen && refuse
exit 0
"""


@dataclass(frozen=True, slots=True)
class Update:
    """A ref that was pushed: its commit before and after; None where there was, or is, none."""

    ref: str
    before: Sha | None
    after: Sha | None


def install(repository: Path, home: Path, config: Config, name: str) -> None:
    """Writes the repository's hooks. What tells of pushes calls this very installation, wherever they come from."""
    call = [sys.executable, "-I", "-c", "import sys; from bot.cli import main; sys.exit(main())", "--home", str(home)]
    if config.source is not None:
        call += ["--config", str(config.source.absolute())]
    folder = repository / "hooks"
    folder.mkdir(exist_ok=True)
    tell = HOOK.format(call=shlex.join([*call, "local", "received", name]))
    for hook, text in (("post-receive", tell), ("pre-receive", GUARD)):
        (folder / hook).write_text(text)
        (folder / hook).chmod(0o755)


def updates(told: bytes) -> Iterator[Update]:
    """The lines that git gives a post-receive hook: `<before> <after> <ref>` (githooks(5))."""
    for line in told.splitlines():
        before, after, ref = os.fsdecode(line).split(" ", 2)
        yield Update(ref, _sha(before), _sha(after))


def _sha(text: str) -> Sha | None:
    return Sha(text) if text.strip("0") else None

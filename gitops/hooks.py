"""The git hooks that a run gets: its commits carry trailers, and it pushes nothing."""

from __future__ import annotations

import os
import re
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
if [ -s "$here/suffix" ]; then
    suffix=$(cat "$here/suffix")
    IFS= read -r subject < "$message" || [ -n "$subject" ]
    case $subject in
    *"$suffix"* | '' | '#'*) ;;
    *)
        { read -r _ || :; printf '%s %s\\n' "$subject" "$suffix"; cat; } < "$message" > "$message.leadsman"
        mv -f "$message.leadsman" "$message"
        ;;
    esac
fi
set --
while IFS= read -r trailer; do
    set -- "$@" --trailer "$trailer"
done < "$here/trailers"
[ "$#" -eq 0 ] || exec git interpret-trailers --in-place --if-exists addIfDifferent "$@" -- "$message"
"""

_REFUSED = "Nothing can be pushed from inside a run. Commit it: Leadsman publishes the commits after the run has ended."

_PRE_PUSH = f"""#!/bin/sh
# Refuses, and notes what was tried: the remote, then a line for each ref (githooks(5)).
here=$(dirname -- "$0")
{{ printf 'to %s\\n' "${{2#leadsman::}}"; cat; }} >> "$here/pushes" 2>/dev/null
echo "{_REFUSED}" >&2
exit 1
"""

_REMOTE_HELPER = f"""#!/bin/sh
# What every push from inside a run is led to, past hooks or not: it speaks as a remote (gitremote-helpers(7)), notes
# what was tried, and refuses.
here=$(dirname -- "$0")
refused=
while IFS= read -r line; do
    case $line in
    capabilities) printf 'push\\n\\n' ;;
    list*) printf '\\n' ;;
    push\\ *)
        printf 'to %s\\n%s\\n' "$2" "${{line#push }}" >> "$here/pushes" 2>/dev/null
        refused="$refused${{refused:+
}}error ${{line##*:}} nothing is pushed from inside a run"
        ;;
    '')
        [ -n "$refused" ] || exit 0
        printf '%s\\n\\n' "$refused"
        echo "{_REFUSED}" >&2
        refused=
        ;;
    esac
done
"""

REFUSED_PUSHES = "LEADSMAN_PUSHES_NOTHING"
"""Set inside a run. A repository on this host sees it in whoever pushes there by its path."""

_PUSHES = "pushes"
_PUSHES_READ = 65_536
_PUSHES_TOLD = 20


def write(folder: Path, trailers: Mapping[str, str], *, suffix: str = "") -> None:
    """Write the hooks into `folder`, made if it is missing. An empty value gives no trailer; `suffix` ends each
    subject."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (f"{key}: {line}\n" for key, value in trailers.items() if (line := _one_line(value)))
    _put(folder / "trailers", "".join(lines), 0o600)
    _put(folder / "suffix", _one_line(suffix), 0o600)
    _put(folder / "commit-msg", _COMMIT_MSG, 0o700)
    _put(folder / "pre-push", _PRE_PUSH, 0o700)
    _put(folder / "git-remote-leadsman", _REMOTE_HELPER, 0o700)


def run_environment(folder: Path, identity: Identity) -> dict[str, str]:
    """The variables that let git inside a run use the hooks of `folder`, commit as `identity` and ask nobody anything.

    No credential helper of the host's answers for it, and every push is led to the remote helper of `folder`, which the
    PATH has to have.
    """
    settings = (
        ("core.hooksPath", str(folder.absolute())),
        ("credential.helper", ""),
        ("gc.auto", "0"),
        ("push.default", "nothing"),
        ("url.leadsman::.pushInsteadOf", ""),
    )
    variables = {"GIT_TERMINAL_PROMPT": "0", REFUSED_PUSHES: "1"}
    return {**identity.environment(), **config_environment(settings), **variables}


def checkout_environment(folder: Path, repository: Path) -> dict[str, str]:
    """The variables by which nothing is pushed from a worktree of `repository`, which the hooks of `folder` see to; the
    PATH has to have it.

    Git is as ever in all other repositories: what is checked may make some, and push between them.
    """
    settings = "\n".join(
        ("[core]", f"hooksPath = {_quoted(folder.absolute())}", '[url "leadsman::"]', 'pushInsteadOf = ""', "")
    )
    _put(folder / "gitconfig", settings, 0o600)
    inside = re.sub(r"([\\*?\[\]])", r"\\\1", str(repository.resolve()))  # a glob, for a path without links
    conditional = (
        ("credential.helper", ""),
        (f"includeIf.gitdir:{inside}/.path", str(folder.absolute() / "gitconfig")),
    )
    return {**config_environment(conditional), "GIT_TERMINAL_PROMPT": "0", REFUSED_PUSHES: "1"}


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


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
        lines = os.read(descriptor, _PUSHES_READ).decode(errors="replace").split("\n") if plain else []
    finally:
        os.close(descriptor)
    told, remote = [], ""
    for line in lines:
        words = line.split(" ")
        source, colon, target = line.partition(":")
        if words[0] == "to":
            remote = censor_urls(line.removeprefix("to "))
        elif len(words) == 4:
            told.append(f"push of {words[0]} to {words[2]} of {remote}")
        elif colon:
            forced = " by force" if source.startswith("+") else ""
            told.append(f"push of {source.removeprefix('+') or 'nothing'} to {target} of {remote}{forced}")
    return [_one_line(line) for line in dict.fromkeys(told)][:_PUSHES_TOLD]


def _one_line(text: str) -> str:
    """`text` without what would begin another line or end a string."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _put(path: Path, text: str, mode: int) -> None:
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_text(text)
    temporary.chmod(mode)
    temporary.replace(path)

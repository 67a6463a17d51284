"""The command: is this installation whole, the four packages beside each other and each of them ours; then `bot.cli`.

It is installed as `leadsman.py`, beside the packages and in none: where `bot` itself is somebody else's, nothing in it
could say so.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

PACKAGES = ("bot", "gitops", "handlers", "webhooks")
AGAIN = "install Leadsman into a virtual environment of its own."


def main() -> int:
    """The console script. Answers the exit code."""
    wrong = problem()
    if wrong is not None:
        if sys.stderr is not None:
            sys.stderr.write(f"{wrong}\n")
        return 1
    from bot.cli import main as begin

    return begin()


def problem() -> str | None:
    """One sentence about what is wrong, or None. Looks, and imports nothing: well under a millisecond."""
    found = {name: _parent(name) for name in PACKAGES}
    parents = [parent for parent in found.values() if parent is not None]
    beside = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120 - pathlib takes longer than all of this
    here = beside if beside in parents or not parents else max(parents, key=parents.count)
    for name, parent in found.items():
        if parent is None:
            return f"Leadsman can't start: its package `{name}` is missing in {here}; {AGAIN}"
        if parent != here:
            return (
                f"Leadsman can't start: its packages are in {here}, but `{name}` is found in {parent}, where "
                f"something else has that name; {AGAIN}"
            )
    return None


def _parent(name: str) -> str | None:
    """The folder that the package `name` stands in. One without an `__init__.py` is none of ours."""
    spec = _found(name)
    if spec is None or spec.origin is None:
        return None
    return os.path.dirname(os.path.dirname(os.path.realpath(spec.origin)))  # noqa: PTH120 - as above


def _found(name: str) -> ModuleSpec | None:
    """As `importlib.util.find_spec`, whose import takes longer than a pass."""
    specs = (finder.find_spec(name, None) for finder in sys.meta_path)
    return next((spec for spec in specs if spec is not None), None)

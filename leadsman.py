"""The command: is this installation whole, the four packages beside each other and each of them ours; then `bot.cli`.

It stands beside them and in none: where `bot` itself is somebody else's, nothing in it could say so.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec

PACKAGES = ("bot", "gitops", "handlers", "webhooks")
AGAIN = "install Leadsman into a virtual environment of its own."


def main() -> int:
    """The console script. Answers the exit code."""
    wrong = problem(PACKAGES[:1])  # the others are looked for behind it, but for what takes milliseconds itself
    if wrong is not None:
        if sys.stderr is not None:
            sys.stderr.write(f"{wrong}\n")
        return 1
    from bot.cli import main as begin

    return begin()


def problem(packages: Sequence[str] = PACKAGES) -> str | None:
    """One sentence about what is wrong, or None. Looks, and imports nothing: well under a millisecond each."""
    here = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120 - pathlib takes longer than all of this
    for name in packages:
        found = _parent(name)
        if found is None:
            return f"Leadsman can't start: its package `{name}` is missing in {here}; {AGAIN}"
        if found != here:
            return (
                f"Leadsman can't start: its packages are in {here}, but `{name}` is found in {found}, where "
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

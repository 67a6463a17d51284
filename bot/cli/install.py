"""Is this installation whole: the four packages beside each other, each of them ours."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("bot", "gitops", "handlers", "webhooks")
AGAIN = "install Leadsman into a virtual environment of its own."


def problem() -> str | None:
    """One sentence about what is wrong, or None. Looks, and imports nothing: well under a millisecond each."""
    here = Path(__file__).resolve().parents[2]
    for name in PACKAGES:
        found = _parent(name)
        if found is None:
            return f"Leadsman can't start: its package `{name}` is missing in {here}; {AGAIN}"
        if found != here:
            return (
                f"Leadsman can't start: its packages are in {here}, but `{name}` is found in {found}, where "
                f"something else has that name; {AGAIN}"
            )
    return None


def _parent(name: str) -> Path | None:
    """The folder that the package `name` stands in. One without an `__init__.py` is none of ours."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).resolve().parents[1]

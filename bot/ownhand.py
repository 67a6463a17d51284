"""What this server itself wrote into a run's directory: the run can write there, too, and what it writes counts not.

Known by heart from the moment the run was first looked at, so it is no wall: not over a restart of the server, and not
against a run that kills it. See *Same user, no wall* in ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bot.statefiles import discard, read_plain, write_text


class OwnHand:
    """The files `names` in one run's directory, as they were put there by us. A marker is an empty file."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self._folder = folder
        self._names = tuple(names)
        self._files = {name: there for name in self._names if (there := self._there(name)) is not None}

    def write(self, name: str, text: str) -> None:
        """Writes a file; it is ours from here on, whether that succeeds or not."""
        try:
            write_text(self._folder / name, text)
        finally:
            self.take(name)

    def take(self, name: str) -> None:
        """Takes a file for ours as it is now, or for gone: we have just written or removed it."""
        there = self._there(name)
        if there is None:
            self._files.pop(name, None)
        else:
            self._files[name] = there

    def put_right(self) -> list[str]:
        """Puts back what was changed or taken away and removes what was added by anybody else: the names of these."""
        changed = [name for name in self._names if self._there(name) != self._files.get(name)]
        for name in changed:
            ours = self._files.get(name)
            if ours is None:
                discard(self._folder / name)
            else:
                write_text(self._folder / name, ours.decode("utf-8", "surrogateescape"))
        return changed

    def _there(self, name: str) -> bytes | None:
        """What the file holds; None where there is none, and what no file of ours holds where it is no plain one."""
        try:
            return read_plain(self._folder / name)
        except OSError:
            return b"\0"

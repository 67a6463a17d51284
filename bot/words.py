"""The words a run says of itself, one a line in its `status.log`: `[timestamp] verb: text`."""

from __future__ import annotations

import os
import stat
import time

VERBS = ("working", "blocked", "needs-decision", "resolved", "done", "failed")
WAITING = ("blocked", "needs-decision")

LONGEST = 4000
"""Characters of a line that are looked at."""

AT_ONCE = 1 << 20
"""Bytes of a log that are read at once."""

MOST = 16 << 20
"""Bytes of a log that may be unread; of more, the newest are looked at. Nobody has so much to say."""


class Words:
    """What has been said so far: the newest recognised verb wins, `round: n/m` sets the round, the rest is ignored."""

    def __init__(self) -> None:
        self.verb = ""
        self.text = ""
        self.waits_for = ""
        """What was said with the newest word that it waits for people, whatever was said since."""
        self.round: int | None = None
        self.rounds: int | None = None

    @property
    def heard(self) -> bool:
        """Whether there was any word yet."""
        return bool(self.verb) or self.round is not None

    def hear(self, line: str) -> bool:
        """Takes in one line; whether it held a word."""
        line = line[:LONGEST].strip()
        if line.startswith("["):
            line = line.partition("]")[2].lstrip()
        verb, colon, text = line.partition(":")
        if not colon:
            return False
        if verb == "round":
            return self._count(text)
        if verb not in VERBS:
            return False
        self.verb, self.text = verb, text.strip()
        if verb in WAITING:
            self.waits_for = self.text
        return True

    def _count(self, text: str) -> bool:
        number, slash, total = (part.strip() for part in text.partition("/"))
        if not _is_count(number) or (slash and not _is_count(total)):
            return False
        self.round = int(number)
        self.rounds = int(total) if slash else self.rounds
        return True


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 6


class Listener:
    """Reads what is appended to a status log. The run may put anything in its place: a FIFO holds nobody up."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read = 0
        self._rest = b""
        self.behind = False
        """Whether the last look did not come to the end: there is more to hear at once."""

    def skip(self) -> None:
        """Leaves out what is there already: the words of an earlier round."""
        try:
            self._read = os.stat(self._path).st_size
        except OSError:
            self._read = 0

    def fresh(self, *, to_the_end: bool = False) -> list[str]:
        """The lines since the last look, or as many as are read at once; `to_the_end`, for the last look, takes a last
        line without its line break."""
        self.behind = False
        try:
            log = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return []
        try:
            *lines, self._rest = (self._rest + self._read_on(log)).split(b"\n")
        except OSError:
            return []
        finally:
            os.close(log)
        self._rest = self._rest[:AT_ONCE]
        if to_the_end and not self.behind:
            lines.append(self._rest)
            self._rest = b""
        return [line.decode("utf-8", "replace") for line in lines]

    def _read_on(self, log: int) -> bytes:
        facts = os.fstat(log)
        if not stat.S_ISREG(facts.st_mode):
            return b""
        if facts.st_size < self._read:
            self._read, self._rest = 0, b""
        self._read = max(self._read, facts.st_size - MOST)
        fresh = os.pread(log, AT_ONCE, self._read) if facts.st_size > self._read else b""
        self._read += len(fresh)
        self.behind = bool(fresh) and self._read < facts.st_size
        return fresh


def spoken(verb: str, text: str, at: float) -> str:
    """The line that says it, at `at` seconds since the epoch. Line breaks become spaces: one word is one line."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    return f"[{stamp}] {verb}: {' '.join(text.split())}\n"

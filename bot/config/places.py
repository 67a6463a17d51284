"""Where a key stands in a TOML text: tomllib reads values and forgets lines."""

from __future__ import annotations

from collections.abc import Mapping

Path = tuple[str | int, ...]
"""Keys and, in arrays, indices from 0: `("task", 0, "verify", 1, "run")`."""


def places(text: str) -> Mapping[Path, int]:
    """The line, from 1, of each table and key of a text that `tomllib` has accepted."""
    walker = _Walker(text)
    walker.document()
    return walker.lines


class _Walker:
    """Goes through a text that is known to be valid, so that it may take what it sees for what it is."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.lines: dict[Path, int] = {}
        self._sizes: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while self._skip("\n"):
            if self._starts("["):
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        is_array = self._starts("[[")
        self._step(2 if is_array else 1)
        *above, last = self._keys("]")
        self._step(2 if is_array else 1)
        path = (*self._inside(above), last)
        if is_array:
            self._sizes[path] = self._sizes.get(path, 0) + 1
            path = (*path, self._sizes[path] - 1)
        self._note(path)
        return path

    def _inside(self, keys: list[str]) -> Path:
        """The path of `keys`, where the name of an array of tables means the last table of it."""
        path: Path = ()
        for key in keys:
            path = (*path, key)
            if path in self._sizes:
                path = (*path, self._sizes[path] - 1)
        return path

    def _pair(self, table: Path) -> None:
        line = self.line
        path = (*table, *self._keys("="))
        self._step(1)
        self._note(path, line)
        self._value(path)

    def _keys(self, end: str) -> list[str]:
        keys = []
        while True:
            self._skip()
            if self._starts('"', "'"):
                keys.append(self._string())
            else:
                start = self.at
                while self.text[self.at] not in ". \t=]":
                    self._step(1)
                keys.append(self.text[start : self.at])
            self._skip()
            if self._starts(end):
                return keys
            self._step(1)

    def _value(self, path: Path) -> None:
        self._skip()
        if self._starts("["):
            self._array(path)
        elif self._starts("{"):
            self._inline_table(path)
        elif self._starts('"', "'"):
            self._string()
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self._step(1)

    def _array(self, path: Path) -> None:
        self._step(1)
        index = 0
        while self._skip("\n,") and not self._starts("]"):
            self._note((*path, index))
            self._value((*path, index))
            index += 1
        self._step(1)

    def _inline_table(self, path: Path) -> None:
        self._step(1)
        while self._skip("\n,") and not self._starts("}"):
            self._pair(path)
        self._step(1)

    def _string(self) -> str:
        """Steps over a string; answers its text as a key may have it, which is on one line."""
        import tomllib

        start = self.at
        mark = self.text[start]
        fence = mark * 3 if self._starts(mark * 3) else mark
        self._step(len(fence))
        while not self._starts(fence):
            self._step(2 if mark == '"' and self._starts("\\") else 1)
        self._step(len(fence))
        while len(fence) == 3 and self._starts(mark):  # a multi-line string may end in up to two more of its quotes
            self._step(1)
        text = self.text[start : self.at]
        return text if len(fence) == 3 else str(tomllib.loads(f"k = {text}")["k"])

    def _note(self, path: Path, line: int = 0) -> None:
        """Also the tables above it that nothing has named before: `a.b.c = 1` is where `a` and `a.b` begin."""
        for end in range(1, len(path) + 1):
            self.lines.setdefault(path[:end], line or self.line)

    def _skip(self, also: str = "") -> bool:
        """Steps over blanks, comments and what `also` says; is anything left?"""
        while self.at < len(self.text) and self.text[self.at] in f" \t\r#{also}":
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                self._step(1)
        return self.at < len(self.text)

    def _starts(self, *texts: str) -> bool:
        return self.text.startswith(texts, self.at)

    def _step(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count

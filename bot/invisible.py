"""Characters that a reader can't see: what they hide is refused in commands and made visible in answers."""

from __future__ import annotations

import re
import unicodedata

# Default ignorable characters that are not of category Cf: they take no room, whatever the font. The braille blank and
# the Hangul fillers do take room, and look like a space. https://www.unicode.org/Public/UCD/latest/ucd/PropList.txt
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000))))
)
# Of category Cf, but drawn: signs around Arabic, Syriac and Kaithi numbers.
_DRAWN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
_HIDDEN_KINDS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
COLOURS = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])"
"""What colours a terminal, as a pattern."""
_ANSI = re.compile(COLOURS)


def is_hidden(character: str) -> bool:
    """Is it a control, direction or filler character? A tab is not; half of a surrogate pair is."""
    if character in _BLANK:
        return True
    return character != "\t" and character not in _DRAWN and unicodedata.category(character) in _HIDDEN_KINDS


def hidden_in(text: str) -> tuple[str, ...]:
    """The hidden characters of `text`, each once, in the order in which they come."""
    return tuple(dict.fromkeys(c for c in text if not " " <= c <= "~" and is_hidden(c)))


def without_hidden(text: str) -> str:
    return text if text.isascii() and text.isprintable() else "".join(c for c in text if not is_hidden(c))


def name_of(character: str) -> str:
    """`U+202E RIGHT-TO-LEFT OVERRIDE`; controls and surrogates have no name."""
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()


def made_visible(text: str, *, keep: str = "") -> str:
    """`text` with each hidden character but those in `keep` written as `\\u202e`; colours of a terminal are dropped."""
    return "".join(
        c if c in keep or " " <= c <= "~" or not is_hidden(c) else _written_out(c) for c in _ANSI.sub("", text)
    )


def _written_out(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"

"""Which known word was meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like `word`, or None where none is."""
    from difflib import get_close_matches

    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`, did you mean "fix"?`, or nothing: the end of a sentence about an unknown word."""
    match = nearest(word, known)
    return f', did you mean "{match}"?' if match else ""

"""Takes secrets out of text before it is shown or kept: the configured ones, and what looks like one."""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote

from bot.invisible import COLOURS
from bot.secret import Secret

_BLOT = "***"

_SCHEMES = r"[\"']?\s*[:=]\s*[\"']?(?:[Bb]asic|[Bb]earer|BASIC|BEARER|[Tt]oken|TOKEN)\s+)[^\s\"']+"

# Each of these begins with letters that are always there: so the search for it runs at the speed of memory, and a log
# of a gigabyte takes seconds. What a first group has found is no part of the secret, and stays.

TOKENS: tuple[re.Pattern[str], ...] = (
    re.compile(r"gh[pousr]_[A-Za-z0-9]{20,}"),  # GitHub tokens
    re.compile(r"github_pat_[A-Za-z0-9_]{20,}"),
    re.compile(r"glpat-[A-Za-z0-9_-]{20,}"),
    re.compile(r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),  # Slack
    re.compile(r"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Z0-9])"),  # AWS key ids
    re.compile(r"AIza[A-Za-z0-9_-]{35}"),  # Google
    re.compile(r"npm_[A-Za-z0-9]{36}"),
    re.compile(r"pypi-AgEI[A-Za-z0-9_-]{50,}"),
    # Keys of model services; not the end of `task-...`, but right behind a line's end as JSON writes it.
    re.compile(r"sk-(?:(?<![A-Za-z0-9_]sk-)|(?<=\\[nrt]sk-))[A-Za-z0-9_-]{20,}"),
    re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"),  # JSON Web Tokens
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        re.DOTALL,
    ),
)
"""What is a secret wherever it stands."""

SHAPES: tuple[re.Pattern[str], ...] = (
    *TOKENS,
    re.compile(r"(://)[^/\s:@\"'<>]{0,200}:[^/\s@\"'<>]{0,2000}(?=@)"),  # credentials in a URL: name and password,
    re.compile(r"(https?://)[^/\s@\"'<>]{1,2000}(?=@)"),  # and a token alone
    *(re.compile(rf"({word}{_SCHEMES}") for word in ("authorization", "Authorization", "AUTHORIZATION")),
)

_BEGUN = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|A[KS]IA|AIza|npm_|pypi-AgEI|\bsk-|eyJ|://)[^\s/]*\Z"
)
"""A secret at the end of a text of which there is more to come."""

_UNSEEN = re.compile(rf"{COLOURS}|\\(?=[\\`*_\[\]|~$#+\-=.)(])|\u200b")
"""What is gone once a text is shown: a terminal's colours, and what `bot.markdown` puts before and behind a sign. It
hides no secret that is whole again then."""

SHORTEST = 6
"""A configured secret shorter than this is not searched for: it would black out ordinary words."""

LEAST = 4
"""So many characters of a configured secret at the end of a text are taken for its beginning."""

AROUND = 4096
"""Characters that are looked at on both sides of a place where a long text is cut."""

HELD_BACK = 1 << 18
"""Characters that are held back for the end of a secret; a private key that has none by then is blotted out so far."""

Span = tuple[int, int]


class Masking:
    """Replaces secrets with `***`."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        texts = {form for secret in secrets if secret for form in _forms(secret.reveal())}
        self._texts = sorted((t for t in texts if len(t) >= SHORTEST), key=len, reverse=True)
        known = [re.compile("|".join(map(re.escape, self._texts)))] if self._texts else []
        self._patterns = (*known, *SHAPES)
        self._around = max(AROUND, *map(len, self._texts)) if self._texts else AROUND

    def __call__(self, text: str) -> str:
        return _replaced(text, self._spans(text), lambda _: _BLOT)

    def in_place(self, text: str, *, more_to_come: bool = False) -> str:
        """`text` with an asterisk for each byte (of UTF-8) of a secret: what stands behind it stays where it is.

        `more_to_come`: a secret that has begun at its end counts as one.
        """
        spans = self._spans(text)
        if more_to_come and (begun := self._begun(text)) < len(text):
            spans = _merged([*spans, (begun, len(text))])
        return _replaced(text, spans, _starred)

    def pieces(self, source: Iterable[str]) -> Iterator[tuple[str, str]]:
        """A text that comes in pieces, again in pieces: each as it is, and masked. No secret is cut in two."""
        held, enough = "", 0
        for piece in source:
            held += piece
            if len(held) < enough:
                continue  # small pieces are not each worth a look at all that is held back
            cut = self._safe_cut(held)
            if cut:
                yield held[:cut], self(held[:cut])
                held = held[cut:]
            enough = len(held) + self._around
        if held:
            yield held, self(held)

    def _safe_cut(self, text: str) -> int:
        """Where `text` can be cut: at a line's end where there is one, and never inside of a secret."""
        latest = len(text) - self._around
        if latest <= 0:
            return 0
        cut = text.rfind("\n", 0, latest) + 1 or latest
        begin = max(0, cut - self._around)
        key = text.rfind("PRIVATE KEY", 0, cut)
        if key >= 0:
            begin = min(begin, max(0, key - 64))
        wholes = (match.span() for pattern in self._patterns for match in pattern.finditer(text, begin))
        cut = min([cut, *(start for start, end in wholes if start < cut < end)])
        return cut if cut or len(text) < HELD_BACK else len(text)

    def _spans(self, text: str) -> list[Span]:
        """Where secrets are, in order."""
        found = list(self._found(text))
        shown = _UNSEEN.sub("", text)
        if shown != text and (hidden := list(self._found(shown))):
            places = _places(_UNSEEN, text)
            found += [(places(start), places(end - 1) + 1) for start, end in hidden]
        return _merged(found)

    def _found(self, text: str) -> Iterator[Span]:
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                yield (match.end(1) if pattern.groups else match.start()), match.end()

    def _begun(self, text: str) -> int:
        """Where a secret begins whose end is not there yet; the text's end where none does."""
        shape = _BEGUN.search(text, max(0, len(text) - self._around))
        begun = shape.start() if shape else len(text)
        for known in self._texts:
            ends = (n for n in range(min(len(known) - 1, len(text)), LEAST - 1, -1) if text.endswith(known[:n]))
            begun = min(begun, len(text) - next(ends, 0))
        return begun


def _merged(spans: Iterable[Span]) -> list[Span]:
    """In order, those that overlap as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif start < end:
            merged.append((start, end))
    return merged


def _replaced(text: str, spans: Iterable[Span], by: Callable[[str], str]) -> str:
    parts, done = [], 0
    for start, end in spans:
        parts += [text[done:start], by(text[start:end])]
        done = end
    return "".join([*parts, text[done:]]) if parts else text


def _starred(secret: str) -> str:
    """Of a text whose undecodable bytes are as `surrogateescape` leaves them; the ends of lines stay."""
    return "".join(c if c == "\n" else "*" * len(c.encode("utf-8", "surrogateescape")) for c in secret)


def _places(gone: re.Pattern[str], text: str) -> Callable[[int], int]:
    """Where in `text` a character stands, by its place in the text without what is `gone`."""
    begins, shifts, kept, done = [0], [0], 0, 0
    for match in gone.finditer(text):
        kept, done = kept + match.start() - done, match.end()
        begins.append(kept)
        shifts.append(done - kept)
    return lambda place: place + shifts[bisect_right(begins, place) - 1]


def _forms(secret: str) -> set[str]:
    """The secret as it stands, in a URL, and inside of what Basic authentication carries; of one with several lines
    each, but for those that say what it is."""
    lines = [line for line in secret.split("\n") if not line.startswith("-----")]
    forms = {secret, *lines} if len(lines) > 1 else {secret}
    return {form for one in forms for form in (one, quote(one, safe=""), *_in_base64(one.encode()))}


def _in_base64(raw: bytes) -> Iterator[str]:
    """What stands for `raw` inside of a longer text in base64, wherever in it that begins."""
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + raw).decode()
        first = (0, 2, 3)[before]
        last = len(whole) if (before + len(raw)) % 3 == 0 else len(whole.rstrip("=")) - 1
        yield whole[first:last]

"""Takes secrets out of text before it is shown or kept: the configured ones, and what looks like one."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from bot.secret import Secret

_BLOT = "***"

_SCHEMES = r":\s*(?:[Bb]asic|[Bb]earer|BASIC|BEARER|[Tt]oken|TOKEN)\s+)\S+"

SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    # Each begins with letters that are always there and looks back from behind them for the word's beginning: so the
    # search for it runs at the speed of memory, and a log of a gigabyte takes seconds.
    (re.compile(r"gh[pousr]_(?<=\b....)[A-Za-z0-9]{20,}"), _BLOT),  # GitHub tokens
    (re.compile(r"github_pat_(?<=\bgithub_pat_)[A-Za-z0-9_]{20,}"), _BLOT),
    (re.compile(r"glpat-(?<=\bglpat-)[A-Za-z0-9_-]{20,}"), _BLOT),
    (re.compile(r"xox[abeoprs]-(?<=\b.....)[A-Za-z0-9-]{10,}"), _BLOT),  # Slack
    (re.compile(r"A(?:KIA|SIA)(?<=\b....)[A-Z0-9]{16}\b"), _BLOT),  # AWS key ids
    (re.compile(r"sk-(?<=\bsk-)[A-Za-z0-9_-]{20,}"), _BLOT),  # keys of model services
    (re.compile(r"eyJ(?<=\beyJ)[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"), _BLOT),  # JSON Web Tokens
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        _BLOT,
    ),
    (re.compile(r"://[^/\s:@]{1,200}:[^/\s@]{1,200}(?=@)"), f"://{_BLOT}"),  # credentials in a URL
    *(
        (re.compile(rf"({word}{_SCHEMES}"), rf"\1{_BLOT}")
        for word in ("authorization", "Authorization", "AUTHORIZATION")
    ),
)

SHORTEST = 6
"""A configured secret shorter than this is not searched for: it would black out ordinary words."""

AROUND = 4096
"""Characters that are looked at on both sides of a place where a long text is cut."""

HELD_BACK = 1 << 18
"""Characters that are held back for the end of a secret; a private key that has none by then is blotted out so far."""


class Masking:
    """Replaces secrets with `***`."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        texts = {form for secret in secrets if secret for form in _forms(secret.reveal())}
        longest_first = sorted((t for t in texts if len(t) >= SHORTEST), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._around = max(AROUND, *map(len, longest_first)) if longest_first else AROUND

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(_BLOT, text)
        for shape, blot in SHAPES:
            text = shape.sub(blot, text)
        return text

    def pieces(self, source: Iterable[str]) -> Iterator[tuple[str, str]]:
        """A text that comes in pieces, again in pieces: each as it is, and masked. No secret is cut in two."""
        held = ""
        for piece in source:
            held += piece
            cut = self._safe_cut(held)
            if cut:
                yield held[:cut], self(held[:cut])
                held = held[cut:]
        if held:
            yield held, self(held)

    def _safe_cut(self, text: str) -> int:
        """Where `text` can be cut: at a line's end where there is one, and never inside of a secret."""
        latest = len(text) - self._around
        if latest <= 0:
            return 0
        cut = text.rfind("\n", 0, latest) + 1 or latest
        begin = max(0, cut - self._around)
        key = text.rfind("PRIVATE KEY-----", 0, cut)
        if key >= 0:
            begin = min(begin, max(0, key - 64))
        patterns = [shape for shape, _ in SHAPES] + ([self._known] if self._known else [])
        spans = (found.span() for pattern in patterns for found in pattern.finditer(text, begin))
        cut = min([cut, *(start for start, end in spans if start < cut < end)])
        return cut if cut or len(text) < HELD_BACK else len(text)


def _forms(secret: str) -> set[str]:
    """The secret as it stands, in a URL, and as Basic authentication carries it."""
    whole = base64.b64encode(secret.encode()).decode()
    return {secret, quote(secret, safe=""), whole.rstrip("=")}

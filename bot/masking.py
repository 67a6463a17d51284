"""Takes secrets out of text before it is shown or kept: the configured ones, and what looks like one."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from urllib.parse import quote

from bot.secret import Secret

SHAPES = re.compile(
    r"""
    \bgh[pousr]_[A-Za-z0-9]{20,}                                     # GitHub tokens
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_-]{20,}
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}                               # Slack
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                                  # AWS key ids
    | \bsk-[A-Za-z0-9_-]{20,}                                        # keys of model services
    | \beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+   # JSON Web Tokens
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    | (?<=://)[^/\s:@]{1,200}:[^/\s@]{1,200}(?=@)                    # credentials in a URL
    | (?i:(?<=authorization:)\s*(?:basic|bearer|token)\s+\S+)
    """,
    re.VERBOSE | re.DOTALL,
)

SHORTEST = 6
"""A configured secret shorter than this is not searched for: it would black out ordinary words."""


class Masking:
    """Replaces secrets with `***`."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        texts = {form for secret in secrets if secret for form in _forms(secret.reveal())}
        longest_first = sorted((t for t in texts if len(t) >= SHORTEST), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub("***", text)
        return SHAPES.sub("***", text)


def _forms(secret: str) -> set[str]:
    """The secret as it stands, in a URL, and as Basic authentication carries it."""
    whole = base64.b64encode(secret.encode()).decode()
    return {secret, quote(secret, safe=""), whole.rstrip("=")}

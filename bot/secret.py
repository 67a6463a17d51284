"""A secret that can't be printed by accident."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping

_NAMES = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|PAT)$", re.IGNORECASE)


class Secret:
    """A token or key. `repr`, `str` and formatting show `***`; `reveal()` is the one way to the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __reduce__(self) -> str:
        raise TypeError("A secret is not to be pickled or copied into a file.")


def named_as_secrets(environ: Mapping[str, str]) -> list[Secret]:
    """The values of variables whose name says that they are secret, such as `OPENAI_API_KEY`."""
    return [Secret(value.strip()) for name, value in environ.items() if _NAMES.search(name) and value.strip()]

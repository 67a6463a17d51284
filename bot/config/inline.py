"""Secrets that were written into a configuration file, which is no place for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from bot.config.places import Path
from bot.masking import TOKENS

_NAMES_SECRET = re.compile(r"_env$", re.IGNORECASE)
_SECRET_FILE = re.compile(r"(token|secret|password|key)s?_file$", re.IGNORECASE)
_BARE_KEY = re.compile(r"[0-9a-f]{40,}", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IN_ADDRESS = re.compile(
    r"://[^/\s@:]*:[^/\s@]+@|^postgres\w*://[^/\s@:]*:[^\s@]+@|^https?://[^/\s@]+@|://\S*[?&][\w-]*(?:password|passwd|token|secret|key)=[^&\s]",
    re.IGNORECASE,
)
_WITH_VALUE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=.")


def secrets_in(document: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """(place, what to do instead) of each value that looks like a secret, whatever its key."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from secrets_in(value, (*path, key))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from secrets_in(value, (*path, index))
    elif isinstance(document, str) and document:
        what = _problem(path, document)
        if what is not None:
            yield path, what


def secret_files_in(document: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """(place, file) of each key that names a file with a secret."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from secret_files_in(value, (*path, key))
    elif path and isinstance(document, str) and _SECRET_FILE.search(str(path[-1])):
        yield path, document


def secret_files(settings: Mapping[str, object]) -> Iterator[str]:
    """The files with a secret that a table names."""
    for key, value in settings.items():
        if isinstance(value, str) and value and _SECRET_FILE.search(key):
            yield value


def _problem(path: Path, text: str) -> str | None:
    key = next((step for step in reversed(path) if isinstance(step, str)), "")
    if _NAMES_SECRET.search(key) and (_is_token(text) or _BARE_KEY.fullmatch(text)):
        return "holds the secret itself; it takes the NAME of the environment variable that holds it. Revoke this one"
    if _NAMES_SECRET.search(key) and not _VARIABLE.fullmatch(text):
        return "takes the name of an environment variable: letters, digits and _, no digit first"
    if _is_token(text):
        return "holds a secret, which is never written into this file. Revoke it, and pass the new one by environment"
    if key == "env" and (named := _WITH_VALUE.match(text)):
        return f'takes the name alone, "{named[1]}"; its value is never written into this file'
    if _IN_ADDRESS.search(text):
        return (
            "holds a password, which is never written into this file; leave it out of the address "
            "(PostgreSQL takes it from PGPASSWORD or PGPASSFILE)"
        )
    return None


def _is_token(text: str) -> bool:
    return any(shape.search(text) for shape in TOKENS)

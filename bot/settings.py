"""What every table of the configuration is made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """A table: frozen, strict about unknown keys. A field's `description` is what `leadsman config explain` prints."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)


def web_address(url: str) -> str:
    """The URL without a slash at its end. Raises `ValueError` for one that links can't be made from."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or parts.username is not None or re.search(r"[\s\x00-\x1f]", url):
        raise ValueError(f'must be an address like "https://example.org", not "{url}"')
    return url.rstrip("/")


WebAddress = Annotated[str, AfterValidator(web_address)]
"""An http or https address, without credentials, query and the slash at its end."""

ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
LABEL = r"^[^,]*$"
IN_WORDS: Mapping[str, str] = {
    ENV_NAME: "the name of an environment variable: letters, digits and _, no digit first",
    LABEL: "a text without commas",
    NAME: "a name: letters, digits, ., _ and -, at most 64 of them, a letter or digit first",
}
"""What a text must be that does not match."""

EnvName = Annotated[str, Field(pattern=ENV_NAME)]
"""The name of an environment variable: a secret is named in the file, never written into it."""

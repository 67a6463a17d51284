"""`[forges.<name>] kind = "github"`: where it is, who the bot is there, and where the secrets are."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from bot.errors import UserError
from bot.forges.claiming import IssueClaims
from bot.secret import Secret
from bot.settings import EnvName, WebAddress
from bot.settings import Settings as Table
from bot.tasks import Texts

FileName = Annotated[str, Field(min_length=1)]

_TOKEN = re.compile(r"gh[a-z]_|github_pat_")


class _Own(Table):
    """GitHub or a GitHub Enterprise Server, as an account (a token) or as a GitHub App (its id and key)."""

    kind: Literal["github"] = Field(description="github.com or a GitHub Enterprise Server")
    api_url: WebAddress = Field(
        default="https://api.github.com", description="the REST API; an Enterprise Server's is https://HOST/api/v3"
    )
    clone_url: WebAddress | None = Field(
        default=None, description="where git and people go, without the repository; default: the host of api_url"
    )
    token_env: EnvName | None = Field(default=None, description="variable that holds the account's token")
    token_file: FileName | None = Field(default=None, description="file that holds it instead")
    app_id: int | None = Field(default=None, gt=0, description="the GitHub App's id, with private_key_file")
    private_key_file: FileName | None = Field(default=None, description="the App's private key (PEM)")
    webhook_secret_env: Annotated[tuple[EnvName, ...], Field(strict=False)] = Field(
        default=(), description="variables with the secrets of its webhooks; several while one replaces the other"
    )
    webhook_secret_file: FileName | None = Field(default=None, description="file that holds one such secret")
    allowed_bots: Texts = Field(default=(), description="logins of bots whose comments count as a person's")
    write_pause_seconds: float = Field(
        default=1.0, ge=0, le=60, description="least time between two writes; GitHub asks for a second"
    )
    poll_seconds: int = Field(
        default=60,
        ge=0,
        le=86_400,
        description="seconds between looks at repositories without a webhook that is known; 0 = never",
    )
    timeout_seconds: int = Field(default=20, gt=0, le=300, description="how long one answer may keep silent")

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if (self.app_id is None) != (self.private_key_file is None):
            raise ValueError("app_id and private_key_file belong together: give both, or a token")
        ways = [self.token_env is not None, self.token_file is not None, self.app_id is not None]
        if sum(ways) != 1:
            raise ValueError("needs exactly one of token_env, token_file, or app_id with private_key_file")
        return self

    @model_validator(mode="after")
    def _no_secret_inline(self) -> Self:
        for name in (self.token_env, *self.webhook_secret_env):
            if name and _TOKEN.match(name):
                raise ValueError("holds a token; it takes the NAME of the variable that holds it. Revoke this token")
        return self

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        for url in (self.api_url, self.web_url):
            if urlsplit(url).scheme == "http" and not _is_loopback(urlsplit(url).hostname or ""):
                raise ValueError(f"{url} must begin with https: the token is sent there")
        return self

    @property
    def web_url(self) -> str:
        """Where repositories are for git and for people, without a slash at its end.

        An Enterprise Server has its API below /api/v3 of the same host; github.com and the hosts of ghe.com have one
        of their own for it: https://docs.github.com/en/enterprise-server@3.15/rest/using-the-rest-api
        """
        if self.clone_url is not None:
            return self.clone_url
        parts = urlsplit(self.api_url)
        host = parts.netloc if parts.path else parts.netloc.removeprefix("api.")
        return f"{parts.scheme}://{host}"


class Settings(IssueClaims, _Own):
    """The table: who the bot is there, then how it claims issues."""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def token(name: str, settings: Settings, *, environ: Mapping[str, str], base: Path) -> Secret | None:
    """The account's token, or None for an App. Raises `UserError` where it is not to be had."""
    if settings.token_env is not None:
        text = _variable(name, "token_env", settings.token_env, environ)
    elif settings.token_file is not None:
        text = _file(name, "token_file", base / settings.token_file)
    else:
        return None
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise UserError(
            f"The token of [forges.{name}] has spaces or other characters that no token has. Copy it again."
        )
    return Secret(text)


def private_key(name: str, settings: Settings, *, base: Path) -> Secret:
    """The App's key, as PEM."""
    return Secret(_file(name, "private_key_file", base / (settings.private_key_file or "")))


def webhook_secrets(name: str, settings: Settings, *, environ: Mapping[str, str], base: Path) -> tuple[Secret, ...]:
    """The secrets that a delivery may be signed with; none = every delivery is refused. Raises `UserError`."""
    texts = [_variable(name, "webhook_secret_env", one, environ) for one in settings.webhook_secret_env]
    if settings.webhook_secret_file is not None:
        texts.append(_file(name, "webhook_secret_file", base / settings.webhook_secret_file))
    return tuple(Secret(text) for text in texts)


def _variable(name: str, key: str, variable: str, environ: Mapping[str, str]) -> str:
    text = environ.get(variable, "").strip()
    if not text:
        raise UserError(f"[forges.{name}] {key}: {variable} is not set. Set it in the server's environment.")
    return text


def _file(name: str, key: str, path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UserError(f"[forges.{name}] {key}: {path} can't be read ({why}). Put the secret there.") from error
    if not text:
        raise UserError(f"[forges.{name}] {key}: {path} is empty. Put the secret there.")
    return text

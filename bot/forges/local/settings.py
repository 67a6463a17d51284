"""`[forges.<name>] kind = "local"`: what a local forge is told, and the secret its deliveries are signed with."""

from __future__ import annotations

import os
import pwd
import secrets as randomness
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from bot.errors import UserError
from bot.forges import Around
from bot.forges.claiming import IssueClaims
from bot.model import Permission
from bot.secret import Secret
from bot.settings import Settings as Table
from bot.tasks import Texts

Right = Literal["none", "read", "triage", "write", "maintain", "admin"]

SECRET_FILE = "local.secret"  # noqa: S105 - the name of a file in the home


class _Own(Table):
    """A forge without a server: bare repositories in a folder, pull requests, issues and comments in the store."""

    kind: Literal["local"] = Field(description="a folder of bare repositories on this host")
    root: Annotated[Path, Field(strict=False)] = Field(
        default=Path("repositories"),
        description="that folder, relative to this file; acme/shop is <root>/acme/shop.git",
    )
    users: Annotated[dict[str, Right], Field(strict=False)] = Field(
        default={}, description="login -> what it may do; the account that runs Leadsman is admin, all others nothing"
    )
    webhook_secret_env: Texts = Field(
        default=(),
        description=f"variables with the secrets of its deliveries; default: <home>/{SECRET_FILE}, made once",
    )
    allowed_bots: Texts = Field(default=(), description="logins of bots whose comments count as a person's")


class Settings(IssueClaims, _Own):
    """The table: who the bot is there, then how it claims issues."""


def account() -> str:
    """The login of the account that runs this process, by its user id and never by an environment variable."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without a line in /etc/passwd
        return f"uid-{os.getuid()}"


def right(settings: Settings, login: str, owner: str) -> Permission:
    """What `login` may do: as the table says, else everything for `owner` and nothing for anyone else."""
    named = settings.users.get(login)
    if named is not None:
        return Permission[named.upper()]
    return Permission.ADMIN if login == owner else Permission.NONE


def webhook_secrets(name: str, settings: Settings, around: Around) -> tuple[Secret, ...]:
    """The secrets that a delivery of this forge may be signed with; the first is the one to sign with.

    Raises `UserError` for a variable that is named and not set.
    """
    if not settings.webhook_secret_env:
        return (_home_secret(around.home / SECRET_FILE),)
    found = {variable: around.environ.get(variable, "").strip() for variable in settings.webhook_secret_env}
    missing = [variable for variable, text in found.items() if not text]
    if missing:
        raise UserError(
            f"[forges.{name}] webhook_secret_env: {missing[0]} is not set. "
            "Set it, or leave webhook_secret_env out to have a secret made."
        )
    return tuple(map(Secret, found.values()))


def _home_secret(path: Path) -> Secret:
    if not path.exists():
        # A hard link fails where the name is taken: of two that make it at once, both read the one that won.
        draft = path.with_name(f"{path.name}.{randomness.token_hex(8)}")
        draft.touch(mode=0o600, exist_ok=False)
        try:
            draft.write_text(randomness.token_hex(32), encoding="ascii")
            with suppress(FileExistsError):
                path.hardlink_to(draft)
        finally:
            draft.unlink()
    text = path.read_text(encoding="ascii").strip()
    if len(text) < 32:
        raise UserError(f"{path} holds no secret. Delete it: a new one is made at the next start.")
    return Secret(text)

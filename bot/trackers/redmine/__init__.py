"""Redmine, 5.0 and later, through python-redmine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bot.errors import UserError
from bot.fleet import RepoMap
from bot.forges import Around
from bot.model import Repo
from bot.secret import Secret
from bot.trackers.redmine.settings import Settings

if TYPE_CHECKING:
    from bot.trackers.redmine.client import Redmine

NO_MAP = RepoMap()

__all__ = ["Settings", "api_key", "connect", "webhook_secrets", "webhook_token"]


def connect(
    name: str, settings: Settings, projects: Mapping[str, Repo], around: Around, repo_map: RepoMap = NO_MAP
) -> Redmine:
    """The tracker of `[trackers.<name>]`; `projects`: the site's identifiers of ours, and the repository of each, where
    `repo_map` has no other for a ticket.

    Asks nothing of the network yet. Raises `UserError` for a key that is not there.
    """
    from bot.trackers.redmine.client import Redmine  # python-redmine costs 0.1 s, and `config check` needs none of it
    from bot.trackers.redmine.door import Door

    door = Door(settings, api_key(name, settings, around), around.clock)
    return Redmine(name, settings, projects, door, repo_map)


def webhook_secrets(name: str, settings: Settings, around: Around) -> tuple[Secret, ...]:
    """What Redmine 7 and later may sign with. Raises `UserError`."""
    return tuple(_variable(name, "webhook_secret_env", variable, around) for variable in settings.webhook_secret_env)


def webhook_token(name: str, settings: Settings, around: Around) -> Secret | None:
    """The last part of the address that the older plugin posts to. Raises `UserError`."""
    if settings.webhook_token_env is None:
        return None
    token = _variable(name, "webhook_token_env", settings.webhook_token_env, around)
    if len(token.reveal()) < 20:
        raise UserError(
            f"[trackers.{name}] webhook_token_env: the token in {settings.webhook_token_env} can be guessed. "
            "Use 20 characters or more, for example of `openssl rand -hex 16`."
        )
    return token


def api_key(name: str, settings: Settings, around: Around) -> Secret:
    """The key of the bot's user. Raises `UserError`."""
    if settings.api_key_env is not None:
        return _variable(name, "api_key_env", settings.api_key_env, around)
    path = around.base / str(settings.api_key_file)
    try:
        key = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(
            f"[trackers.{name}] api_key_file: {path} can't be read ({type(problem).__name__}). "
            "Put the API key of the bot's user there."
        ) from problem
    if not key:
        raise UserError(f"[trackers.{name}] api_key_file: {path} is empty. Put the API key of the bot's user there.")
    return Secret(key)


def _variable(name: str, setting: str, variable: str, around: Around) -> Secret:
    text = around.environ.get(variable, "").strip()
    if not text:
        raise UserError(f"[trackers.{name}] {setting}: {variable} is not set. Set it before the start.")
    return Secret(text)

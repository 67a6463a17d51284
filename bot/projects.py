"""A project: a repository on a forge, and the tracker its tickets come from."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from bot.model import Repo
from bot.publishing import BranchName
from bot.settings import NAME, EnvName, Settings

_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9._-]{0,99}")


def repository_name(name: str) -> str:
    """`owner/name`. Raises `ValueError` for what no forge has, and what would lead out of a folder."""
    parts = name.split("/")
    if len(parts) < 2 or not all(_NAME.fullmatch(part) and part.strip(".") for part in parts):
        raise ValueError(f'must be owner/name, as the forge spells it, not "{name}"')
    return name


RepositoryName = Annotated[str, AfterValidator(repository_name)]


class Project(Settings):
    """`[[project]]`: a repository on a forge, and the tracker its tickets come from."""

    name: str = Field(pattern=NAME, description="what tasks and people call it")
    forge: str = Field(description="name of a [forges.*] table")
    repository: RepositoryName = Field(description="owner/name, as the forge spells it")
    tracker: str | None = Field(default=None, description="name of a [trackers.*] table; default: the forge")
    tracker_project: str | None = Field(
        default=None, min_length=1, description="the tracker's identifier of the project; needed with a tracker"
    )
    webhook_secret_env: Annotated[tuple[EnvName, ...], Field(strict=False)] = Field(
        default=(), description="variables with the secrets of this repository's own webhook, beside the forge's"
    )
    base: BranchName | None = Field(
        default=None, description="branch that runs are meant for; default: the forge's own"
    )
    max_parallel: int = Field(default=1, ge=1, le=999, description="runs at a time in this repository")

    @property
    def repo(self) -> Repo:
        return Repo(self.forge, self.repository)

    @property
    def ticketing(self) -> tuple[str, str]:
        """The tracker that its tickets come from, and what that calls the project: a forge is its own."""
        if self.tracker is None or self.tracker_project is None:
            return self.forge, self.repository
        return self.tracker, self.tracker_project

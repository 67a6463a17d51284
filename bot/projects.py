"""A project: a repository on a forge, and the tracker its tickets come from."""

from __future__ import annotations

from pydantic import Field

from bot.model import Repo
from bot.publishing import BranchName
from bot.settings import Settings


class Project(Settings):
    """`[[project]]`: a repository on a forge, and the tracker its tickets come from."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="what tasks and people call it")
    forge: str = Field(description="name of a [forges.*] table")
    repository: str = Field(
        pattern=r"^[A-Za-z0-9._-]*[A-Za-z0-9_-](/[A-Za-z0-9._-]*[A-Za-z0-9_-])+$",
        description="owner/name, as the forge spells it",
    )
    tracker: str | None = Field(default=None, description="name of a [trackers.*] table; default: the forge")
    tracker_project: str | None = Field(
        default=None, min_length=1, description="the tracker's identifier of the project; needed with a tracker"
    )
    base: BranchName | None = Field(
        default=None, description="branch that runs are meant for; default: the forge's own"
    )
    max_parallel: int = Field(default=1, ge=1, le=999, description="runs at a time in this repository")

    @property
    def repo(self) -> Repo:
        return Repo(self.forge, self.repository)

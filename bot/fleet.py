"""Slots: which run works where, and how many at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import Field

from bot.model import Repo
from bot.settings import Settings


@dataclass(frozen=True, slots=True)
class RepoMap:
    """Which repository a ticket is worked in: `[fleet.repo_map]`, with the repositories that it names."""

    entries: Mapping[str, Repo] = field(default_factory=dict)
    """A ticket's category, or how its number begins -> repository."""

    def repository(self, number: int, category: str | None, *, default: Repo) -> Repo:
        """By the ticket's category, compared without regard to case; else by the longest beginning of its number."""
        if category is not None:
            for key, repo in self.entries.items():
                if key.casefold() == category.casefold():
                    return repo
        beginnings = [key for key in self.entries if key and str(number).startswith(key)]
        return self.entries[max(beginnings, key=len)] if beginnings else default

    def places(self, default: Repo) -> set[Repo]:
        """Every repository that a ticket may be worked in whose project has this one."""
        return {default, *self.entries.values()}


class FleetSettings(Settings):
    """`[fleet]`."""

    slots: int = Field(default=4, ge=1, le=999, description="worktrees in use at once: wt-1 ... wt-N")
    max_concurrent: int | None = Field(
        default=None, ge=1, le=999, description="cap of live runs, on all hosts; default: the number of slots"
    )
    max_concurrent_turns: int = Field(default=1, ge=1, le=999, description="agent turns that may go on at once")
    max_load_per_cpu: float = Field(
        default=2.0, gt=0, le=1000, description="no new run while the host's load is above this x CPUs"
    )
    max_retrying: int | None = Field(
        default=None,
        ge=0,
        le=9_999,
        description="no new run while more runs than this are being tried again; default: no bound",
    )
    spares: int = Field(default=1, ge=0, le=99, description="fresh worktrees kept ready for each recent repository")
    keep_failed_worktrees: bool = Field(
        default=False, description="keep the worktree of a run that did not end well, beside its patch"
    )
    repo_map: dict[str, str] = Field(
        default={}, description="a ticket's category or id prefix -> repository; the rest shares its project's own"
    )

"""Where a run's commits may go, and in whose name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bot.settings import Settings
from bot.tasks import Texts
from gitops.names import is_branch

RUN_BRANCHES = "leadsman/run/"
"""A run on a pull request or a ticket publishes to a branch of its own under it: `leadsman/run/<run_id>`."""

SKIP_CI = "[skip ci]"

ORPHAN_BRANCH = "leadsman/board"
"""Where a board is that shares no history with the code, where nothing else is said."""

_AUTHOR = re.compile(r"(?P<name>[^<>\x00-\x1f\x7f]*[^<>\x00-\x20\x7f])\s*<(?P<email>[^<>\s\x00-\x1f\x7f]+)>")


def branch_name(name: str) -> str:
    """A branch as people write it, without `refs/heads/`. Raises `ValueError` for what git would not take."""
    if not is_branch(name):
        raise ValueError(f'must be a branch name that git takes, not "{name}"')
    if name.startswith("refs/"):
        raise ValueError(f'must be a branch without refs/heads/, not "{name}"')
    return name


def identity_of(author: str) -> tuple[str, str]:
    """Name and address of `Name <address>`. Raises `ValueError` with the whole sentence."""
    match = _AUTHOR.fullmatch(author.strip())
    if match is None:
        raise ValueError(f'must be like "Leadsman <leadsman@localhost>", not "{author}"')
    return match["name"].strip(), match["email"]


def _checked_author(author: str) -> str:
    identity_of(author)
    return author


def protecting(globs: Iterable[str], branch: str) -> str | None:
    """The first glob that protects `branch`, or None. A `*` also covers slashes: more is protected, never less."""
    return next((glob for glob in globs if fnmatchcase(branch, glob.removeprefix("refs/heads/"))), None)


BranchName = Annotated[str, AfterValidator(branch_name)]


class PublishSettings(Settings):
    """`[publish]`."""

    branch: BranchName = Field(
        default="leadsman/publish", description='the branch that tasks with publish = "shared" share'
    )
    author: Annotated[str, AfterValidator(_checked_author)] = Field(
        default="Leadsman <leadsman@localhost>",
        description="author and committer of the bot's commits; also GIT_AUTHOR_* and GIT_COMMITTER_* inside a run",
    )
    never: Texts = Field(
        default=("main", "master", "release/*"),
        description="globs of branches that nothing is ever published to; the default branch never is, listed or not",
    )
    mode: Literal["rebase", "merge"] = Field(
        default="rebase", description="how commits join the shared branch when somebody else's came first"
    )
    skip_ci: bool = Field(default=False, description='end the subject of the bot\'s commits with "[skip ci]"')
    sign_key_file: str | None = Field(default=None, min_length=1, description="ssh key that signs the bot's commits")
    open_pr: bool | Literal["draft"] = Field(
        default=False, description='open a pull request from a run\'s branch; "draft" = as a draft'
    )
    remove_merged: bool = Field(
        default=False, description="remove a run's remote branch once its commits are proved to be merged"
    )

    @property
    def identity(self) -> tuple[str, str]:
        """Name and address."""
        return identity_of(self.author)


class RepositoryPublish(Settings):
    """`[publish]` of a repository's `.leadsman.toml`: what the server lets a repository say for itself."""

    branch: BranchName | None = Field(
        default=None, description="branch of this repository's \"shared\" tasks, under leadsman/; default: the server's"
    )
    never: Texts = Field(default=(), description="globs of branches that are protected here beside the server's own")
    mode: Literal["rebase", "merge"] | None = Field(default=None, description="rebase or merge; default: the server's")
    skip_ci: bool | None = Field(default=None, description='"[skip ci]" in subjects; default: the server\'s')
    open_pr: bool | Literal["draft"] | None = Field(
        default=None, description="pull request from a run's branch; default: the server's"
    )
    remove_merged: bool | None = Field(default=None, description="remove merged branches; default: the server's")


class BoardSettings(Settings):
    """`[board]`."""

    projects: Texts = Field(default=(), description="names of the projects whose repository gets a board; `*` = all")
    branch: BranchName | None = Field(
        default=None, description=f"where it is published; default: [publish] branch, or {ORPHAN_BRANCH} as an orphan"
    )
    orphan: bool = Field(default=False, description="its branch begins with it, and shares no history with the code")
    every_seconds: int = Field(
        default=600, ge=0, le=86_400, description="how often it is looked after; 0 = only after each run"
    )

    def where(self, published: PublishSettings) -> str:
        return self.branch or (ORPHAN_BRANCH if self.orphan else published.branch)


def branch_problem(branch: str, never: Iterable[str]) -> str | None:
    """Why nothing could ever be published to `branch`, or None."""
    glob = protecting(never, branch)
    if glob is not None:
        return f'"{branch}" is protected by never = "{glob}"; name a branch that only the bot writes to'
    if RUN_BRANCHES.startswith(f"{branch}/") or branch.startswith(RUN_BRANCHES):
        return f'"{branch}" is in the way of the runs\' own branches, {RUN_BRANCHES}<run_id>'
    return None


def within_server(ours: PublishSettings, theirs: RepositoryPublish) -> PublishSettings:
    """The server's settings with what a repository may change.

    A repository can add to `never`, not take away from it. Raises `ValueError`, saying what is
    wrong with its branch, where that is not one the server would let the bot write to.
    """
    given = theirs.model_dump(exclude_none=True, exclude={"never"})
    never = (*ours.never, *theirs.never)
    branch = theirs.branch or ours.branch
    if branch != ours.branch and not branch.startswith("leadsman/"):
        raise ValueError(f'must start with "leadsman/", or be the server\'s "{ours.branch}", not "{branch}"')
    problem = branch_problem(branch, never)
    if problem is not None:
        raise ValueError(problem)
    return ours.model_copy(update={**given, "never": never})

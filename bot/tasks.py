"""Tasks, their checks, and the rules that start them: the tables a repository may bring along, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from bot.settings import NAME, EnvName, Settings


def _startable(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Raises `ValueError` for what no program can be started from."""
    if not argv[0]:
        raise ValueError("must begin with a program")
    if any("\0" in word for word in argv):
        raise ValueError("must not hold a NUL character")
    return argv


Argv = Annotated[tuple[str, ...], Field(min_length=1, strict=False), AfterValidator(_startable)]
Texts = Annotated[tuple[str, ...], Field(strict=False)]
Passes = Annotated[int, Field(ge=0, le=9_999)] | Literal["all"]


class Check(Settings):
    """`[[task.verify]]`: a command that judges the commit on a clean checkout."""

    run: Argv = Field(description="argv of the check, never a shell")
    repeat: int = Field(
        default=1, ge=1, le=100, description="how many times it runs; all must pass, the report gives the rate"
    )
    red_at_base: Texts = Field(
        default=(), description="globs: these changed files alone are put onto the base, where the check must fail"
    )
    passes: Passes = Field(default=0, description='CPU passes it holds while it runs; 0 = none, or "all"')
    timeout: int | None = Field(default=None, gt=0, le=604_800, description="seconds; default: the run's own limit")


class Task(Settings):
    """`[[task]]`: a command that a comment or a rule may start."""

    name: str = Field(pattern=NAME, description="what stands behind /run")
    run: Argv = Field(description="argv, never a shell; what stands after `--` in the comment follows it")
    projects: Texts = Field(default=("*",), description="names of the projects that have it; `*` = all")
    difficulty: str = Field(default="medium", description="a row of [budget]: turns and time limit")
    passes: Passes = Field(default=0, description='CPU passes it holds while it runs; 0 = none, or "all"')
    publish: Literal["run", "shared", "none"] = Field(
        default="run", description="run = a branch of its own; shared = [publish] branch; none = a report only"
    )
    on_push: Literal["outdated", "cancel"] = Field(
        default="outdated", description="what a push to the pull request does to a run that is on"
    )
    env: Annotated[tuple[EnvName, ...], Field(strict=False)] = Field(
        default=(), description="names of environment variables passed through; nothing else is"
    )
    speaks: bool = Field(default=False, description="it writes words to its status log; silence for 120 s ends it")
    help: str = Field(default="", max_length=200, description="one line for /tasks")
    verify: Annotated[tuple[Check, ...], Field(strict=False)] = Field(default=(), description="checks, in order")


class Condition(Settings):
    """`if = {...}` of a rule: all that is given must hold."""

    label: str | None = Field(default=None, description="the label that was set")
    paths: Texts = Field(default=(), description="globs: one changed file must match one of them")
    category: str | None = Field(default=None, description="the ticket's category")
    status: str | None = Field(default=None, description="the ticket's new status")
    author: str | None = Field(default=None, description="login of who did it")


_KNOWN_TO: Mapping[str, tuple[str, ...]] = {
    "label": ("pull_request.", "issues."),
    "paths": ("pull_request.", "push"),
    "category": ("redmine.", "schedule"),
    "status": ("redmine.", "schedule"),
}
"""Condition -> what knows of such a thing."""


class Rule(Settings):
    """`[[rule]]`: starts a task without a command."""

    on: Literal[
        "pull_request.opened",
        "pull_request.pushed",
        "issues.opened",
        "issues.labeled",
        "push",
        "schedule",
        "redmine.issue.created",
        "redmine.issue.updated",
    ] = Field(description="what starts it; schedule = each ticket that may be claimed, the most urgent first")
    if_: Condition = Field(default=Condition(), alias="if", description="when it applies; all that is given must hold")
    task: str = Field(description="the task it starts")

    @model_validator(mode="after")
    def _may_hold(self) -> Self:
        for name, events in _KNOWN_TO.items():
            if getattr(self.if_, name) and not self.on.startswith(events):
                raise ValueError(f'if.{name} never holds with on = "{self.on}", so it would start nothing')
        return self

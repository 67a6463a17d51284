"""What a repository says for itself: `.leadsman.toml` of its default branch."""

from __future__ import annotations

from dataclasses import dataclass

from bot.config import checks
from bot.config.loading import Config
from bot.config.problems import ConfigErrors, Problem
from bot.config.sheet import Sheet
from bot.config.tables import REPOSITORY_TABLES
from bot.paths import REPOSITORY_FILE
from bot.publishing import PublishSettings, RepositoryPublish, within_server
from bot.risk import TIERS, RiskSettings
from bot.tasks import Rule, Task

FILE_BYTES = 256 * 1024
"""Of a larger one nothing is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoFile:
    """A repository's own tasks and rules, and how its commits are published."""

    origin: str
    """Where it was read, for reports: ".leadsman.toml at <sha> of main"."""
    tasks: tuple[Task, ...]
    rules: tuple[Rule, ...]
    publish: PublishSettings
    warnings: tuple[Problem, ...]
    """Keys nobody knows, and tasks that the server's own ones outrank: told once, the rest counts."""


def repository_file(data: bytes, origin: str, server: Config) -> RepoFile:
    """Reads a repository's file within what the server allows.

    Raises `ConfigErrors` for a wrong one: the caller keeps the last good one and says so.
    """
    sheet = sheet_of(data)
    sheet.only(REPOSITORY_TABLES)
    checks.inline_secrets(sheet)
    tasks = sheet.tables(Task, "task")
    rules = sheet.tables(Rule, "rule")
    own = checks.names_in(sheet.document)["task"]
    served = {task.name for task in server.tasks}
    for path, what in (
        *checks.duplicates(own, "task"),
        *checks.tasks(tasks, server.budget, server.secret_names),
        *checks.rules(rules, [*own.values(), *served]),
    ):
        sheet.problem(path, what)
    publish = _publish(sheet, server.publish)
    _risk(sheet)  # who needs it reads it at the branch that a change is for, which may be another one
    _outranked(sheet, tasks, served)
    sheet.finish()
    return RepoFile(
        origin=origin,
        tasks=tuple(task for task in tasks.values() if task.name not in served),
        rules=tuple(rules.values()),
        publish=publish,
        warnings=tuple(sheet.warnings),
    )


@dataclass(frozen=True, slots=True)
class RiskRules:
    """The `[risk]` of one commit's file."""

    settings: RiskSettings
    warnings: tuple[Problem, ...]


def risk_rules(data: bytes) -> RiskRules:
    """Reads the rules of a repository's file, whatever the rest of it says. Raises `ConfigErrors` for wrong ones."""
    sheet = sheet_of(data)
    settings = _risk(sheet)
    sheet.finish()
    return RiskRules(settings, tuple(sheet.warnings))


def sheet_of(data: bytes) -> Sheet:
    """The file's text, not yet looked at. Raises `ConfigErrors`."""
    if len(data) > FILE_BYTES:
        raise too_large()
    return Sheet(data, REPOSITORY_FILE, lenient=True)


def too_large() -> ConfigErrors:
    return ConfigErrors([Problem(REPOSITORY_FILE, None, "", "", f"is larger than {FILE_BYTES} bytes")])


def _risk(sheet: Sheet) -> RiskSettings:
    found = sheet.table(RiskSettings, ("risk",)) or RiskSettings()
    if TIERS[-1] in found.size_caps:
        sheet.warning(("risk", "size_caps", TIERS[-1]), "has no meaning: there is no higher tier")
    return found


def _publish(sheet: Sheet, ours: PublishSettings) -> PublishSettings:
    theirs = sheet.table(RepositoryPublish, ("publish",)) or RepositoryPublish()
    try:
        return within_server(ours, theirs)
    except ValueError as problem:
        sheet.problem(("publish", "branch"), str(problem))
        return ours


def _outranked(sheet: Sheet, tasks: dict[int, Task], served: set[str]) -> None:
    for index, task in tasks.items():
        if task.name in served:
            sheet.warning(("task", index, "name"), f'the server has a task "{task.name}", and that one counts')
        if task.projects != ("*",):
            sheet.warning(("task", index, "projects"), "has no meaning here: a repository's task is its own alone")

"""What the tables of the server's file must have to do with each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path as Folder
from typing import Literal

from bot.budget import BudgetSettings
from bot.config.draft import Draft
from bot.config.inline import secret_files_in, secrets_in
from bot.config.places import Path
from bot.config.sheet import Sheet
from bot.cpus import host_size
from bot.nearest import did_you_mean
from bot.publishing import branch_problem, protecting
from bot.tasks import Rule, Task

Found = Iterator[tuple[Path, str]]
"""(place, what is wrong there)."""


def check(sheet: Sheet, draft: Draft) -> None:
    """Notes on the sheet what does not fit together."""
    named = names_in(sheet.document)
    for path, what in chain(
        _duplicates(named),
        _projects(draft, named),
        tasks(draft.tasks, draft.budget, secret_names(draft)),
        _task_projects(draft, named["project"]),
        rules(draft.rules, named["task"].values()),
        _repositories(draft, _written(sheet.document.get("project"), "repository")),
        _budget(draft.budget),
        _publish(draft),
        _board(draft, named["project"]),
    ):
        sheet.problem(path, what)


def inline_secrets(sheet: Sheet) -> None:
    """Notes secrets in the file first, so that no other sentence repeats one."""
    for path, what in secrets_in(sheet.document):
        sheet.problem(path, what)


def readers(sheet: Sheet) -> None:
    """Notes that others can read a file that says where secrets are. To be called when they can."""
    for path, _ in secret_files_in(sheet.document):
        sheet.problem(path, f"names a file with a secret, so others may not read this one: chmod o-r {sheet.file}")
        return


def warn(sheet: Sheet, draft: Draft, environ: Mapping[str, str], base: Folder) -> None:
    """Warns of variables and files (relative to `base`) that are named and not there, of links that would lead
    nowhere, and of tasks that can't be started on this host."""
    for path, name in _variables(draft):
        if not environ.get(name):
            sheet.warning(path, f"the environment variable {name} is not set")
    for path, name in secret_files_in(sheet.document):
        if not (base / name).is_file():
            sheet.warning(path, f"there is no file {base / name}")
    size = host_size()
    for path, passes in _passes(draft.tasks):
        if passes != "all" and passes > size:
            sheet.warning(path, f"this host has {size}: what asks for {passes} is not started here")
    if draft.server.public_url is None and draft.server.address[0] in ("0.0.0.0", "::"):  # noqa: S104
        sheet.warning(("server", "listen"), f"links would lead to {draft.server.url}; set public_url, too")


def _passes(found: Mapping[int, Task]) -> Iterator[tuple[Path, int | Literal["all"]]]:
    for index, task in found.items():
        yield ("task", index, "passes"), task.passes
        for place, check in enumerate(task.verify):
            yield ("task", index, "verify", place, "passes"), check.passes


def names_in(document: Mapping[str, object]) -> dict[str, dict[Path, str]]:
    """The names that each table defines, also those of tables that are wrong otherwise."""
    named: dict[str, dict[Path, str]] = {"project": {}, "task": {}, "forges": {}, "trackers": {}}
    for table, found in named.items():
        value = document.get(table)
        if isinstance(value, dict):
            found.update({(table, key): key for key in value})
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, dict) and isinstance(item.get("name"), str):
                    found[(table, index, "name")] = item["name"]
    return named


def secret_names(draft: Draft) -> frozenset[str]:
    """The environment variables that hold the server's own secrets: no run may be given one."""
    return frozenset(name for _, name in _variables(draft))


def tasks(found: Mapping[int, Task], budget: BudgetSettings, secret: frozenset[str]) -> Found:
    """What is wrong with tasks: of the server, or of a repository."""
    for index, task in found.items():
        if task.difficulty not in budget.turns:
            known = ", ".join(budget.turns)
            meant = did_you_mean(task.difficulty, budget.turns) or ";"
            yield (
                ("task", index, "difficulty"),
                f'"{task.difficulty}" is no row of [budget] turns{meant} one of {known}',
            )
        for place, name in enumerate(task.env):
            if name in secret:
                yield ("task", index, "env", place), f"{name} is one of the server's own secrets; no run may have it"


def rules(found: Mapping[int, Rule], known: Iterable[str]) -> Found:
    """The rules whose task nobody defines."""
    names = sorted(set(known))
    for index, rule in found.items():
        if rule.task not in names:
            yield ("rule", index, "task"), _undefined(rule.task, "[[task]]", names)


def duplicates(named: Mapping[Path, str], table: str) -> Found:
    """The second and later ones of a name."""
    seen: set[str] = set()
    for path, name in named.items():
        if name.casefold() in seen:
            yield path, f'there is a {table} "{name}" already; names must differ, and not only in case'
        seen.add(name.casefold())


def _duplicates(named: Mapping[str, Mapping[Path, str]]) -> Found:
    yield from duplicates(named["project"], "project")
    yield from duplicates(named["task"], "task")
    forges = set(named["forges"].values())
    for path, name in named["trackers"].items():
        if name in forges:
            yield path, f"there is a [forges.{name}] too; both would have the address /webhooks/{name}"


def _projects(draft: Draft, named: Mapping[str, Mapping[Path, str]]) -> Found:
    forges, trackers = sorted(named["forges"].values()), sorted(named["trackers"].values())
    for index, project in draft.projects.items():
        if project.forge not in forges:
            yield ("project", index, "forge"), _undefined(project.forge, "[forges.*]", forges)
        # A forge is its own tracker: its name is right here, too, but only the project's own forge's.
        if project.tracker is not None and project.tracker not in [*trackers, project.forge]:
            yield ("project", index, "tracker"), _undefined(project.tracker, "[trackers.*]", trackers)
        if project.tracker in trackers and project.tracker_project is None:
            yield (("project", index, "tracker_project"), f'is missing: which project of "{project.tracker}" is it')
        if project.base is not None and project.base == draft.publish.branch:
            yield ("project", index, "base"), f'is also [publish] branch, "{project.base}"; they must differ'


def _repositories(draft: Draft, repositories: Iterable[str]) -> Found:
    owners: dict[tuple[str, str], str] = {}
    for index, project in draft.projects.items():
        place = (project.forge, project.repository.casefold())
        if place in owners:
            yield ("project", index, "repository"), f'is the repository of project "{owners[place]}" already'
        owners.setdefault(place, project.name)
    known = sorted(set(repositories))
    for key, repository in draft.fleet.repo_map.items():
        if repository not in known:
            yield (
                ("fleet", "repo_map", key),
                f'no [[project]] has the repository "{repository}"{_meant(repository, known)}',
            )


def _written(tables: object, key: str) -> Iterator[str]:
    """The texts under `key` in an array of tables, right or wrong otherwise."""
    for item in tables if isinstance(tables, list) else ():
        if isinstance(item, dict) and isinstance(item.get(key), str):
            yield item[key]


def _task_projects(draft: Draft, named: Mapping[Path, str]) -> Found:
    names = sorted(set(named.values()))
    for index, task in draft.tasks.items():
        for place, name in enumerate(task.projects):
            if name != "*" and name not in names:
                yield ("task", index, "projects", place), _undefined(name, "[[project]]", names)


def _budget(budget: BudgetSettings) -> Found:
    for key, what in budget.misfits():
        yield ("budget", *key.split(".", 1)), what


def _publish(draft: Draft) -> Found:
    problem = branch_problem(draft.publish.branch, draft.publish.never)
    if problem is not None:
        yield ("publish", "branch"), problem
    run_branch = "leadsman/run/20260101-000000-abcdef"
    glob = protecting(draft.publish.never, run_branch)
    if glob is not None:
        yield ("publish", "never"), f'"{glob}" protects the runs\' own branches, leadsman/run/<run_id>, too'


def _board(draft: Draft, named: Mapping[Path, str]) -> Found:
    names = sorted(set(named.values()))
    for place, name in enumerate(draft.board.projects):
        if name != "*" and name not in names:
            yield ("board", "projects", place), _undefined(name, "[[project]]", names)
    branch = draft.board.where(draft.publish)
    if branch != draft.publish.branch and (problem := branch_problem(branch, draft.publish.never)) is not None:
        yield ("board", "branch"), problem


def _variables(draft: Draft) -> Iterator[tuple[Path, str]]:
    """(place, name) of each environment variable that a forge, a tracker or a project names for a secret."""
    for index, project in draft.projects.items():
        for variable in project.webhook_secret_env:
            yield ("project", index, "webhook_secret_env"), variable
    for table, kinds in (("forges", draft.forges), ("trackers", draft.trackers)):
        for name, settings in kinds.items():
            for key, value in settings.model_dump().items():
                if key.endswith("_env") and value:
                    for variable in [value] if isinstance(value, str) else value:
                        yield (table, name, key), variable


def _undefined(name: str, table: str, known: Sequence[str]) -> str:
    return f'no {table} is named "{name}"{_meant(name, known)}'


def _meant(name: str, known: Sequence[str]) -> str:
    if not known:
        return "; there is none yet"
    return did_you_mean(name, known) or f"; known: {', '.join(known)}"

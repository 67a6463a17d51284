"""Finds the server's file and reads it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.budget import BudgetSettings
from bot.config import checks
from bot.config.draft import read
from bot.config.problems import Problem
from bot.config.sheet import Sheet
from bot.errors import UsageError
from bot.fleet import FleetSettings
from bot.model import Repo
from bot.projects import Project
from bot.publishing import BoardSettings, PublishSettings
from bot.serving import ServerSettings
from bot.settings import Settings
from bot.store import StoreSettings
from bot.tasks import Rule, Task

FILE = "leadsman.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The server's configuration: everything in it has been checked against everything else."""

    source: Path | None
    """The file it was read from; None = there is none, and all is at its default."""
    base: Path
    """The folder that relative paths of the file are relative to."""
    home: Path
    server: ServerSettings
    store: StoreSettings
    forges: Mapping[str, Settings]
    """By name; each is the `Settings` of its kind's module, `bot.forges.FORGES`."""
    trackers: Mapping[str, Settings]
    projects: tuple[Project, ...]
    tasks: tuple[Task, ...]
    rules: tuple[Rule, ...]
    fleet: FleetSettings
    budget: BudgetSettings
    publish: PublishSettings
    board: BoardSettings
    secret_names: frozenset[str]
    """The environment variables that hold the server's own secrets: no run may be given one."""
    warnings: tuple[Problem, ...]

    def project_of(self, repo: Repo) -> Project | None:
        """The project that `repo` is, or None. Names are compared as forges do, without regard to case."""
        wanted = repo.name.casefold()
        return next((p for p in self.projects if p.forge == repo.forge and p.repository.casefold() == wanted), None)

    def path(self, text: str) -> Path:
        """A path that the file names, absolute."""
        return self.base / text


def find(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The file that counts: `path` if given, else ./leadsman.toml, else $XDG_CONFIG_HOME/leadsman/leadsman.toml.

    None where there is none. Raises `UsageError` for a `path` that is not there, and for what is there and no file.
    """
    if path is not None:
        if not path.is_file():
            raise UsageError(f"There is no configuration file at {path}. Name one that exists, or leave --config out.")
        return path
    candidates = [Path(FILE), *(folder / "leadsman" / FILE for folder in _config_homes(environ))]
    found = next((candidate for candidate in candidates if os.path.lexists(candidate)), None)
    if found is not None and not found.is_file():
        raise UsageError(f"{found} is no file, so it can't be read. Put the configuration there, or take it away.")
    return found


def load(path: Path | None, environ: Mapping[str, str], *, home: Path) -> Config:
    """The configuration, from the file that `find` finds; without one, everything at its default.

    Raises `ConfigErrors` with every problem of the file, and `UsageError` where it can't be read.
    """
    source = find(path, environ)
    sheet = open_sheet(source)
    checks.inline_secrets(sheet)
    draft = read(sheet)
    checks.check(sheet, draft)
    base = source.absolute().parent if source else Path.cwd()
    checks.warn(sheet, draft, environ, base)
    if source is not None and _may_others_read(source):
        checks.readers(sheet)
    sheet.finish()
    return Config(
        source=source,
        base=base,
        home=home,
        server=draft.server,
        store=draft.store,
        forges=draft.forges,
        trackers=draft.trackers,
        projects=tuple(draft.projects.values()),
        tasks=tuple(draft.tasks.values()),
        rules=tuple(draft.rules.values()),
        fleet=draft.fleet,
        budget=draft.budget,
        publish=draft.publish,
        board=draft.board,
        secret_names=checks.secret_names(draft),
        warnings=tuple(sheet.warnings),
    )


def open_sheet(source: Path | None) -> Sheet:
    """The file's text, not yet looked at; an empty one for None. Raises `ConfigErrors`, `UsageError`."""
    if source is None:
        return Sheet(b"", FILE)
    try:
        return Sheet(source.read_bytes(), str(source))
    except OSError as problem:
        raise UsageError(f"The configuration file {source} can't be read: {problem.strerror}.") from problem


def _may_others_read(source: Path) -> bool:
    try:
        return bool(source.stat().st_mode & 0o004)
    except OSError as problem:  # it has gone since it was read: somebody writes it at this moment
        raise UsageError(f"The configuration file {source} can't be read: {problem.strerror}.") from problem


def _config_homes(environ: Mapping[str, str]) -> list[Path]:
    """At most one. A relative $XDG_CONFIG_HOME does not count, as the XDG specification has it."""
    folder = Path(environ.get("XDG_CONFIG_HOME", ""))
    if folder.is_absolute():
        return [folder]
    return [Path(environ["HOME"]) / ".config"] if environ.get("HOME") else []

"""What the bot of a configuration has to do with: forges, trackers, who may deliver, and what must never be shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from bot.config import Config
from bot.config.inline import secret_files
from bot.configured import Configured
from bot.errors import UserError
from bot.fleet import RepoMap
from bot.forges import FORGES, Around, Forge
from bot.forges.claiming import IssueClaims
from bot.home import own_name
from bot.journal import Journal
from bot.masking import Masking
from bot.model import Repo
from bot.projects import Project
from bot.repositories import Repositories
from bot.secret import Secret, named_as_secrets
from bot.store.engine import Store
from bot.trackers import TRACKERS, TicketSystem, Tracker
from bot.trackers.issues import Issues
from gitops.git import Identity
from webhooks.receiver import Table
from webhooks.signature import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What comes in from outside: where things are kept, the environment, time."""

    home: Path
    environ: Mapping[str, str]
    clock: Callable[[], float] = time.time
    patient: bool = True
    """A server waits for a right that is missing now; a CI step says that it is, and ends."""
    cycle_ends: float | None = None
    """When a command that ends by itself wants to be done, by `clock`; None: it has all the time."""

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    @property
    def name(self) -> str:
        """What this host is called among those that share the store."""
        return own_name(self.home)


@dataclass(frozen=True, slots=True)
class Outside:
    """The clients, each made once for a configuration in force."""

    forges: dict[str, Forge]
    systems: dict[str, TicketSystem]
    trackers: dict[str, Tracker]
    """The ticket systems, and the forges with their issues."""
    tables: dict[str, Table]
    masking: Masking
    repositories: Repositories


def reach(config: Config, world: World, store: Store, journal: Journal) -> Outside:
    """Raises `UserError` where a secret that the configuration names is not there."""
    surroundings = around(config, world, store)
    forges = connect(config, surroundings)
    systems = connect_trackers(config, surroundings)
    issues = {name: Issues(forge, issue_claims(config, name), journal.say) for name, forge in forges.items()}
    senders = tables(config, surroundings)
    masking = Masking(secrets_of(config, world, senders, surroundings))
    trackers: dict[str, Tracker] = Configured("trackers", {**systems, **issues})
    return Outside(forges, systems, trackers, senders, masking, Repositories(world.home / "mirrors", forges))


def identity_of(config: Config) -> Identity:
    """In whose name the bot commits, and with which key it signs."""
    key = config.publish.sign_key_file
    return Identity(*config.publish.identity, signing_key=None if key is None else (config.base / key).absolute())


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def kind_of(settings: object) -> str:
    return str(getattr(settings, "kind", ""))


def around(config: Config, world: World, store: Store) -> Around:
    return Around(
        store=store,
        home=world.home,
        base=config.base,
        environ=world.environ,
        public_url=config.server.url,
        clock=world.clock,
    )


def connect(config: Config, surroundings: Around) -> dict[str, Forge]:
    """A client for each configured forge."""
    found = {
        name: import_module(FORGES[kind_of(settings)]).connect(name, settings, surroundings)
        for name, settings in config.forges.items()
    }
    return Configured("forges", found)


def connect_trackers(config: Config, surroundings: Around) -> dict[str, TicketSystem]:
    """A client for each configured tracker, and the projects of it that are ours."""
    found = {}
    for name, settings in config.trackers.items():
        projects = tracker_projects(config, name)
        found[name] = import_module(TRACKERS[kind_of(settings)]).connect(
            name, settings, projects, surroundings, repo_map(config)
        )
    return Configured("trackers", found)


def issue_claims(config: Config, forge: str) -> IssueClaims:
    settings = config.forges[forge]
    return settings if isinstance(settings, IssueClaims) else IssueClaims()


def repo_map(config: Config) -> RepoMap:
    """`[fleet.repo_map]`: each repository in it is one of a project's."""
    repos = {project.repository: project.repo for project in config.projects}
    return RepoMap({key: repos[name] for key, name in config.fleet.repo_map.items()})


def tracker_projects(config: Config, name: str) -> dict[str, Repo]:
    """The tracker's identifiers of our projects, and the repository of each."""
    if name in config.forges:
        return {project.repository: project.repo for project in config.projects if project.forge == name}
    return {p.tracker_project: p.repo for p in config.projects if p.tracker == name and p.tracker_project}


def tables(config: Config, surroundings: Around) -> dict[str, Table]:
    """Who may deliver: by the last part of the address, with the secrets that are live now."""
    found = {}
    for name, settings in config.forges.items():
        kind = kind_of(settings)
        secrets = import_module(FORGES[kind]).webhook_secrets(name, settings, surroundings)
        own = (key for project in config.projects if project.forge == name for key in _own_keys(project, surroundings))
        found[name] = Table(kind, (*map(Key, secrets), *own))
    for name, settings in config.trackers.items():
        module = import_module(TRACKERS[kind_of(settings)])
        keys = tuple(Key(secret) for secret in module.webhook_secrets(name, settings, surroundings))
        found[name] = Table(kind_of(settings), keys, module.webhook_token(name, settings, surroundings))
    return found


def _own_keys(project: Project, surroundings: Around) -> Iterator[Key]:
    """What the webhook of this repository alone signs with. Raises `UserError`."""
    for variable in project.webhook_secret_env:
        secret = surroundings.environ.get(variable, "").strip()
        if not secret:
            raise UserError(
                f"[[project]] {project.name}, webhook_secret_env: {variable} is not set. "
                "Set it in the server's environment."
            )
        yield Key(Secret(secret), project.repository)


def secrets_of(config: Config, world: World, senders: Mapping[str, Table], surroundings: Around) -> list[Secret]:
    """Everything that must never be shown: what the bot knows by itself, and what a run may be given by name."""
    signing = [key.secret for table in senders.values() for key in table.keys]
    signing += [table.token for table in senders.values() if table.token is not None]
    for name, settings in config.forges.items():  # also from a file, and without the line's end of a variable
        signing += import_module(FORGES[kind_of(settings)]).credentials(name, settings, surroundings)
    for name, settings in config.trackers.items():
        signing.append(import_module(TRACKERS[kind_of(settings)]).api_key(name, settings, surroundings))
    named = [Secret(world.environ[name].strip()) for name in config.secret_names if world.environ.get(name)]
    files = [
        path
        for settings in (*config.forges.values(), *config.trackers.values(), config.publish)
        for path in secret_files(settings.model_dump())
    ]
    kept = [secret for path in files if (secret := _in_file(config.path(path))) is not None]
    return [*signing, *named, *kept, *named_as_secrets(world.environ)]


def _in_file(path: Path) -> Secret | None:
    """None where it can't be read: whoever needs it says so."""
    try:
        return Secret(path.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return None

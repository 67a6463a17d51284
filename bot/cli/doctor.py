"""`leadsman doctor`: looks at everything the server needs, with network; each line says ok, or what to do."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import click

from bot import home
from bot.cli import table
from bot.cli.clicked import Setting, json_option
from bot.config import Config
from bot.errors import Forbidden, Gone, Unavailable, UserError
from bot.forges import Forge
from bot.landing import protecting_now
from bot.model import Permission
from bot.projects import Project
from bot.store.engine import Store, open_store
from bot.wiring import World, around, connect, tables
from gitops.git import GitError
from gitops.version import git_version

GIT_NEEDED = (2, 38)
"""`git merge-tree --write-tree` is from 2.38."""
DISK_NEEDED = 1 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, and how it is. `what` says what to do where it is not ok."""

    subject: str
    verdict: Literal["ok", "warning", "wrong"]
    what: str


@click.command(
    "doctor",
    epilog="Examples: leadsman doctor, leadsman doctor --json. Exit code 1 where something is wrong.",
)
@json_option
@click.pass_obj
def command(setting: Setting, as_json: bool) -> int:
    """Looks for what is not in order: git, tmux, disk, home, forges, tokens and their rights, webhooks, branches."""
    findings = list(_findings(setting))
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        table.show(("", "looked at", "found"), [(f.verdict, f.subject, f.what) for f in findings])
    wrong = sum(1 for finding in findings if finding.verdict == "wrong")
    if wrong and not as_json:
        print(f"{wrong} of {len(findings)} are wrong.", file=sys.stderr)
    return 1 if wrong else 0


def _findings(setting: Setting) -> Iterator[Finding]:
    yield from _host()
    try:
        config = setting.config()
    except UserError as problem:
        yield Finding("configuration", "wrong", problem.text)
        return
    yield Finding("configuration", "ok", str(config.source or "none found: defaults"))
    for warning in config.warnings:
        yield Finding("configuration", "warning", str(warning))
    folder = home.make(setting.home)
    yield _disk(setting)
    yield Finding("home", "ok", f"{folder}, {home.lock_state(folder)}")
    try:
        store = open_store(config.store, folder)
    except (Unavailable, UserError) as problem:
        yield Finding("store", "wrong", str(problem))
        return
    try:
        yield Finding("store", "ok", config.store.url.split("@")[-1])
        yield from _forges(config, World(home=folder, environ=os.environ), store)
    finally:
        store.close()


def _host() -> Iterator[Finding]:
    found = git_version()
    if found is None:
        yield Finding("git", "wrong", "is not on PATH; install git 2.38 or later")
    else:
        text = ".".join(map(str, found))
        new_enough = found >= GIT_NEEDED
        yield Finding("git", "ok" if new_enough else "wrong", text if new_enough else f"{text}; install 2.38 or later")
    tmux = shutil.which("tmux")
    yield Finding("tmux", "ok" if tmux else "warning", tmux or "is not on PATH: `leadsman attach` needs it")


def _disk(setting: Setting) -> Finding:
    free = os.statvfs(setting.home)
    left = free.f_bavail * free.f_frsize
    if left >= DISK_NEEDED:
        return Finding("disk", "ok", f"{left >> 20} MiB free")
    return Finding("disk", "wrong", f"only {left >> 20} MiB free at {setting.home}; runs need room for worktrees")


def _forges(config: Config, world: World, store: Store) -> Iterator[Finding]:
    surroundings = around(config, world, store)
    try:
        forges = connect(config, surroundings)
        senders = tables(config, surroundings)
    except UserError as problem:
        yield Finding("forges", "wrong", problem.text)
        return
    for name, forge in forges.items():
        yield _asked(f"[forges.{name}]", lambda forge=forge: f"works as {forge.me().login}")  # type: ignore[misc]
        if not senders[name].keys:
            yield Finding(f"/webhooks/{name}", "wrong", "has no webhook secret: deliveries are refused (403)")
        else:
            yield Finding(f"/webhooks/{name}", "ok", f"{len(senders[name].keys)} live secrets")
    for project in config.projects:
        yield from _project(config, project, forges[project.forge])


def _project(config: Config, project: Project, forge: Forge) -> Iterator[Finding]:
    subject = f"project {project.name}"
    try:
        facts = forge.repository(project.repo)
        base = project.base or facts.default_branch
        forge.branch_sha(project.repo, base)
        yield Finding(subject, "ok", f"{project.repository}, base {base}")
        why = protecting_now(config.publish, config.publish.branch, facts.default_branch)
        if why is not None:
            yield Finding(subject, "wrong", why)
        right = forge.permission(project.repo, forge.me())
        if right < Permission.WRITE:
            lost = "reports can be posted, but no branch can be pushed"
            yield Finding(subject, "wrong", f"the bot has {right.name.lower()} permission: {lost}; give it write")
        else:
            yield Finding(subject, "ok", f"the bot has {right.name.lower()} permission")
    except Gone:
        yield Finding(
            subject, "wrong", f"{project.repository} (or its base branch) is not there, or not for this token"
        )
    except (Forbidden, Unavailable, GitError) as problem:
        yield Finding(subject, "wrong", str(problem))


def _asked(subject: str, ask: Callable[[], str]) -> Finding:
    begun = time.monotonic()
    try:
        return Finding(subject, "ok", f"{ask()} ({(time.monotonic() - begun) * 1000:.0f} ms)")
    except (Gone, Forbidden, Unavailable) as problem:
        return Finding(subject, "wrong", str(problem))

"""`leadsman doctor`: looks at everything the server needs, with network; each line says ok, or what to do."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from bot import checkup, home
from bot.cli import table
from bot.cli.clicked import Setting, examples, json_option
from bot.config import Config
from bot.errors import Forbidden, Gone, Unavailable, UserError
from bot.finding import Finding
from bot.forges import Forge, local
from bot.landing import protecting_now
from bot.launchers import tmux
from bot.model import Permission
from bot.projects import Project
from bot.publishing import RUN_BRANCHES
from bot.rebuilding import REPAIR, is_sound
from bot.store.engine import FILE, Store, open_store
from bot.wiring.outside import World, around, connect, connect_trackers, tables, tracker_projects
from gitops.version import git_version
from webhooks.receiver import Table

GIT_NEEDED = (2, 38)
"""`git merge-tree --write-tree` is from 2.38."""
NAME_ONE = "Name one with webhook_secret_env"
DISK_NEEDED = 1 << 30
EXAMPLE = "20260101-000000-abcdef"
"""A run's id, to ask about the branches of runs."""


@click.command(
    "doctor",
    epilog=examples(
        "leadsman doctor", "leadsman doctor --json", "leadsman doctor --repair", note="Exit code 1: something is wrong."
    ),
)
@json_option
@click.option("--repair", is_flag=True, help="Build the index of the runs anew from their directories; no server runs.")
@click.pass_obj
def command(setting: Setting, as_json: bool, repair: bool) -> int:
    """Looks for what is not in order: git, tmux, disk, home, forges, tokens and their rights, webhooks, branches."""
    if repair:
        from bot.cli.repair import repaired

        return repaired(setting)
    found = list(findings(setting))
    if as_json:
        print(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        table.show(("", "looked at", "found"), [(f.verdict, f.subject, f.what) for f in found])
    wrong = sum(1 for finding in found if finding.verdict == "wrong")
    if wrong and not as_json:
        print(f"{wrong} of {len(found)} are wrong.", file=sys.stderr)
    return 1 if wrong else 0


def findings(setting: Setting) -> Iterator[Finding]:
    """Everything that was looked at, in the order in which one thing needs the other."""
    yield from _host()
    try:
        config = setting.config()
    except UserError as problem:
        yield Finding("configuration", "wrong", problem.text)
        return
    yield Finding("configuration", "ok", str(config.source or "none found: defaults"))
    for warning in config.warnings:
        yield Finding("configuration", "warning", str(warning))
    try:
        folder = home.make(setting.home)
    except UserError as problem:
        yield Finding("home", "wrong", problem.text)
        return
    yield _disk(setting)
    yield Finding("home", "ok", f"{folder}, {home.lock_state(folder)}")
    try:
        store = open_store(config.store, folder)
    except (Unavailable, UserError) as problem:
        do = "`leadsman doctor --repair` builds it anew" if config.store.url == "sqlite" else "see that its server runs"
        yield Finding("store", "wrong", str(problem) if isinstance(problem, UserError) else f"{problem}: {do}")
        return
    try:
        yield (found := _store(config, folder))
        if found.verdict == "wrong":
            return
        yield from _outside(config, World(home=folder, environ=os.environ), store)
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
    yield _tmux()


def _tmux() -> Finding:
    found = tmux.version()
    if found is None:
        return Finding(
            "tmux", "warning", "is not on PATH: runs work without it, `leadsman attach` does not; install it"
        )
    if not tmux.present():
        return Finding(
            "tmux", "warning", f"{found}, but flock or tail is not on PATH: runs get no window; install them"
        )
    return Finding("tmux", "ok", found)


def _disk(setting: Setting) -> Finding:
    free = os.statvfs(setting.home)
    left = free.f_bavail * free.f_frsize
    if left >= DISK_NEEDED:
        return Finding("disk", "ok", f"{left >> 20} MiB free")
    return Finding(
        "disk", "wrong", f"only {left >> 20} MiB free at {setting.home}; runs need room for worktrees: make some"
    )


def _store(config: Config, folder: Path) -> Finding:
    """A file can be opened, and be broken where a run has to look."""
    if config.store.url == "sqlite" and not is_sound(folder / FILE):
        return Finding("store", "wrong", f"{folder / FILE} is damaged; stop the server, then {REPAIR}")
    return Finding("store", "ok", config.store.url.split("@")[-1])


def _outside(config: Config, world: World, store: Store) -> Iterator[Finding]:
    surroundings = around(config, world, store)
    try:
        forges = connect(config, surroundings)
        trackers = connect_trackers(config, surroundings)
        senders = tables(config, surroundings)
    except UserError as problem:
        yield Finding("forges", "wrong", problem.text)
        return
    for name, sender in senders.items():
        yield _door(name, sender, [project.repository for project in config.projects if project.forge == name])
    for name, forge in forges.items():
        yield from checkup.asked(f"[forges.{name}]", _forge(name, forge))
    for name, tracker in trackers.items():
        found = checkup.tracker(name, tracker, tracker_projects(config, name))
        yield from checkup.asked(f"[trackers.{name}]", found)
    for project in config.projects:
        yield from checkup.asked(f"project {project.name}", _project(config, project, forges[project.forge], world))


def _door(name: str, sender: Table, repositories: Iterable[str]) -> Finding:
    subject = f"/webhooks/{name}"
    ways = len(sender.keys) + (sender.token is not None)
    if not ways:
        return Finding(
            subject, "warning", f"has no webhook secret: what is delivered there is refused (403). {NAME_ONE}"
        )
    if left := [one for one in repositories if not any(key.counts_for(one) for key in sender.keys)]:
        what = f"no webhook secret is for {', '.join(left)}: what is delivered of it is refused (401)"
        return Finding(subject, "warning", f"{what}. {NAME_ONE}, there or under its [[project]]")
    return Finding(subject, "ok", f"takes deliveries; live secrets: {ways}")


def _forge(name: str, forge: Forge) -> Iterator[Finding]:
    begun = time.monotonic()
    login = forge.me().login
    yield Finding(f"[forges.{name}]", "ok", f"works as {login} ({(time.monotonic() - begun) * 1000:.0f} ms)")
    if forge.checkup is not None:
        yield from forge.checkup.account()


def _project(config: Config, project: Project, forge: Forge, world: World) -> Iterator[Finding]:
    subject = f"project {project.name}"
    try:
        facts = forge.repository(project.repo)
        base = project.base or facts.default_branch
        forge.branch_sha(project.repo, base)
    except Gone:
        is_local = isinstance(config.forges[project.forge], local.Settings)
        do = f"`leadsman local init-repo {project.repository}` makes it" if is_local else "let the bot see it"
        lost = f"{project.repository} (or its base branch) is not there, or not for the bot"
        yield Finding(subject, "wrong", f"{lost}: correct its [[project]]; {do}")
        return
    yield Finding(subject, "ok", f"{project.repository}, base {base}")
    yield _permission(subject, project, forge)
    why = protecting_now(config.publish, config.publish.branch, facts.default_branch)
    if why is not None:
        yield Finding(subject, "wrong", f"{why} Name another with [publish] branch.")
    if forge.checkup is not None:
        ours = (config.publish.branch, f"{RUN_BRANCHES}{EXAMPLE}")
        yield from checkup.asked(subject, forge.checkup.branches(project.repo, ours, facts.default_branch))
    now = datetime.fromtimestamp(world.clock(), UTC)
    yield from checkup.asked(subject, checkup.webhooks(project, forge, config.server.url, now))


def _permission(subject: str, project: Project, forge: Forge) -> Finding:
    lost = "it can't push what runs publish, nor set claims; give it write"
    try:
        right = forge.permission(project.repo, forge.me())
    except Forbidden as problem:
        return Finding(subject, "wrong", f"the bot may not even see who may do what there ({problem}): {lost}")
    has = f"the bot has {right.name.lower()} permission"
    return Finding(subject, "ok", has) if right >= Permission.WRITE else Finding(subject, "wrong", f"{has}: {lost}")

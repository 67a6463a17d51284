from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redmine.site import UP, Site, alone
from tests.redmine.town import TicketTown
from tests.stories.town import FIX
from tests.world import World

PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def _running(instance: str, environment: dict[str, str]) -> Iterator[Site]:
    """Brings it up where nobody has, and then also down again, unless another session uses it by then."""
    with Path(f"/tmp/leadsman-redmine-{instance}.users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        was_up = subprocess.call([UP, "status"], env={**PATH, **environment}) == 0
        subprocess.run([UP, "up"], env={**PATH, **environment}, check=True, stdout=subprocess.DEVNULL, timeout=600)
        yield Site(instance, environment)
        if was_up:
            return
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        subprocess.run([UP, "down"], env={**PATH, **environment}, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def _sqlite() -> Iterator[Site]:
    yield from _running("leadsman", {})


@pytest.fixture(scope="session")
def parallel_site() -> Iterator[Site]:
    """A Redmine over PostgreSQL, with four threads: what collides there collides on real sites."""
    yield from _running("leadsmanpg", {"DB": "pgsql"})


@pytest.fixture
def site(_sqlite: Site) -> Iterator[Site]:
    """A Redmine as it was seeded, for one test."""
    with alone():
        _sqlite.up("reset")
        yield _sqlite


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path / "world") as world:
        yield world


@pytest.fixture
def town(tmp_path: Path, world: World, site: Site) -> Iterator[TicketTown]:
    """A town whose tickets are on the site, with a task `fix` that makes one commit."""
    town = TicketTown(tmp_path, world, site)
    town.task("fix", FIX)
    yield town
    town.close()

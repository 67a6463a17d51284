"""The same road over a store in PostgreSQL: a comment in, a branch and a comment out, whatever is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
import requests

from tests.bot import console
from tests.postgres import Cluster, running
from tests.stories.town import Town

pytestmark = [pytest.mark.needs("postgresql"), pytest.mark.xdist_group("postgresql")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture
def shop(town: Town, cluster: Cluster) -> Town:
    town.config += f'\n[store]\nurl = "{cluster.database()}"\n'
    return town


def listed(town: Town) -> str:
    return console.leadsman("runs", cwd=town.folder).out


@pytest.mark.parametrize(
    "point", ["remembered", "decided", "claim:ended", "start:begins", "publish:ended", "close:begins"]
)
def test_a_server_killed_at_any_point_loses_nothing_and_doubles_nothing(shop: Town, point: str) -> None:
    repo = shop.repo()
    pull = shop.pull_of(repo)
    shop.start(crash=point)
    delivery = pull.comment("alice", "/run fix")
    with suppress(requests.ConnectionError):
        shop.deliver(delivery)
    shop.dies()
    shop.start()
    (run,) = shop.until("the run is closed", shop.closed)
    assert run.name in shop.settled(pull, "**Published** `fix`")
    assert [f"refs/heads/leadsman/run/{run.name}"] == shop.run_branches(repo)
    shop.assert_nothing_is_left(repo)
    assert not (shop.home / "leadsman.db").exists()


def test_what_waits_is_listed_with_its_place_and_why(shop: Town) -> None:
    shop.task("wait", ["sh", "-c", "while [ ! -e ../go ]; do sleep 0.05; done"])
    repo = shop.repo()
    pull, other = shop.pull_of(repo), shop.pull_of(repo, head="other")
    shop.start()
    shop.says(pull, "/run wait")
    shop.until("it runs", lambda: list((shop.home / "worktrees").iterdir()) or None)
    shop.says(other, "/run wait")
    shop.until("one waits", lambda: "place 1" in listed(shop))
    (shop.home / "worktrees" / "go").touch()
    shop.until("both are closed", lambda: shop.closed(2))
    assert "place" not in listed(shop)


def test_a_database_that_is_away_answers_503_and_a_redelivery_works(town: Town) -> None:
    with running() as cluster:
        town.config += f'\n[store]\nurl = "{cluster.database()}"\n'
        repo = town.repo()
        pull = town.pull_of(repo)
        town.start()
        cluster.stop()
        delivery = pull.comment("alice", "/run fix")
        assert 503 == town.deliver(delivery).status
        assert 503 == requests.get(f"{town.address}/readyz", timeout=30).status_code
        cluster.start()
        assert 202 == town.deliver(delivery).status
        town.until("the run is closed", town.closed)
        assert len(town.run_branches(repo)) == 1
        town.stop()

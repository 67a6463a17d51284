"""The same road over a store in PostgreSQL: a comment in, a branch and a comment out, whatever is killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from tests.postgres import Cluster, running
from tests.stories import nursery
from tests.stories.town import Town
from tests.world import Pull, World

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
    return nursery.leadsman("runs", cwd=town.folder).out


@pytest.mark.parametrize("point", ["decided", "start:begins", "publish:ended"])
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


def test_two_hosts_work_one_comment_and_it_says_what_both_did(tmp_path: Path, world: World, cluster: Cluster) -> None:
    """The delivery comes to both, and each of its two runs waits for the other to be on."""
    anna, zoe = towns = [Town(tmp_path / name, world, slots=1) for name in ("anna", "zoe")]
    repo = anna.repo(max_parallel=2)
    for mine, other in (("fix", "mend"), ("mend", "fix")):
        meet = (
            f"touch {tmp_path}/{mine}; while [ ! -e {tmp_path}/{other} ]; do sleep 0.05; done; echo {mine} > {mine}.txt"
        )
        anna.task(mine, ["sh", "-c", meet])
    anna.config += f'\n[store]\nurl = "{cluster.database()}"\n'
    zoe.config = anna.config
    try:
        for town in towns:
            (town.home / "host").write_text(f"{town.folder.name}\n")
            town.start()
        pull = anna.pull_of(repo)
        told = pull.comment("alice", "/run fix\n/run mend")
        with ThreadPoolExecutor(2) as pool:
            assert [200, 202] == sorted(pool.map(lambda town: town.deliver(told).status, towns))
        for town in towns:
            town.until(f"{town.folder.name} has closed its run", town.closed)
            assert 1 == len(town.runs())
        anna.until("the comment has both", lambda: _both(anna, pull))
        assert 2 == len(anna.run_branches(repo))
        anna.until("rocket", lambda: "rocket" in anna.reactions(told))
        for town in towns:
            town.assert_nothing_is_left(repo)
    finally:
        for town in towns:
            town.close()


def _both(town: Town, pull: Pull) -> bool:
    (said,) = town.answers(pull)
    return "**Published** `fix`" in said and "**Published** `mend`" in said


def test_a_second_home_under_the_same_name_is_refused(shop: Town, tmp_path: Path) -> None:
    shop.start()
    other = tmp_path / "other"
    other.mkdir()
    environ = {"LEADSMAN_HOME": str(other / "home"), "BOT_TOKEN": shop.bot.token, "HOOK_SECRET": "x"}
    (other / "leadsman.toml").write_text(shop.config)
    done = nursery.leadsman("serve", cwd=other, environ=environ)
    assert 1 == done.code
    assert "Another home serves this store under the name" in done.err


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


def test_a_reload_while_the_database_is_away_leaves_the_server_at_work(town: Town) -> None:
    with running() as cluster:
        town.config += f'\n[store]\nurl = "{cluster.database()}"\n'
        repo = town.repo()
        pull = town.pull_of(repo)
        town.start()
        assert town.server is not None
        cluster.stop()
        town.server.send_signal(signal.SIGHUP)
        town.until("it is said", lambda: "can't be taken up now" in town.log())
        cluster.start()
        town.server.send_signal(signal.SIGHUP)
        town.until("it is taken up", lambda: "The configuration was read anew." in town.log())
        assert "Traceback" not in town.log(), town.log()
        town.says(pull, "/run fix")
        town.until("the run is closed", town.closed)
        town.stop()


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

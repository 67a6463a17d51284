"""The store in PostgreSQL: what holds of SQLite's file holds there, too."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.errors import Unavailable, UserError
from bot.rebuilding import open_or_rebuild
from bot.store import StoreSettings, books, schema
from bot.store.engine import Store, open_store
from tests.postgres import Cluster, running
from webhooks.inbox import Delivery, Inbox, Verdict

pytestmark = [pytest.mark.needs("postgresql"), pytest.mark.xdist_group("postgresql")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture
def settings(cluster: Cluster) -> StoreSettings:
    return StoreSettings(url=cluster.database())


@pytest.fixture
def store(settings: StoreSettings, tmp_path: Path) -> Iterator[Store]:
    store = open_store(settings, tmp_path)
    yield store
    store.close()


def delivery(number: int, body: bytes = b"{}") -> Delivery:
    return Delivery(source="github", delivery=f"d-{number}", event="ping", headers={}, body=body, lane="acme/shop")


def test_it_is_made_once_and_found_again(settings: StoreSettings, tmp_path: Path) -> None:
    first = open_store(settings, tmp_path)
    second = open_store(settings, tmp_path / "another home")
    with first.write() as connection:
        books.hold(connection, "github:acme/shop", "ann", "a release", 1.5)
    with second.read() as connection:
        assert ("ann", "a release") == books.hold_on(connection, "github:acme/shop")
    first.close()
    second.close()


def test_hosts_that_open_it_at_once_make_it_once(settings: StoreSettings, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _n: open_store(settings, tmp_path), range(8)))
    with stores[0].read() as connection:
        assert 1 == connection.execute(sa.select(sa.func.count()).select_from(schema.schema_version)).scalar()
    for store in stores:
        store.close()


CLAIMANT = """
import sys
from pathlib import Path
from bot.store import StoreSettings, books
from bot.store.engine import open_store
store = open_store(StoreSettings(url=sys.argv[1]), Path())
won = 0
for number in range(25):
    with store.write() as connection:
        won += books.obey(connection, "github:acme/shop", str(number), "/run fix", 0, at=0.0)
print(won)
"""


def test_what_one_host_has_obeyed_no_other_obeys(settings: StoreSettings, tmp_path: Path) -> None:
    open_store(settings, tmp_path).close()
    argv = [sys.executable, "-c", CLAIMANT, settings.url]
    hosts = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    assert 25 == sum(int(host.communicate(timeout=60)[0]) for host in hosts)


def test_what_one_holds_no_other_has_until_it_is_given_back_or_its_host_dies(
    store: Store, settings: StoreSettings, tmp_path: Path
) -> None:
    other = open_store(settings, tmp_path)

    def free(name: str) -> bool:
        with other.alone(name) as mine:
            return mine

    with store.alone("lane acme/shop") as mine, store.write():  # holding it keeps nobody from writing
        assert [True, False, True] == [mine, free("lane acme/shop"), free("lane acme/web")]
    assert free("lane acme/shop")
    code = (
        "import sys\nfrom pathlib import Path\nfrom bot.store import StoreSettings\n"
        "from bot.store.engine import open_store\n"
        "with open_store(StoreSettings(url=sys.argv[1]), Path()).alone('x') as mine:\n"
        "    print(mine, flush=True)\n    sys.stdin.read()\n"
    )
    argv = [sys.executable, "-c", code, settings.url]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "True\n"
        assert not free("x")
        host.kill()
    end = time.monotonic() + 30
    while not free("x"):
        assert time.monotonic() < end, "PostgreSQL did not notice that its client is gone"
    other.close()


def test_a_read_sees_one_state_whatever_is_written_meanwhile(store: Store) -> None:
    count = sa.select(sa.func.count()).select_from(schema.holds)
    with store.read() as reading:
        assert 0 == reading.execute(count).scalar()
        with store.write() as connection:
            books.hold(connection, "github:acme/shop", "ann", "", 0.0)
        assert 0 == reading.execute(count).scalar()
    with store.read() as reading:
        assert 1 == reading.execute(count).scalar()


def test_who_waits_too_long_for_another_writer_is_told_so(
    store: Store, settings: StoreSettings, tmp_path: Path
) -> None:
    other = open_store(settings, tmp_path)
    with store.write(), pytest.raises(Unavailable, match="lock timeout"), other.write():
        pytest.fail("two write at once")
    other.close()


def test_the_inbox_keeps_a_delivery_once_as_it_came(store: Store) -> None:
    body = bytes(range(256))
    inbox = Inbox(store, lambda: 1_700_000_000.25, limit=3)
    assert [Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.MISMATCH] == [
        inbox.remember(one) for one in (delivery(1, body), delivery(1, body), delivery(1, b"[]"))
    ]
    kept = inbox.head("acme/shop")
    assert kept is not None
    assert (body, 1_700_000_000.25) == (kept.body, kept.entry.received_at)
    assert [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.FULL] == [inbox.remember(delivery(n)) for n in (2, 3, 4)]
    assert ("acme/shop",) == inbox.lanes()
    assert 0 == inbox.purge(2e9)
    inbox.done(kept.entry.id)
    assert 1 == inbox.purge(2e9)


def test_many_that_come_at_once_are_all_kept(store: Store) -> None:
    inbox = Inbox(store, lambda: 0.0)
    gate = threading.Barrier(32)

    def send(number: int) -> Verdict:
        gate.wait(30)
        return inbox.remember(delivery(number % 20))

    with ThreadPoolExecutor(32) as pool:
        verdicts = list(pool.map(send, range(32)))
    assert (20, 12) == (verdicts.count(Verdict.ACCEPTED), verdicts.count(Verdict.DUPLICATE))


def test_a_server_that_goes_away_is_unavailable_and_comes_back(tmp_path: Path) -> None:
    with running() as cluster:
        settings = StoreSettings(url=cluster.database())
        store = open_store(settings, tmp_path)
        inbox = Inbox(store, lambda: 0.0)
        assert Verdict.ACCEPTED is inbox.remember(delivery(1))
        cluster.stop()
        assert Verdict.AWAY is inbox.remember(delivery(2))
        with pytest.raises(UserError, match=r"can't be (read|written): .*Is the database up"):
            open_or_rebuild(settings, tmp_path)
        cluster.start()
        assert [Verdict.DUPLICATE, Verdict.ACCEPTED] == [inbox.remember(delivery(n)) for n in (1, 2)]
        store.close()


def test_without_the_driver_the_line_that_installs_it_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from pathlib import Path\n"
        "from bot.errors import UserError\n"
        "from bot.store import StoreSettings\n"
        "from bot.store.engine import open_store\n"
        "try: open_store(StoreSettings(url='postgresql:///leadsman'), Path())\n"
        "except UserError as problem: print(problem.code, problem.text)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.startswith("2 ")
    assert "pip install 'leadsman[postgresql]'" in said

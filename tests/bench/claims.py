"""Claims on a real Redmine: what one costs, what a scan costs as the pile grows, and races of 2, 8 and 20 bots.

Needs root and Debian's packages, which tests/redmine/up.sh installs. ROUNDS="5 3 2" is how many races of each size
are run; 0 leaves that size out.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bot import epoch
from bot.cli.server import Serving
from bot.config import load
from tests.redmine.fleet import Fleet
from tests.redmine.site import UP, Site
from tests.redmine.town import TicketTown
from tests.world import World

ROUNDS = [int(number) for number in os.environ.get("ROUNDS", "5 3 2").split()]
SIZES = (2, 8, 20)
PILES = (100, 1_000)


@contextmanager
def redmine() -> Iterator[Site]:
    """An instance of the bench's own."""
    environment = {"INSTANCE": "leadsmanbench", "PORT": "3897", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    subprocess.run([UP, "up"], env=environment, check=True, stdout=subprocess.DEVNULL)
    site = Site("leadsmanbench", environment)
    site.up("reset")
    try:
        yield site
    finally:
        site.up("down")


@contextmanager
def workshop() -> Iterator[tuple[Path, World]]:
    folder = Path(tempfile.mkdtemp(prefix="leadsman-bench-"))
    try:
        with World(folder / "world") as world:
            yield folder, world
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def pile_up(site: Site, count: int) -> None:
    """So many claimable tickets more."""
    first = site.ticket("a pile")
    columns = (
        "tracker_id, project_id, subject, description, status_id, priority_id, author_id, lock_version, done_ratio, "
        "is_private, created_on, updated_on"
    )
    site.sql(
        f"WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count - 1}) "
        f"INSERT INTO issues ({columns}, lft, rgt) SELECT {columns}, 1, 2 FROM issues, n WHERE id = {first}; "
        "UPDATE issues SET root_id = id WHERE root_id IS NULL"
    )


def one_claim(site: Site) -> None:
    """From a ticket that is claimable to a claim that was read back, without git's part."""
    with workshop() as (folder, world):
        town = TicketTown(folder, world, site)
        town.shop()
        serving = _bot(town)
        tracker = serving.bot.outside.systems["work"]
        requests = _counted(tracker)
        took, asked = [], []
        for n in range(20):
            ref = site.ref(site.ticket())
            before, begun = requests(), time.perf_counter()
            assert epoch.holder(tracker.ticket(ref).journal) is None
            note = epoch.claim_note("leadsman@bench", "2026-01-01T00:00:00Z", f"20260101-000000-{n:06x}", "http://x/")
            after = tracker.write(ref, note, to="claimed", link="http://x/")
            assert epoch.holder(after.journal) is not None
            took.append((time.perf_counter() - begun) * 1000)
            asked.append(requests() - before)
        serving.store.close()
        print(
            f"claim -> read back   {statistics.median(took):6.0f} ms median, {max(took):.0f} ms worst of {len(took)}, "
            f"{statistics.median(asked):.0f} requests (look, write, read back)"
        )


def scans(site: Site) -> None:
    """How long it takes to pick one ticket, and ten, off piles of growing size; and to find nothing new in them."""
    with workshop() as (folder, world):
        town = TicketTown(folder, world, site, slots=20)
        town.shop(max_parallel=20)
        town.task("fix", ["true"])
        town.config += '\n[[rule]]\non = "schedule"\ntask = "fix"\n'
        stock = 0
        for pile in PILES:
            pile_up(site, pile - stock)
            stock = pile
            serving = _bot(town)
            requests = _counted(serving.bot.outside.systems["work"])
            for wanted in (1, 10):
                serving.bot.scan._room = lambda _project, wanted=wanted: wanted
                look = partial(serving.bot.scan.look, anew=str(time.time()))
                took, asked, _ = _timed(look, requests)
                print(f"scan of {pile:>5}, takes {wanted:>2}  {took:6.0f} ms, {asked:>4} requests")
            page = partial(serving.bot.outside.systems["work"].changed, "demo", datetime.fromtimestamp(0, UTC))
            took, asked, tickets = _timed(page, requests)
            print(f"a page of the poll     {took:6.0f} ms, {asked:>4} request, {len(tickets)} tickets")
            serving.store.close()
            shutil.rmtree(town.home)
            town.home.mkdir()


def races(site: Site) -> None:
    for size, rounds in zip(SIZES, ROUNDS, strict=True):
        if not rounds:
            continue
        with workshop() as (folder, world):
            fleet = Fleet(folder, world, site, size)
            try:
                fleet.start()
                took = []
                for _ in range(rounds):
                    begun = time.perf_counter()
                    fleet.race()
                    took.append(time.perf_counter() - begun)
                fleet.closed()
            finally:
                fleet.close()
            print(
                f"{size:>2} bots, {rounds:>3} races    one run, one report, {size - 1} concede in each; "
                f"{statistics.median(took):.1f} s a race (median)",
                flush=True,
            )


def _bot(town: TicketTown) -> Serving:
    """The parts of a bot without its threads."""
    config = town.folder / "leadsman.toml"
    config.write_text(town.config)
    config.chmod(0o600)
    environ = {
        "PATH": os.environ["PATH"],
        "BOT_TOKEN": town.bot.token,
        "HOOK_SECRET": town.world.secret,
        **town.variables,
    }
    loaded = load(config, environ, home=town.home)
    return Serving(loaded, town.home, environ, reread=lambda: loaded)


def _counted(tracker: object) -> Callable[[], int]:
    heard: list[object] = []
    session = tracker._door._engine.session  # type: ignore[attr-defined]
    session.hooks["response"].append(lambda response, **_: heard.append(response.url))
    return lambda: len(heard)


def _timed(work: Callable[[], Sequence[object]], requests: Callable[[], int]) -> tuple[float, int, Sequence[object]]:
    before, begun = requests(), time.perf_counter()
    found = work()
    return (time.perf_counter() - begun) * 1000, requests() - before, found


def main() -> int:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; SQLite and one thread on the Redmine's side")
    with redmine() as site:
        one_claim(site)
        scans(site)
    with redmine() as site:
        races(site)
    return 0


if __name__ == "__main__":
    sys.exit(main())

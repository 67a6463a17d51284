"""The store is lost or broken: nothing starts until it is repaired, and no run is lost with it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.stories.test_fleet import answer, fleet, leadsman, waiter
from tests.stories.test_waiting_for_people import ASKS
from tests.stories.town import BOUND, REPOSITORY, Town

GARBAGE = b"no database, but garbage " * 2000


def database(town: Town) -> Path:
    return town.home / "leadsman.db"


def break_it(town: Town) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{database(town)}{suffix}").unlink(missing_ok=True)
    database(town).write_bytes(GARBAGE)


def refused_start(town: Town) -> subprocess.CompletedProcess[str]:
    """A server that does not come up."""
    argv = ["-m", "tests.stories.mortal", str(town.home), str(town.folder / "leadsman.toml"), ""]
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "BOT_TOKEN": "x" * 8, "HOOK_SECRET": "y"}
    return subprocess.run(
        [sys.executable, *argv], cwd=REPOSITORY, env=environ, capture_output=True, text=True, timeout=BOUND, check=False
    )


def test_a_broken_store_denies_each_time_and_once_repaired_every_run_goes_on(town: Town) -> None:
    repo, quiet = town.repo(), town.repo("acme/quiet")
    town.task("ask", ["sh", "-c", ASKS])
    pull, other, done = town.pull_of(repo), town.pull_of(repo, head="o", files={"o": "x"}), town.pull_of(quiet)
    town.start()
    town.says(done, "/run fix")
    answer(town, done, "**Published**")
    delivery = town.says(pull, "/run ask")
    answer(town, pull, "is **blocked**")
    town.says(other, "/run fix")
    answer(town, other, "one has to end")
    town.until("the one that waits has a directory, too", lambda: len(town.runs()) == 3)
    assert leadsman(town, "doctor", "--repair").code == 4
    town.stop()
    break_it(town)
    for _ in range(2):
        refused = refused_start(town)
        assert refused.returncode == 1
        assert "leadsman doctor --repair" in refused.stderr
        assert "Traceback" not in refused.stderr
        assert database(town).read_bytes() == GARBAGE
        assert list((town.home / "worktrees").glob("*/work.txt")) != []
    repaired = leadsman(town, "doctor", "--repair")
    assert repaired.code == 0, repaired.err
    assert repaired.out.startswith("3 runs and 1 held slots were put back into the index. The broken file is ")
    (aside,) = [path for path in town.home.glob("leadsman.db.broken-*") if not path.name.endswith(("-wal", "-shm"))]
    assert aside.read_bytes() == GARBAGE
    assert leadsman(town, "doctor", "--repair").out.startswith("0 runs and 0 held slots")

    town.start()
    posted = town.deliver(delivery)  # the door has forgotten that it had it; that it was obeyed is known all the same
    assert posted.status == 202
    town.until("it is worked", lambda: "queued" not in town.states())
    assert fleet(town)["slots"]["wt-1"] is not None
    assert len(town.runs()) == 3
    town.says(pull, "/resume")
    answer(town, pull, "**Published** `ask`")
    answer(town, other, "**Published** `fix`")
    town.until("all are closed", lambda: town.closed(3))
    assert sum("ask" in said and "Published" in said for said in town.answers(pull)) == 1
    assert len(town.answers(other)) == len(town.answers(done)) == 1
    for one in (repo, quiet):
        town.assert_nothing_is_left(one)


def test_a_store_that_breaks_under_the_server_admits_nobody(town: Town) -> None:
    repo, go = town.repo(), town.folder / "go"
    town.task("wait", waiter(town, go))
    first, second = town.pull_of(repo), town.pull_of(repo, head="o", files={"o": "x"})
    town.start()
    town.says(first, "/run wait")
    town.until("it runs", lambda: fleet(town)["running"] == 1)
    town.says(second, "/run fix")
    answer(town, second, "one has to end")
    with database(town).open("r+b") as file:
        file.write(GARBAGE)
    go.touch()
    town.until("it is refused", lambda: "registry_unreadable" in town.journal() or None)
    why = re.search(r"registry_unreadable: ([^\"]*)", town.journal())
    assert why is not None
    assert "is not a database any more; `leadsman doctor --repair` rebuilds it" in why[1]
    assert 1 == len([run for run in town.runs() if (run / "claim.json").exists()])
    town.kill()
    assert refused_start(town).returncode == 1
    assert leadsman(town, "doctor", "--repair").code == 0
    town.start()
    answer(town, first, "**Published** `wait`")
    answer(town, second, "**Published** `fix`")
    town.until("both are closed", lambda: town.closed(2))
    town.assert_nothing_is_left(repo)


def test_a_store_that_is_missing_is_empty_but_for_the_runs_that_have_directories(town: Town) -> None:
    repo, go = town.repo(), town.folder / "go"
    town.task("wait", waiter(town, go))
    pull = town.pull_of(repo)
    town.start()
    for _ in range(3):
        town.says(pull, "/run fix")
        closed = len(town.runs())
        town.until("one more is closed", lambda closed=closed: town.closed(closed + 1))  # type: ignore[misc]
    town.says(pull, "/run wait")
    town.until("it runs", lambda: fleet(town)["running"] == 1)
    town.stop()
    for path in town.home.glob("leadsman.db*"):
        path.unlink()
    assert leadsman(town, "deliveries").out == "No deliveries.\n"  # whatever command comes first makes a new one
    assert database(town).exists()
    town.start()
    state = fleet(town)
    assert (1, 1, 0, 4, 3) == tuple(
        state[key] for key in ("active_runs", "running", "pending", "dispatched", "reports")
    )
    go.touch()
    answer(town, pull, "**Published** `wait`")
    town.until("all are closed", lambda: town.closed(4))
    town.assert_nothing_is_left(repo)

"""`leadsman scan` and `leadsman claims`, as an operator uses them."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.redmine.test_scan import RULE, claimed
from tests.redmine.town import TicketTown
from tests.stories.nursery import nursery

pytestmark = pytest.mark.needs("redmine")


def leadsman(town: TicketTown, *words: str) -> subprocess.CompletedProcess[str]:
    config = town.folder / "leadsman.toml"
    config.write_text(town.config)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(town.folder / "nobody"),
        "BOT_TOKEN": town.bot.token,
        "HOOK_SECRET": town.world.secret,
        "LEADSMAN_POOL_DIR": str(town.folder / "pool"),
        **town.variables,
    }
    argv = ["--home", str(town.home), "--config", str(config), *words]
    return subprocess.CompletedProcess(argv, *nursery().ran(argv, environment, town.folder))


def test_scan_once_works_what_is_claimable_and_ends(town: TicketTown) -> None:
    repo = town.shop()
    town.config += RULE.format(task="fix")
    first, second = town.site.ticket("one"), town.site.ticket("two", priority="High")
    done = leadsman(town, "scan", "--once")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [(line[0], *line[2:]) for line in lines] == [
        (f"work:{second}", "fix:", "published"),
        (f"work:{first}", "fix:", "published"),
    ]
    assert [town.site.status(number) for number in (first, second)] == ["Resolved", "Resolved"]
    assert leadsman(town, "scan", "--once").stdout == "Nothing was claimable.\n"
    town.assert_nothing_is_left(repo)


def test_scan_once_also_takes_what_failed_before(town: TicketTown) -> None:
    town.shop()
    town.task("never", ["false"])
    town.config += RULE.format(task="never")
    number = town.site.ticket()
    assert [leadsman(town, "scan", "--once").returncode for _ in range(2)] == [1, 1]
    assert len([note for note in town.site.notes(number) if note.startswith("claim released")]) == 2


def test_scan_says_where_nothing_may_be_claimed(town: TicketTown) -> None:
    town.shop()
    town.config = town.config.replace("claim_enabled = true", "claim_enabled = false")
    refused = leadsman(town, "scan", "--once")
    assert refused.returncode == 2
    assert "claim_enabled" in refused.stderr


def test_claims_lists_what_is_held_and_release_gives_it_back(town: TicketTown) -> None:
    repo = town.shop()
    town.task("wait", ["sleep", "300"])
    town.start()
    assert leadsman(town, "claims").stdout == "Nothing is claimed.\n"
    number = town.site.ticket()
    town.site.change(number, notes="/run wait")
    town.poll()
    town.note(number, "claimed by")
    (held,) = town.until("it is held", lambda: json.loads(leadsman(town, "claims", "--json").stdout))
    assert (held["key"], held["task"], held["asked_by"]) == (f"work:{number}", "wait", "dana")
    assert town.refs(repo)[held["ref"]]
    assert leadsman(town, "claims", "release", "").returncode == 1  # nothing is the start of every run's id

    released = leadsman(town, "claims", "release", f"work:{number}")
    assert released.returncode == 0, released.stderr
    assert "will be given back" in released.stdout
    assert town.note(number, "claim released").startswith("claim released: the run was cancelled")
    assert town.site.status(number) == "New"
    (run,) = town.until("the run is closed", town.closed)
    town.assert_nothing_is_left(repo)
    told = json.loads(leadsman(town, "claims", "log", f"work:{number}", "--json").stdout)
    assert [(one["event"], one["run_id"]) for one in told] == [("claim", run.name), ("release", run.name)]
    assert told == json.loads(leadsman(town, "claims", "log", run.name[:15], "--json").stdout)


def test_a_claim_of_another_bot_is_given_back_by_force_alone(town: TicketTown) -> None:
    town.shop()
    number = town.site.ticket()
    claimed(town, number, "20260101-000000-aaaaaa")
    refused = leadsman(town, "claims", "release", f"work:{number}")
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    forced = leadsman(town, "claims", "release", f"work:{number}", "--force")
    assert forced.returncode == 0, forced.stderr
    assert "leadsman@elsewhere had it" in forced.stdout
    assert "gave it back by hand" in town.note(number, "claim released")
    assert town.site.status(number) == "New"
    for which in ("work:1x", "other:7", f"work:{number}"):
        assert leadsman(town, "claims", "release", which, "--force").returncode in {1, 2}


def test_retry_works_a_ticket_again_and_reports_in_its_notes(town: TicketTown) -> None:
    repo = town.shop()
    number = town.site.ticket()
    town.start()
    town.site.change(number, notes="/run fix")
    town.poll()
    town.note(number, "# REPORT -")
    (run,) = town.until("the run is closed", town.closed)
    done = leadsman(town, "retry", run.name, "--wait", "60")
    assert (0, "") == (done.returncode, done.stderr)
    town.until("both are closed", lambda: town.closed(2))
    said = town.note(number, "Report of run")  # beside the epoch: the ticket is where the first one has put it
    assert f"on the command line with `leadsman retry {run.name}`" in said
    town.assert_nothing_is_left(repo)

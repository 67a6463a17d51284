"""A person takes the ticket that a run holds: the run stops after its turn, and nothing that it did is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitops.git import Git
from tests.redmine.town import TicketTown

pytestmark = pytest.mark.needs("redmine")

TURNS = "\n[budget]\nper_turn_seconds = {seconds}\nturns = {{ medium = {turns} }}\n"
WORK = "echo work > work.txt && git add work.txt && git commit -qm 'Half of it'; "
SEES = 'until [ -e "$LEADSMAN_RUN_DIR/stop.json" ]; do sleep 0.05; done; '
SAY = 'say() { echo "$1" >> "$LEADSMAN_STATUS_LOG"; }; '


def under_way(town: TicketTown, task: str, script: str, *, seconds: int = 30, more: str = "") -> tuple[int, Path]:
    """A run of `script` on a new ticket, once its command goes on."""
    town.shop()
    town.config += TURNS.format(seconds=seconds, turns=600 // seconds)
    town.task(task, ["sh", "-c", f"touch {town.folder}/begun; {script}"], more)
    town.start()
    number = town.site.ticket()
    town.site.change(number, notes=f"/run {task}")
    town.poll()
    town.until("its command goes on", (town.folder / "begun").exists)
    return number, town.runs()[0]


def take(town: TicketTown, number: int) -> None:
    town.site.change(number, status="Feedback", notes="I do it myself.")
    town.poll()


def kept(town: TicketTown, run: Path) -> str:
    """The subject of the commit that is kept of the run."""
    (mirror,) = (town.home / "mirrors").glob("*/*.git")
    return Git(mirror).run("log", "-1", "--format=%s", f"refs/leadsman/recover/{run.name}").text.strip()


def test_a_command_finishes_its_turn_and_what_it_did_is_kept_and_published_nowhere(town: TicketTown) -> None:
    number, run = under_way(town, "work", f"{SEES}{WORK}echo rest > rest.txt")
    take(town, number)
    released = town.note(number, "claim released")
    assert released.startswith("claim released: dana took the ticket (cancelled)\n")
    assert "by dana, who set the ticket to Feedback. Asked at " in released
    assert "to stop after its turn, it ended by itself at " in released
    assert "2 commits" in released
    assert f"refs/leadsman/recover/{run.name}" in released
    assert "Feedback" == town.site.status(number)
    town.until("the run is closed", town.closed)
    assert "work: what the run left uncommitted" == kept(town, run)
    repo = town.world.repositories["acme/shop"]
    assert [] == town.run_branches(repo)
    town.assert_nothing_is_left(repo)


def test_a_run_that_begins_another_round_is_ended(town: TicketTown) -> None:
    go = "until [ -e go ]; do sleep 0.05; done; "
    number, run = under_way(town, "work", f"{SAY}say 'round: 1/3'; {WORK}{go}say 'round: 2/3'; exec sleep 1000")
    take(town, number)
    town.until("it was told", lambda: (json.loads((run / "status.json").read_text())).get("asked_to_stop"))
    assert "was asked to stop after its turn" not in "".join(town.site.notes(number))  # each note is a mail
    (town.home / "worktrees" / run.name / "go").touch()
    released = town.note(number, "claim released")
    assert released.startswith("claim released: dana took the ticket (cancelled)\n")
    assert "to stop after its turn, it was ended when it began round 2." in released
    town.until("the run is closed", town.closed)
    assert "Half of it" == kept(town, run)


def test_a_server_that_is_killed_meanwhile_changes_no_deadline(town: TicketTown) -> None:
    number, run = under_way(town, "work", f"{WORK}exec sleep 1000", seconds=4)
    take(town, number)
    town.until("it was asked", (run / "stop.json").exists)
    town.kill()
    ended = town.until("it is ended without a server", lambda: _ended(run))
    assert ("cancelled", "turn_over") == (ended["state"], ended["stop_reason"])
    town.start()
    released = town.note(number, "claim released")
    assert "it was ended when the 4 s of one turn were over." in released
    town.until("the run is closed", town.closed)
    assert "Half of it" == kept(town, run)


def _ended(run: Path) -> dict[str, str] | None:
    status: dict[str, str] = json.loads((run / "status.json").read_text())
    return status if status["state"] != "running" else None


def test_a_server_that_is_killed_before_it_could_ask_asks_after_its_restart(town: TicketTown) -> None:
    number, run = under_way(town, "work", f"{SEES}{WORK}")
    town.stop()
    town.start(crash="decided")
    town.site.change(number, status="Feedback")
    town.poll()
    town.dies()
    assert not (run / "stop.json").exists()
    town.start()
    released = town.note(number, "claim released")
    assert released.startswith("claim released: dana took the ticket (cancelled)\n")
    assert "it ended by itself at " in released


@pytest.mark.parametrize(
    ("point", "outcome", "branches"), [("publish:begins", "cancelled", 0), ("pushed", "published", 1)]
)
def test_what_was_pushed_before_the_ticket_was_taken_is_said_to_be_and_nothing_is_after(
    town: TicketTown, point: str, outcome: str, branches: int
) -> None:
    repo = town.shop()
    town.start(crash=point)
    number = town.site.ticket()
    town.site.change(number, notes="/run fix")
    town.poll()
    town.dies()
    town.site.change(number, status="Feedback")
    town.start()
    released = town.note(number, "claim released")
    assert released.startswith(f"claim released: dana took the ticket ({outcome})\n")
    town.until("the run is closed", town.closed)
    assert branches == len(town.run_branches(repo))
    assert "Feedback" == town.site.status(number)
    town.assert_nothing_is_left(repo)


def test_a_ticket_that_is_taken_while_its_checks_go_on_gets_no_branch(town: TicketTown) -> None:
    check = '\n[[task.verify]]\nrun = ["sh", "-c", "touch {0}/checking; exec sleep 1000"]\n'
    number, run = under_way(town, "work", WORK, more=check.format(town.folder))
    town.until("the check goes on", (town.folder / "checking").exists)
    take(town, number)
    released = town.note(number, "claim released")
    assert released.startswith("claim released: dana took the ticket (cancelled)\n")
    assert "it ended by itself at " in released
    town.until("the run is closed", town.closed)
    assert "Half of it" == kept(town, run)
    assert [] == town.run_branches(town.world.repositories["acme/shop"])


def test_a_run_that_is_released_while_it_waits_for_a_slot_never_begins(town: TicketTown) -> None:
    town.config = town.config.replace("slots = 4", "slots = 1")
    under_way(town, "work", "exec sleep 1000")
    number = town.site.ticket()
    town.site.change(number, notes="/run work")
    town.poll()
    town.until("it waits", lambda: len(town.runs()) == 2)
    town.site.change(number, notes="/release")
    town.poll()
    report = town.note(number, "Report of run")
    assert "by dana, who gave the ticket back. Asked at " in report
    assert "to stop after its turn, its command had not begun." in report


def test_a_ticket_that_is_taken_while_its_run_waits_for_people_is_given_up(town: TicketTown) -> None:
    number, _ = under_way(town, "work", f"{SAY}say 'needs-decision: Which one?'")
    town.until("it waits", lambda: town.journal().count('"blocked"'))
    take(town, number)
    released = town.note(number, "claim released")
    assert "it was given up, since it waited for people." in released
    town.until("the run is closed", town.closed)

"""From a ticket to a report on it, with a real server, a real Redmine and real git."""

from __future__ import annotations

import json
import re

import pytest
import requests

from tests.redmine.town import TicketTown

pytestmark = pytest.mark.needs("redmine")

CLAIM = re.compile(r"claimed by leadsman@\S+ at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ run (\d{8}-\d{6}-[0-9a-f]{6})\n")


def test_a_command_in_a_note_becomes_a_claim_a_run_and_a_report(town: TicketTown) -> None:
    repo = town.shop()
    town.task("look", ["sh", "-c", 'cp "$LEADSMAN_TICKET" ticket.json && git add . && git commit -qm Look'])
    town.start()
    number = town.site.ticket("Mend it", description="It *broke*.\0", category="backend")
    town.site.change(number, notes="Please.\n\n/run look")
    town.poll()
    report = town.note(number, "# REPORT -")
    claim = town.note(number, "claimed by")
    (run,) = town.until("the run is closed", town.closed)

    found = CLAIM.match(claim)
    assert found is not None, claim
    assert found[1] == run.name
    assert report.startswith(f"# REPORT - run {run.name} of look: published\n")
    assert repo.sha(f"leadsman/run/{run.name}") in report
    assert town.site.status(number) == "Resolved"
    assert town.site.notes(number) == ["Please.\n\n/run look", claim, report]
    told = json.loads(repo.files(f"leadsman/run/{run.name}")["ticket.json"])
    assert told["subject"] == f"work:{number}"
    assert (told["title"], told["text"], told["category"]) == ("Mend it", "It *broke*.", "backend")
    fields = {field["name"]: field["value"] for field in town.site.seen(number)["custom_fields"]}
    assert fields["Run"].endswith(f"/runs/{run.name}")
    asking = next(one["id"] for one in town.site.seen(number)["journals"] if "/run look" in one["notes"])
    page = requests.get(f"{town.address}/runs/{run.name}", timeout=30).text
    assert f'href="{town.site.url}/issues/{number}#change-{asking}"' in page
    town.assert_nothing_is_left(repo)


def test_a_run_that_fails_gives_the_ticket_back_with_why(town: TicketTown) -> None:
    repo = town.shop()
    town.task("fail", ["sh", "-c", "echo trouble; exit 3"])
    town.start()
    number = town.site.ticket()
    town.site.change(number, notes="/run fail")
    town.poll()
    released = town.note(number, "claim released")
    assert released.startswith("claim released: the run failed (command) (run ")
    assert "It ended with exit code 3." in released
    assert "trouble" in released
    assert town.site.status(number) == "New"
    town.until("the run is closed", town.closed)
    town.assert_nothing_is_left(repo)


def test_what_a_person_may_not_do_is_answered_and_nothing_is_started(town: TicketTown) -> None:
    town.shop()
    town.start()
    number = town.site.ticket()
    town.site.change(number, who="rea", notes="/run fix")
    town.poll()
    answer = town.note(number, "permission")
    assert "needs **write** permission" in answer
    assert "`rea` has **read**" in answer
    assert town.runs() == []
    assert town.site.status(number) == "New"


def test_a_private_note_and_the_bots_own_notes_start_nothing(town: TicketTown) -> None:
    town.shop()
    town.start()
    number = town.site.ticket()
    town.site.change(number, notes="/run fix", private_notes=True)
    town.site.change(number, who="bot", notes="/run fix")
    town.site.change(number, notes="/help run")
    town.poll()
    town.note(number, "/run TASK")
    assert town.runs() == []


def test_a_rule_starts_on_the_status_that_a_ticket_gets(town: TicketTown) -> None:
    town.shop()
    condition = '{ status = "Code Review", category = "backend" }'
    town.config += f'\n[[rule]]\non = "redmine.issue.updated"\nif = {condition}\ntask = "fix"\n'
    town.start()
    other, number = town.site.ticket(), town.site.ticket(category="backend")
    for one in (other, number):
        town.site.change(one, notes="only words")
        town.site.change(one, status="Code Review")
    town.poll()
    report = town.note(number, "Report of run")
    assert "published" in report
    assert town.site.status(number) == "Code Review"
    assert town.site.notes(other) == ["only words"]
    assert len(town.runs()) == 1


def test_a_rule_starts_on_a_new_ticket_of_one_author(town: TicketTown) -> None:
    town.shop()
    town.config += '\n[[rule]]\non = "redmine.issue.created"\nif = { author = "devi" }\ntask = "fix"\n'
    town.start()
    town.site.ticket(who="dana")
    number = town.site.ticket(who="devi")
    town.poll()
    town.note(number, "# REPORT -")
    assert town.site.status(number) == "Resolved"
    (run,) = town.until("the run is closed", town.closed)
    page = requests.get(f"{town.address}/runs/{run.name}", timeout=30).text
    assert f'href="{town.site.url}/issues/{number}"' in page  # the ticket itself asked


def test_a_person_takes_a_ticket_and_gives_it_back_by_note(town: TicketTown) -> None:
    town.shop()
    town.config += '\n[[rule]]\non = "schedule"\ntask = "fix"\n'
    number = town.site.ticket()
    town.site.change(number, status="Feedback")
    town.start()
    town.site.change(number, status="New", notes="/claim")
    town.poll()
    town.note(number, "`dana` has this ticket now")
    seen = town.site.seen(number)
    assert (seen["status"]["name"], seen["assigned_to"]["id"]) == ("In Progress", town.site.facts["users"]["dana"])
    town.ring("scan")
    town.site.change(number, who="rea", notes="/release")
    town.poll()
    assert "needs **triage** permission" in town.note(number, "permission")
    assert town.runs() == []
    town.site.change(number, notes="/release I have no time")
    town.poll()
    town.note(number, "`dana` gave the ticket back (I have no time)")
    assert "assigned_to" not in town.site.seen(number)
    town.ring("scan")
    town.note(number, "# REPORT -")
    assert town.site.status(number) == "Resolved"


def test_after_a_release_the_run_that_holds_the_ticket_stops(town: TicketTown) -> None:
    repo = town.shop()
    town.config += "\n[budget]\nper_turn_seconds = 3\nturns = { medium = 100 }\n"
    town.task("wait", ["sleep", "300"])
    town.start()
    number = town.site.ticket()
    town.site.change(number, notes="/run wait")
    town.poll()
    town.note(number, "claimed by")
    town.site.change(number, who="devi", notes="/claim")
    town.poll()
    assert "has this ticket. `/release` has it stop" in town.note(number, "has this ticket.")
    town.site.change(number, who="devi", notes="/release not like this")
    town.poll()
    assert "is given back as soon as run `" in town.note(number, "is given back")
    released = town.note(number, "claim released")
    assert released.startswith("claim released: the run was cancelled (run ")
    assert "devi, who gave the ticket back (not like this)" in released
    assert town.site.status(number) == "New"
    town.until("the run is closed", town.closed)
    town.assert_nothing_is_left(repo)


def test_a_key_from_a_file_works_and_reaches_no_report(town: TicketTown) -> None:
    key = town.variables.pop("REDMINE_KEY")
    file = town.folder / "redmine.key"
    file.write_text(f"{key}\n")
    (town.folder / "leadsman.toml").touch(0o600)  # it says where a secret is
    town.config = town.config.replace('api_key_env = "REDMINE_KEY"', 'api_key_file = "redmine.key"')
    town.shop()
    town.task("leak", ["sh", "-c", f"cat {file}; exit 1"])
    town.start()
    number = town.site.ticket()
    town.site.change(number, notes="/run leak")
    town.poll()
    released = town.note(number, "claim released")
    assert "***" in released
    assert key not in released


def test_no_report_is_lost_to_a_status_that_is_refused_or_to_a_person_who_ended_the_claim(town: TicketTown) -> None:
    town.shop(max_parallel=2)
    town.task("hold", ["sh", "-c", f"until [ -e {town.folder}/go ]; do sleep 0.05; done; echo x > x"])
    town.config += '\n[[rule]]\non = "schedule"\ntask = "hold"\n'
    town.site.sql(
        "INSERT INTO workflows (type, role_id, tracker_id, old_status_id, new_status_id, field_name, rule) "
        f"SELECT 'WorkflowPermission', id, 1, {town.site.facts['statuses']['Resolved']}, 0, 'due_date', 'required' "
        "FROM roles WHERE name = 'Bot'"
    )
    refused, ended = town.site.ticket("its end needs a date"), town.site.ticket("ended by hand")
    town.start()
    for number in (refused, ended):
        town.note(number, "claimed by")
    town.site.change(ended, notes="claim released: never mind")
    (town.folder / "go").touch()
    report = town.note(refused, "# REPORT -")
    assert f": published. The status stays: Redmine refused ticket {refused}: Due date" in report.splitlines()[0]
    assert "published" in town.note(ended, "Report of run")
    town.until("both runs are closed", lambda: town.closed(2))
    assert ["In Progress", "In Progress"] == [town.site.status(number) for number in (refused, ended)]
    town.ring("claims")
    last = town.site.ticket("what comes next")
    town.ring("scan")
    town.note(last, "# REPORT -")
    assert [1, 1, 1] == [len(town.site.notes(n)) - 1 - (n == ended) for n in (refused, ended, last)]
    assert 3 == len(town.runs())

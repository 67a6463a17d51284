"""The log of a run, attached to its report; and the files of a ticket, as a run is told of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests

from bot.errors import Forbidden
from tests.redmine.site import Site, client
from tests.redmine.test_client import answering, http
from tests.redmine.town import TicketTown

pytestmark = pytest.mark.needs("redmine")


@pytest.fixture
def town(town: TicketTown) -> TicketTown:
    """Its tracker takes logs; its task says more than fits, and a secret."""
    town.config = town.config.replace("claim_enabled", "attach_log = true\nattach_log_bytes = 2000\nclaim_enabled")
    town.shop()
    return town


def asked(town: TicketTown, script: str, *, crash: str = "") -> int:
    town.task("talk", ["sh", "-c", script])
    town.start(crash=crash)
    number = town.site.ticket()
    town.site.change(number, notes="/run talk")
    town.poll()
    return number


def attached(site: Site, number: int) -> list[dict[str, Any]]:
    answer = site.call("admin", "get", f"issues/{number}.json?include=attachments,journals")
    found: list[dict[str, Any]] = answer.json()["issue"]["attachments"]
    return found


def content(site: Site, file: dict[str, Any]) -> str:
    return requests.get(file["content_url"], headers={"X-Redmine-API-Key": site.facts["keys"]["dana"]}, timeout=30).text


def limit(site: Site, kilobytes: int) -> None:
    """What the site takes of a file from now on."""
    site.sql(
        "DELETE FROM settings WHERE name = 'attachment_max_size'; INSERT INTO settings (name, value, updated_on) "
        f"VALUES ('attachment_max_size', '{kilobytes}', datetime('now', '+1 second'))"
    )


def test_a_report_takes_the_masked_log_along(town: TicketTown) -> None:
    number = asked(town, f"echo the secret is {town.world.secret}; exit 3")
    note = town.note(number, "claim released")
    (run,) = town.until("the run is closed", town.closed)
    (file,) = attached(town.site, number)
    assert (f"leadsman-{run.name}.log", "text/plain") == (file["filename"], file["content_type"])
    assert "the secret is ***\n" == content(town.site, file)
    shown = [entry for entry in town.site.seen(number)["journals"] if entry["notes"] == note]
    assert ["attachment"] == [one["property"] for one in shown[0]["details"] if one["property"] == "attachment"]
    for text in (town.log(), town.journal()):
        assert town.variables["REDMINE_KEY"] not in text


def test_of_a_long_log_the_end_is_attached(town: TicketTown) -> None:
    number = asked(town, "seq 1 5000")
    town.note(number, "# REPORT -")
    (file,) = attached(town.site, number)
    first, *lines = content(town.site, file).splitlines()
    assert first.endswith("bytes were left out here; the run's directory has the whole log]")
    assert lines == [str(n) for n in range(5001 - len(lines), 5001)]
    assert 1500 < file["filesize"] <= 2000


def test_a_file_that_the_site_refuses_costs_the_report_nothing(town: TicketTown) -> None:
    limit(town.site, 1)
    number = asked(town, "seq 1 5000")
    report = town.note(number, "# REPORT -")
    assert "The log could not be attached: Redmine refused the file leadsman-" in report
    assert "published" not in report.splitlines()[1]
    assert [] == attached(town.site, number)
    assert "Resolved" == town.site.status(number)
    assert '"unattached"' in town.journal()


def test_a_server_that_is_killed_between_file_and_note_attaches_it_once(town: TicketTown) -> None:
    number = asked(town, "echo all is said", crash="uploaded")
    town.dies()
    assert [] == attached(town.site, number)
    town.start()
    town.note(number, "# REPORT -")
    town.until("the run is closed", town.closed)
    (file,) = attached(town.site, number)
    assert "all is said\n" == content(town.site, file)


def test_a_run_that_said_nothing_has_no_file(town: TicketTown) -> None:
    number = asked(town, "true")
    town.note(number, "# REPORT -")
    assert [] == attached(town.site, number)


def test_a_file_that_is_too_large_for_a_proxy_is_refused_and_not_tried_for_ever(site: Site) -> None:
    with (
        answering(http("413 Content Too Large", "<html>too large</html>")) as url,
        pytest.raises(Forbidden, match="413"),
    ):
        client(site, url=url).upload("x.log", b"x")


def test_a_run_is_told_of_the_files_of_its_ticket(town: TicketTown) -> None:
    town.task("look", ["sh", "-c", 'cp "$LEADSMAN_TICKET" ticket.json'])
    town.start()
    number = town.site.ticket()
    token = client(town.site, "dana").upload("two\u202ewords #1.txt", b"12345").token
    town.site.change(number, notes="/run look", uploads=[{"token": token, "filename": "two\u202ewords #1.txt"}])
    town.poll()
    town.note(number, "# REPORT -")
    (run,) = town.until("the run is closed", town.closed)
    told = json.loads((run / "ticket.json").read_text())["attachments"]
    (file,) = [file for file in attached(town.site, number) if file["filename"].endswith(".txt")]
    assert [{"name": "twowords #1.txt", "size": 5, "url": file["content_url"]}] == told

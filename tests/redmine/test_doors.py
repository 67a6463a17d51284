"""Redmine's own webhooks, signed, and the older plugin's, with a token in the address: both say "look again"."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest
import requests

from tests.redmine.town import TOKEN, TicketTown

pytestmark = pytest.mark.needs("redmine")


def native(number: int, kind: str = "issue.updated", **journal: Any) -> bytes:
    """As Redmine 7 sends it: nothing tells which notes are private."""
    data = {"issue": {"id": number, "project": {"id": 1, "name": "Demo"}}, "journal": {"id": 1, **journal}}
    return json.dumps({"type": kind, "timestamp": "2026-01-01T00:00:00Z", "data": data}).encode()


def plugin(number: int, action: str = "updated") -> bytes:
    inner = {"action": action, "issue": {"id": number, "lock_version": 3}, "journal": {"id": 1, "notes": "/run fix"}}
    return json.dumps({"payload": inner}).encode()


def sent(town: TicketTown, body: bytes, path: str = "work", **headers: str) -> requests.Response:
    return requests.post(
        f"{town.address}/webhooks/{path}",
        data=body,
        headers={
            "Content-Type": "application/json",
            **{name.replace("_", "-"): text for name, text in headers.items()},
        },
        timeout=60,
    )


def signature(town: TicketTown, body: bytes) -> str:
    return "sha256=" + hmac.new(town.variables["TICKET_SECRET"].encode(), body, hashlib.sha256).hexdigest()


@pytest.fixture
def slow_town(town: TicketTown) -> TicketTown:
    """It polls so seldom that only a webhook can have told."""
    town.config = town.config.replace("poll_seconds = 5", "poll_seconds = 86400")
    town.shop()
    town.start()
    return town


def test_a_signed_delivery_has_the_ticket_read(slow_town: TicketTown) -> None:
    town = slow_town
    number = town.site.ticket()
    town.site.change(number, notes="/run fix")
    body = native(number, notes="/run something else")
    answer = sent(town, body, X_Redmine_Signature_256=signature(town, body))
    assert (answer.status_code, answer.json()["status"]) == (202, "accepted")
    assert "of fix: published" in town.note(number, "# REPORT -")
    again = sent(town, body, X_Redmine_Signature_256=signature(town, body))
    assert (again.status_code, again.json()["status"]) == (200, "duplicate")
    town.until("the run is closed", town.closed)
    assert len(town.runs()) == 1


def test_a_plugins_delivery_counts_by_the_token_in_its_address(slow_town: TicketTown) -> None:
    town = slow_town
    number = town.site.ticket()
    town.site.change(number, notes="Only words.")
    assert sent(town, plugin(number), f"work/{TOKEN}").status_code == 202
    town.until("it was worked", lambda: town.states() and set(town.states()) <= {"done", "ignored"})
    assert town.runs() == []  # what its body says counts for nothing
    town.site.change(number, notes="/run fix")
    assert sent(town, plugin(number, "opened"), f"work/{TOKEN}").status_code == 202
    town.note(number, "# REPORT -")


def test_what_is_not_signed_and_has_no_token_is_refused(slow_town: TicketTown) -> None:
    town = slow_town
    number = town.site.ticket()
    town.site.change(number, notes="/run fix")
    body = native(number)
    refused = [
        sent(town, body),
        sent(town, body, X_Redmine_Signature_256="sha256=" + "0" * 64),
        sent(town, body, X_Redmine_Signature_256=signature(town, body + b" ")),
        sent(town, plugin(number)),
        sent(town, plugin(number), f"work/{TOKEN[:-1]}"),
        sent(town, plugin(number), f"work/{TOKEN}0"),
        sent(town, plugin(number), "work/"),
        sent(town, plugin(number), f"github/{TOKEN}"),
        sent(town, plugin(number), f"work/{TOKEN}/x"),
    ]
    assert [answer.status_code for answer in refused] == [401, 401, 401, 401, 404, 404, 404, 404, 404]
    assert town.states() == []
    assert TOKEN not in town.log()


def test_the_token_reaches_no_log(slow_town: TicketTown) -> None:
    town = slow_town
    number = town.site.ticket()
    assert sent(town, plugin(number), f"work/{TOKEN}").status_code == 202
    large = requests.post(f"{town.address}/webhooks/work/{TOKEN}", data=b"x" * 26_300_000, timeout=60)
    assert large.status_code == 413
    assert requests.get(f"{town.address}/webhooks/work/{TOKEN}", timeout=60).status_code == 405
    for text in (town.log(), town.journal(), (town.home / "leadsman.db").read_bytes().decode(errors="replace")):
        assert TOKEN not in text


def test_what_is_no_news_of_a_ticket_is_ignored(slow_town: TicketTown) -> None:
    town = slow_town
    for body in (
        native(1, "issue.deleted"),
        native(1, "wiki_page.updated"),
        json.dumps({"type": "issue.updated", "data": {}}).encode(),
        json.dumps({"type": "issue.updated", "data": {"issue": {"id": "1"}}}).encode(),
        json.dumps({"payload": {"action": "updated", "issue": []}}).encode(),
        native(2**62),
        native(-1),
    ):
        assert sent(town, body, X_Redmine_Signature_256=signature(town, body)).status_code == 202
    nameless = b"{}"
    assert sent(town, nameless, X_Redmine_Signature_256=signature(town, nameless)).status_code == 400
    town.until("all were worked", lambda: len(town.states()) == 7 and "queued" not in town.states())
    assert set(town.states()) <= {"ignored", "done"}

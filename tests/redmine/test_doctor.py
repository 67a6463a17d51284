"""What `leadsman doctor` says of a tracker, against a real Redmine."""

from __future__ import annotations

from typing import Any

import pytest

from bot import checkup
from tests.redmine.site import Site, client

pytestmark = pytest.mark.needs("redmine")


def told(
    site: Site, who: str = "bot", projects: tuple[str, ...] = ("demo",), **about: Any
) -> list[tuple[str, str, str]]:
    tracker = client(site, who, **about)
    found = checkup.asked("[trackers.work]", checkup.tracker("work", tracker, projects))
    return [(finding.verdict, finding.subject, finding.what) for finding in found]


def test_it_tells_who_the_bot_is_and_that_it_may_claim(site: Site) -> None:
    who = ("ok", "[trackers.work]", "works as bot")
    untried = "can be read; no ticket is New now, so claiming is not tried"
    assert [who, ("ok", "work demo", untried)] == told(site)
    site.ticket()
    spelled = {"claim_status": "in progress", "status_map": {"in progress": "Resolved"}}
    assert [who, ("ok", "work demo", "the bot may set in progress there")] == told(site, **spelled)
    off = "can be read; claiming is off (claim_enabled)"
    assert [who, ("ok", "work demo", off)] == told(site, claim_enabled=False)


def test_a_workflow_that_forbids_the_claim_is_told_with_what_to_do(site: Site) -> None:
    site.ticket()
    (_, (verdict, _, text)) = told(site, claim_status="Closed", status_map={"Closed": "Resolved"})
    lost = "the bot may not set Closed on a ticket that is New: it claims none"
    assert ("wrong", f"{lost}; allow that step for its role in the workflow") == (verdict, text)


def test_a_key_that_is_refused_and_a_project_that_is_hidden_are_told(site: Site) -> None:
    ((verdict, subject, _),) = told(site, key="0" * 40)
    assert ("wrong", "[trackers.work]") == (verdict, subject)
    found = [(verdict, subject) for verdict, subject, _ in told(site, projects=("secret", "demo"))]
    assert [("ok", "[trackers.work]"), ("wrong", "work secret"), ("ok", "work demo")] == found

"""The tests' Redmine itself."""

from __future__ import annotations

import pytest
import requests

from tests.redmine.site import Site

pytestmark = pytest.mark.needs("redmine")


def takes(site: Site) -> bool:
    """Whether it takes a file of two kilobytes."""
    headers = {"X-Redmine-API-Key": site.facts["keys"]["dana"], "Content-Type": "application/octet-stream"}
    return requests.post(f"{site.url}/uploads.json", data=b"x" * 2000, headers=headers, timeout=60).status_code == 201


def test_what_a_test_set_is_forgotten_before_the_next(site: Site) -> None:
    assert takes(site)
    site.sql(
        "INSERT INTO settings (name, value, updated_on) "
        "VALUES ('attachment_max_size', '1', datetime('now', '+1 second'))"
    )
    assert not takes(site)
    site.up("reset")
    assert takes(site)

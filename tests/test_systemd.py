"""The systemd unit: systemd takes it, it leaves the runs alone, and says why each of its lines is there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[1] / ".github/systemd/leadsman.service"


def settings() -> dict[str, str]:
    lines = [line for line in UNIT.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_only_the_server_is_signalled_so_that_a_restart_does_not_end_the_runs() -> None:
    found = settings()
    assert ("process", "continue") == (found["KillMode"], found["OOMPolicy"])
    assert "PrivateTmp" not in found  # what the server is denied its runs are, too


def test_a_second_server_of_the_home_is_not_tried_for_ever() -> None:
    assert ("always", "4") == (settings()["Restart"], settings()["RestartPreventExitStatus"])


def test_every_line_of_the_service_says_why_it_is_there() -> None:
    service = UNIT.read_text().partition("[Service]\n")[2].partition("[Install]")[0].splitlines()
    bare = [
        line
        for before, line in zip(["", *service], service, strict=False)
        if "=" in line and not line.startswith("#") and not before.startswith("#")
    ]
    assert ["StateDirectoryMode=0700", "Environment=LEADSMAN_HOME=/var/lib/leadsman"] == bare  # one reason for three


@pytest.mark.needs("systemd")
def test_systemd_finds_nothing_wrong_in_it(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/leadsman/bin/leadsman", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    assert (0, "") == (done.returncode, "\n".join(line for line in done.stderr.splitlines() if UNIT.name in line))

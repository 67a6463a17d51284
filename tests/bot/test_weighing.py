"""Whose rules count for a report, and what is said where they can't be told."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from bot.model import Sha
from bot.reports import Risk
from bot.weighing import risk_of
from gitops.credentials import Remote
from gitops.mirror import Mirror
from tests.gitops.folk import Folder

RULES = '[[risk.rules]]\ntier = "{}"\nwhy = "all of it"\nmatch = ["**"]\n'


class Scene(NamedTuple):
    origin: Folder
    mirror: Mirror
    base: Sha
    tip: Sha

    def risk(self, branch: str = "main", rules_at: Sha | None = None) -> Risk:
        return risk_of(self.mirror, self.base, self.tip, branch=branch, rules_at=rules_at)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    origin = Folder(tmp_path / "origin")
    origin.path.mkdir()
    origin.git("init", "-q", "-b", "main")
    base = origin.commit({".leadsman.toml": RULES.format("T1")})
    origin.git("checkout", "-q", "-b", "topic")
    tip = origin.commit({"a": "1\n"})
    origin.git("checkout", "-q", "main")
    mirror = Mirror(tmp_path / "mirror.git", Remote(str(origin.path)))
    mirror.ensure()
    mirror.refresh()
    return Scene(origin, mirror, Sha(base), Sha(tip))


def test_the_rules_are_what_the_remote_has_now_and_not_what_stands_in_the_mirror(scene: Scene) -> None:
    now = scene.origin.commit({".leadsman.toml": RULES.format("T3")})
    scene.mirror.git.run("update-ref", "refs/remotes/origin/main", scene.tip)
    assert Risk(tier="T3", reasons=("all of it (a)",), branch="main", rules_at=Sha(now)) == scene.risk()
    assert Risk(tier="T1", reasons=("all of it (a)",), branch="main", rules_at=scene.base) == scene.risk(
        rules_at=scene.base
    )


def test_what_can_not_be_told_is_unknown_and_says_why(scene: Scene) -> None:
    assert Risk(tier="unknown", reasons=("there is no branch gone any more",), branch="gone") == scene.risk("gone")
    wrong = scene.origin.commit({".leadsman.toml": "[risk]\nrules = 1\n"})
    assert (
        Risk(
            tier="unknown",
            reasons=(".leadsman.toml:2: [risk] rules: must be a list, not 1",),
            branch="main",
            rules_at=Sha(wrong),
        )
        == scene.risk()
    )
    scene.origin.path.rename(scene.origin.path.with_name("elsewhere"))
    away = scene.risk()
    assert ("unknown", None, True) == (away.tier, away.rules_at, away.reasons[0].startswith("git ls-remote: "))

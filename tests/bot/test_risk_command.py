"""`leadsman risk`: the same answer as a report's, in any clone, with the rules of the base."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from bot.cli.risk import command
from bot.config import ConfigErrors
from bot.errors import UsageError, UserError
from tests.gitops.folk import Folder

RULES = """
[[risk.rules]]
tier = "T3"
why = "decides who gets in"
match = ["auth/**"]

[[risk.rules]]
tier = "T0"
why = "words only"
only_match = ["**/*.md"]

[[risk.rules]]
tier = "T3"
why = "starts programs"
patch_contains = '^\\+.*\\bsubprocess\\b'

[risk.size_caps]
T0 = 3
"""


class Scene(NamedTuple):
    folder: Folder
    main: str
    capsys: pytest.CaptureFixture[str]

    def asks(self, *words: str) -> str:
        command.main(["--repo", str(self.folder.path), *words], standalone_mode=False)
        return self.capsys.readouterr().out

    def tier(self, *words: str) -> object:
        return json.loads(self.asks(*words, "--json"))["tier"]


@pytest.fixture
def scene(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scene:
    folder = Folder(tmp_path / "clone")
    folder.path.mkdir()
    folder.git("init", "-q", "-b", "main")
    main = folder.commit({".leadsman.toml": RULES, "auth/login.py": "x = 1\n", "README.md": "one\n"})
    return Scene(folder, main, capsys)


def test_it_tells_tier_reasons_figures_and_where_the_rules_are_from(scene: Scene) -> None:
    folder, main = scene.folder, scene.main
    folder.git("checkout", "-q", "-b", "topic")
    head = folder.commit({"README.md": "1\n", "docs/a.md": "2\n"})
    folder.git("checkout", "-q", "main")
    moved = folder.commit({"auth/login.py": "x = 2\n"})  # the base's own change is none of the topic's
    assert scene.asks("main..topic") == (
        "T0\n  words only (README.md and 1 more)\n"
        f"2 files, +2 -1, from {main} to {head}\nrules: .leadsman.toml at {moved}\n"
    )
    assert json.loads(scene.asks("main...topic", "--json")) == {
        "tier": "T0",
        "reasons": ["words only (README.md and 1 more)"],
        "files": 2,
        "additions": 2,
        "deletions": 1,
        "base": moved,
        "head": head,
        "merge_base": main,
        "rules": moved,
    }
    assert ["T0", "T3", None] == [scene.tier(words) for words in ("..topic", "topic..", "main..main")]


def test_a_change_is_judged_by_the_rules_of_its_base_and_never_by_its_own(scene: Scene) -> None:
    folder = scene.folder
    folder.git("checkout", "-q", "-b", "topic")
    folder.commit({".leadsman.toml": '[[risk.rules]]\ntier = "T0"\nwhy = "x"\nmatch = ["**"]\n'})
    assert "the rules themselves change (.leadsman.toml)" in scene.asks("main..topic")
    folder.commit({"auth/login.py": "x = 3\n"})
    assert "T0" == scene.tier("topic~1..topic")
    assert "T3" == scene.tier("topic~1..topic", "--rules", "main")


def test_both_names_of_a_renamed_file_count(scene: Scene) -> None:
    folder = scene.folder
    folder.git("mv", "auth/login.py", "login.md")
    folder.commit({})
    assert "  decides who gets in (auth/login.py)\n" in scene.asks("HEAD~1..HEAD")
    folder.git("mv", "login.md", "auth/login.py")
    folder.commit({})
    assert "T3" == scene.tier("HEAD~1..HEAD")


def test_patches_and_sizes_are_looked_at(scene: Scene) -> None:
    scene.folder.commit({"a.py": "import subprocess\n"})
    assert "T3\n  starts programs (a.py)\n" in scene.asks("HEAD~1..HEAD")
    scene.folder.commit({"a.py": ""})
    assert "T2" == scene.tier("HEAD~1..HEAD")
    scene.folder.commit({"README.md": "1\n2\n"})
    assert "T0" == scene.tier("HEAD~1..HEAD"), "three lines are no more than three"
    scene.folder.commit({"README.md": "3\n4\n"})
    assert "T1\n  4 changed lines, more than the 3 of T0\n  words only (README.md)\n" in scene.asks("HEAD~1..HEAD")


def test_without_rules_everything_is_ordinary(scene: Scene) -> None:
    scene.folder.git("rm", "-q", ".leadsman.toml")
    bare = scene.folder.commit({})
    scene.folder.commit({"auth/x": "1\n"})
    assert f"T2\n  no rule names auth/x\n1 file, +1 -0, from {bare} to " in scene.asks("HEAD~1..HEAD")
    assert f"rules: .leadsman.toml at {bare}, which has none\n" in scene.asks("HEAD~1..HEAD")


@pytest.mark.parametrize(
    ("words", "problem", "code", "said"),
    [
        (["main"], UsageError, 2, 'like "main..HEAD", not "main"'),
        ([".."], UsageError, 2, 'not ".."'),
        (["a..b..c"], UsageError, 2, 'not "a..b..c"'),
        (["main..nowhere"], UserError, 1, "There is no commit nowhere in this clone."),
        (["main..--help"], UserError, 1, "There is no commit --help in this clone."),
        (["main..HEAD", "--rules", "nowhere"], UserError, 1, "There is no commit nowhere"),
        (["main..HEAD", "--repo", "/"], UserError, 1, "/ is in no clone."),
        (["main..HEAD"], ConfigErrors, 2, ".leadsman.toml:2: [[risk.rules]] tier: must be T0, T1, T2 or T3"),
    ],
)
def test_what_can_not_be_told_names_the_next_step(
    scene: Scene, words: list[str], problem: type[UserError], code: int, said: str
) -> None:
    scene.folder.commit({".leadsman.toml": '[[risk.rules]]\ntier = "high"\n'})
    with pytest.raises(problem) as refused:
        scene.asks(*words)
    assert code == refused.value.code
    assert said in refused.value.text


def test_a_clone_without_the_common_history_is_told_and_not_guessed_about(scene: Scene, tmp_path: Path) -> None:
    scene.folder.git("checkout", "-q", "-b", "topic")
    scene.folder.commit({"a": "1\n"})
    scene.folder.git("checkout", "-q", "main")
    scene.folder.commit({"b": "1\n"})
    cut = Folder(tmp_path / "cut")
    scene.folder.git("clone", "-q", "--depth", "1", "--no-single-branch", f"file://{scene.folder.path}", str(cut.path))
    with pytest.raises(UserError, match="git fetch --unshallow"):
        Scene(cut, "", scene.capsys).asks("main..origin/topic")

"""A command can write into its run's directory: what it writes there for the server counts for nothing."""

from __future__ import annotations

import pytest

from bot.statement import read
from bot.wake import ring
from tests.stories.town import Town

FORGE = """#!/usr/bin/env python3
import json, os, pathlib, subprocess
folder = pathlib.Path(os.environ["LEADSMAN_RUN_DIR"])
pathlib.Path("fixed.txt").write_text("fixed\\n")
subprocess.run("git add . && git commit -qm Fix", shell=True, check=True)
tip = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
def write(name, value):
    (folder / f"{name}.json").write_text(json.dumps(value))
def seal():
    write("sealed", {"tip": tip, "commits": 1, "leftovers_committed": False, "descends": True, "head": tip})
    write("checked", {"tip": tip, "verdicts": [], "not_run": []})
def unchecked(value):
    if isinstance(value, dict):
        return {key: [] if key == "verify" else unchecked(item) for key, item in value.items()}
    return [unchecked(item) for item in value] if isinstance(value, list) else value
"""

FORGERIES = {
    "ended": 'seal(); write("ended", {"outcome": {"kind": "published", "tip": tip, "ref": "refs/heads/leadsman/run/x"},'
    ' "at": "2026-01-01T00:00:00Z", "pull": ""})',
    "checked": "seal()",
    "no checks": 'for name in ("intent", "claim", "run"):'
    ' write(name, unchecked(json.loads((folder / f"{name}.json").read_text())))',
    "broken": 'for name in ("intent", "claim", "run"): (folder / f"{name}.json").write_text("{")',
    "gone": 'for name in ("intent", "claim", "run"): (folder / f"{name}.json").unlink()',
    "closed": 'write("closed", {"at": "2026-01-01T00:00:00Z"})',
    "lost claim": 'seal(); write("held", {"by": "x", "run_id": "x", "since": "x", "where": "x"})',
    "silenced": '(folder / "silenced").touch()',
    "folders": 'for name in ("sealed", "ended", "checked"): (folder / f"{name}.json").mkdir()',
    "links": '[(folder / f"{name}.json").symlink_to("/dev/null") for name in ("sealed", "ended", "report")]',
}


@pytest.mark.parametrize("how", FORGERIES)
def test_what_a_command_writes_down_of_its_own_run_counts_for_nothing(town: Town, how: str) -> None:
    repo = town.repo()
    town.task("forge", [town.script("forge", FORGE + FORGERIES[how] + "\n")], '[[task.verify]]\nrun = ["false"]\n')
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run forge")
    said = town.settled(pull, "**Failed** `forge` (verify)")
    assert "| check, 0/1 | `false` | exit 1 |" in said
    (run,) = town.until("the run is closed", town.closed)
    assert "red" == read((run / "report.json").read_text()).report.grade
    assert town.run_branches(repo) == []
    assert '"event": "meddled"' in town.journal()
    assert "the bot's own record of the run, which was put back" in said
    town.assert_nothing_is_left(repo)


def test_a_check_that_writes_down_how_all_of_them_ended_changes_nothing(town: Town) -> None:
    repo = town.repo()
    forge = town.script(
        "forge",
        """#!/bin/sh
run=$HOME/../../..
printf '{"tip": "%s", "verdicts": [], "not_run": []}' $(git rev-parse HEAD) > $run/checked.json
""",
    )
    checks = f'[[task.verify]]\nrun = ["{forge}"]\n[[task.verify]]\nrun = ["false"]\n'
    town.task("work", ["sh", "-c", "echo fixed > fixed.txt"], checks)
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run work")
    said = town.settled(pull, "**Failed** `work` (verify)")
    assert "`false` | exit 1 |" in said
    assert town.run_branches(repo) == []


@pytest.mark.parametrize("later", ["folder", "link"])
def test_a_check_that_writes_down_how_another_ends_changes_nothing(town: Town, later: str) -> None:
    repo = town.repo()
    forge = town.script(
        "forge",
        f"""#!/bin/sh
cd $HOME/../..
tip=$(ls | sed 's/.*-//' | head -1)
good='{{"state": "done", "exit_code": 0, "supervisor": "ended", "finished": "2026-01-01"}}'
mkdir ../good && echo "$good" > ../good/status.json && echo '{{"argv": ["false"]}}' > ../good/spec.json
if [ {later} = link ]; then ln -s ../good 2-1-$tip; else cp -r ../good 2-1-$tip; fi
[ -e 1-2-$tip ] || exit 1
python3 -c "
import json
path = '1-1-$tip/ran.json'
kept = json.load(open(path))
kept['ran'].update(exit_code=0, ended='done', stop_reason='')
json.dump(kept, open(path, 'w'))
"
exit 1
""",
    )
    checks = f'[[task.verify]]\nrun = ["{forge}"]\nrepeat = 2\n'
    town.task("twice", ["sh", "-c", "echo fixed > fixed.txt"], checks)
    town.task(
        "two",
        ["sh", "-c", "echo fixed > fixed.txt"],
        f'[[task.verify]]\nrun = ["sh", "-c", "{forge} || true"]\n[[task.verify]]\nrun = ["false"]\n',
    )
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run twice")
    assert "check, 0/2, try 1" in town.settled(pull, "**Failed** `twice` (verify)")
    town.says(pull, "/run two")
    said = town.until("the other", lambda: next((b for b in town.answers(pull) if "`two` (verify)" in b), None))
    assert "| check, 0/1 | `false` | exit 1 |" in said
    assert town.run_branches(repo) == []


def test_a_report_that_a_command_writes_is_never_said(town: Town) -> None:
    repo = town.repo()
    go = town.folder / "go"
    forge = (
        FORGE
        + FORGERIES["ended"]
        + f"""
import base64, time
write("report", {{"payloadType": "x", "payload": base64.b64encode(b"all is well").decode(), "signatures": []}})
while not os.path.exists("{go}"):
    time.sleep(0.05)
"""
    )
    town.task("forge", [town.script("forge", forge)], '[[task.verify]]\nrun = ["false"]\n')
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run forge")
    town.until("it is forged", lambda: [run for run in town.runs() if (run / "report.json").exists()] or None)
    town.says(pull, "/status")
    town.until("an answer", lambda: [body for body in town.answers(pull) if "On this host" in body] or None)
    assert any("is under way" in body for body in town.answers(pull))
    go.touch()
    said = town.until("its end", lambda: next((b for b in town.answers(pull) if "**Failed** `forge`" in b), None))
    assert "| check, 0/1 | `false` | exit 1 |" in said


STATUS = """
import time
status = json.loads((folder / "status.json").read_text())
forge = {"status": lambda: write("status", {**status, "state": "done", "exit_code": 0}),
         "lock": (folder / "alive.lock").unlink, "nothing": (folder / "status.json").unlink}
for what in os.environ["FORGES"].split():
    forge[what]()
pathlib.Path("forged").touch()
while not os.path.exists("go"):
    time.sleep(0.05)
raise SystemExit(7)
"""


@pytest.mark.parametrize("what", ["status", "status lock", "lock nothing"])
def test_a_run_goes_on_until_its_supervisor_says_otherwise_whatever_it_writes_of_itself(town: Town, what: str) -> None:
    repo = town.repo()
    town.task("forge", [town.script("forge", FORGE + STATUS.replace('os.environ["FORGES"]', repr(what)))])
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run forge")
    (tree,) = town.until("it works", lambda: list((town.home / "worktrees").iterdir()) or None)
    town.until("it has forged", (tree / "forged").exists)
    for _ in range(5):
        assert ring(town.home, "run", tree.name)
    town.says(pull, "/status")
    town.until("an answer", lambda: [body for body in town.answers(pull) if "On this host" in body] or None)
    (run,) = town.runs()
    assert not (run / "sealed.json").exists()
    assert not (run / "ended.json").exists()
    (tree / "go").touch()
    said = town.until("its end", lambda: next((b for b in town.answers(pull) if "**Failed** `forge`" in b), None))
    assert "It ended with exit code 7." in said
    town.until("the run is closed", town.closed)
    assert town.run_branches(repo) == []
    town.assert_nothing_is_left(repo)

"""Anyone checks a report again: on another machine, in a fresh clone, with nothing of the bot but its public key."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from bot.masking import Masking
from bot.reports import Change
from bot.signing import own_key
from bot.statement import read, signed
from gitops.git import Git
from tests.stories import nursery
from tests.stories.town import FIX, Town
from tests.world import Pull, Repository

CHECKS = """
[[task.verify]]
run = ["sh", "-c", "grep -q fixed fixed.txt"]
repeat = 2
[[task.verify]]
run = ["diff", "fixed.txt", "tests/expected"]
red_at_base = ["tests/**"]
"""
RULES = """
[[risk.rules]]
tier = "T1"
why = "is tested"
match = ["tests/**", "*.txt"]
[risk.size_caps]
T1 = 1
"""
WORK = ["sh", "-c", "echo fixed > fixed.txt; mkdir tests; echo fixed > tests/expected; git add -A; git commit -qm Fix"]


ELSEWHERE = """
[forges.local]
kind = "local"
[[project]]
name = "shop"
forge = "local"
repository = "acme/shop"
"""


class Verified(NamedTuple):
    code: int
    verdicts: Mapping[str, tuple[str, str]]
    err: str


class Stranger:
    """Somebody on another machine: a home without anything, a clone, and the public key."""

    def __init__(self, folder: Path, town: Town, repo: Repository, run: Path) -> None:
        self.folder = folder
        self.run = run
        self.clone = folder / "clone"
        folder.mkdir()
        subprocess.run(["git", "clone", "-q", str(repo.git.path), str(self.clone)], check=True)
        ended = nursery.leadsman("key", cwd=folder, environ={"LEADSMAN_HOME": str(town.home)})
        (folder / "leadsman.pub").write_text(ended.out)
        shutil.copytree(run, folder / "copy", ignore=lambda *_: ["control"])
        self.report = folder / "copy" / "report.json"

    def verify(self, *args: str, key: str | None = "leadsman.pub", cwd: Path | None = None) -> Verified:
        keys = ("--key", str(self.folder / key)) if key else ()
        ended = nursery.leadsman(
            "verify",
            *args,
            *keys,
            "--json",
            cwd=cwd or self.clone,
            environ={"LEADSMAN_HOME": str(self.folder / "none")},
        )
        found = json.loads(ended.out) if ended.out else []
        return Verified(ended.code, {one["claim"]: (one["verdict"], one["detail"]) for one in found}, ended.err)


@pytest.fixture
def repo(town: Town) -> Repository:
    return town.repo(files={"README.md": "hello\n", ".leadsman.toml": RULES})


@pytest.fixture
def pull(town: Town, repo: Repository) -> Pull:
    return town.pull_of(repo)


@pytest.fixture
def stranger(tmp_path: Path, town: Town, repo: Repository, pull: Pull) -> Stranger:
    town.task("work", WORK, CHECKS)
    town.start()
    town.says(pull, "/run work")
    (run,) = town.until("the run is closed", town.closed)
    town.settled(pull, "**Published**")
    return Stranger(tmp_path / "elsewhere", town, repo, run)


def test_a_report_holds_in_a_fresh_clone_on_another_machine(stranger: Stranger) -> None:
    found = stranger.verify(str(stranger.report), "--rerun")
    assert 0 == found.code, found
    assert {"holds"} == {verdict for verdict, _ in found.verdicts.values()}
    assert {"signature", "published ref", "figures", "commits", "history", "log worker.log"} <= set(found.verdicts)
    weighed = "T2: 2 changed lines, more than the 1 of T1; is tested (fixed.txt and 1 more)"
    assert ("holds", weighed) == found.verdicts["risk tier"]
    said = read(stranger.report.read_text()).report
    assert said.risk is not None
    words = ("risk", f"{said.changes_since}..{said.tip}", "--rules", str(said.risk.rules_at), "--json")
    offline = json.loads(nursery.leadsman(*words, cwd=stranger.clone, environ={}).out)
    assert (said.risk.tier, list(said.risk.reasons)) == (offline["tier"], offline["reasons"])
    assert ("holds", "2/2 then, 2/2 now") == found.verdicts["check sh -c grep -q fixed fixed.txt"]
    assert ("holds", "1/1, red at base then, 1/1, red at base now") == found.verdicts[
        "check diff fixed.txt tests/expected"
    ]


def test_a_commit_is_enough_since_its_note_travels_with_the_repository(stranger: Stranger) -> None:
    tip = read(stranger.report.read_text()).report.tip
    found = stranger.verify(str(tip), "--no-logs")
    assert 0 == found.code, found
    without = stranger.verify(str(tip))
    assert 3 == without.code, "the logs are not here"
    assert "could not check" == without.verdicts["log worker.log"][0]
    assert 0 == stranger.verify(str(tip), "--logs", str(stranger.report.parent)).code


def test_a_comment_is_enough(stranger: Stranger, town: Town, pull: Pull) -> None:
    (said,) = town.answers(pull)
    saved = stranger.folder / "comment.md"
    for text in (said, json.dumps({"id": 7, "body": said.replace("\n", "\r\n")})):
        saved.write_text(text)
        found = stranger.verify(str(saved), "--no-logs")
        assert (0, "holds") == (found.code, found.verdicts["comment"][0])
        saved.write_text(text.replace("2/2", "3/3"))
        found = stranger.verify(str(saved), "--no-logs")
        assert (1, "differs") == (found.code, found.verdicts["comment"][0])


def test_a_page_is_enough_and_an_edited_one_is_found(stranger: Stranger, town: Town) -> None:
    run = read(stranger.report.read_text()).report.run
    environ = {"LEADSMAN_HOME": str(town.home)}
    page = nursery.leadsman("report", run, "--format", "html", cwd=town.folder, environ=environ).out
    saved = stranger.folder / "report.html"
    for text, code, verdict in ((page, 0, "holds"), (page.replace("2/2", "3/3"), 1, "differs")):
        saved.write_text(text)
        found = stranger.verify(str(saved), "--no-logs")
        assert (code, verdict) == (found.code, found.verdicts["page"][0])


def test_a_report_that_the_pages_serve_is_no_edited_comment(stranger: Stranger, town: Town) -> None:
    run = read(stranger.report.read_text()).report.run
    found = stranger.verify(f"{town.address}/runs/{run}/report.json", "--no-logs")
    assert 0 == found.code, found
    assert "comment" not in found.verdicts


def test_the_address_of_a_comment_is_asked_for_and_an_edited_one_is_found(
    stranger: Stranger, town: Town, repo: Repository, pull: Pull
) -> None:
    comment = next(one for one in pull.comments if one.author is town.bot)
    url = f"{town.world.url}/{repo.full_name}/pull/{pull.number}#issuecomment-{comment.id}"

    def verify() -> Verified:
        ended = nursery.leadsman(
            "--config",
            str(town.folder / "leadsman.toml"),
            *("verify", url, "--no-logs", "--json"),
            cwd=stranger.clone,
            environ={"LEADSMAN_HOME": str(town.home), "BOT_TOKEN": town.bot.token, "HOOK_SECRET": "x" * 16},
        )
        found = json.loads(ended.out) if ended.out else []
        return Verified(ended.code, {one["claim"]: (one["verdict"], one["detail"]) for one in found}, ended.err)

    assert 0 == verify().code, verify()
    assert "holds" == verify().verdicts["comment"][0]
    comment.body = comment.body.replace("2/2", "3/3")
    assert 1 == verify().code
    verdict, detail = verify().verdicts["comment"]
    assert ("differs", True) == (verdict, detail.startswith("it does not read as the report does: it was edited"))


def test_without_the_key_nothing_is_proved_and_nothing_is_run(stranger: Stranger) -> None:
    found = stranger.verify(str(stranger.report), "--rerun", key=None)
    assert 3 == found.code
    assert "could not check" == found.verdicts["signature"][0]
    assert ("could not check", "what an unproved report names is not run") == found.verdicts["checks"]


def test_anothers_signature_is_named(stranger: Stranger) -> None:
    home = stranger.folder / "other"
    home.mkdir()
    forged = signed(read(stranger.report.read_text()).report, own_key(home), Masking())
    stranger.report.write_text(forged)
    found = stranger.verify(str(stranger.report), "--rerun")
    assert 1 == found.code
    assert own_key(home).public.id[:16] in found.verdicts["signature"][1]
    assert "could not check" == found.verdicts["checks"][0]


def test_figures_that_were_touched_are_found_though_the_key_was_stolen(stranger: Stranger, town: Town) -> None:
    said = read(stranger.report.read_text()).report
    touched = replace(said, changes=(*said.changes[:-1], Change(path="fixed.txt", added=9, deleted=0)))
    stranger.report.write_text(signed(touched, own_key(town.home), Masking()))
    found = stranger.verify(str(stranger.report))
    assert 1 == found.code
    assert "differs" == found.verdicts["figures"][0]
    risk = said.risk
    assert risk is not None
    for changed, code, verdict in (
        (replace(risk, tier="T1"), 1, "differs"),
        (replace(risk, reasons=("all is well",)), 1, "differs"),
        (replace(risk, tier=None, rules_at=None), 1, "differs"),
        (replace(risk, rules_at="1" * 40), 3, "could not check"),
        (replace(risk, tier="unknown"), 3, "could not check"),
        (None, 0, ""),  # as it was before there were tiers
    ):
        stranger.report.write_text(signed(replace(said, risk=changed), own_key(town.home), Masking()))
        found = stranger.verify(str(stranger.report))
        assert (code, verdict) == (found.code, found.verdicts.get("risk tier", ("", ""))[0]), (changed, found)


def test_a_byte_that_was_changed_is_found(stranger: Stranger) -> None:
    envelope = json.loads(stranger.report.read_text())
    payload = envelope["payload"]
    envelope["payload"] = payload[:-8] + ("A" if payload[-8] != "A" else "B") + payload[-7:]
    stranger.report.write_text(json.dumps(envelope))
    found = stranger.verify(str(stranger.report))
    assert 1 == found.code
    assert ("differs", "the report was changed after it was signed") == found.verdicts["signature"]


def test_an_edited_log_is_found_and_named(stranger: Stranger) -> None:
    log = stranger.report.parent / "worker.log"
    log.write_text(log.read_text() + "all is well\n")
    found = stranger.verify(str(stranger.report))
    assert 1 == found.code
    assert "differs" == found.verdicts["log worker.log"][0]
    log.unlink()
    assert 3 == stranger.verify(str(stranger.report)).code


def test_a_branch_that_was_pushed_over_is_found_and_one_that_went_on_holds(
    stranger: Stranger, repo: Repository
) -> None:
    said = read(stranger.report.read_text()).report
    git = Git(repo.git.path)
    further = _further(git, said.tip)
    git.run("update-ref", str(said.ref), further)
    found = stranger.verify(str(stranger.report))
    assert 0 == found.code, found
    assert "what came after it" in found.verdicts["published ref"][1]
    git.run("update-ref", str(said.ref), said.base)
    found = stranger.verify(str(stranger.report))
    assert 1 == found.code
    assert "it was pushed over" in found.verdicts["published ref"][1]
    git.run("update-ref", "-d", str(said.ref))
    found = stranger.verify(str(stranger.report))
    assert 1 == found.code
    assert "no branch has" in found.verdicts["published ref"][1]
    git.run("update-ref", "refs/heads/main", _further(git, repo.sha("main"), tree=said.tip))
    found = stranger.verify(str(stranger.report))
    assert ("holds", f"{said.ref} was removed; main has the same content") == found.verdicts["published ref"]
    git.run("update-ref", "refs/heads/main", str(said.tip))
    found = stranger.verify(str(stranger.report))
    assert ("holds", f"{said.ref} was removed; main has {said.tip} in it") == found.verdicts["published ref"]


def _further(git: Git, tip: str | None, *, tree: str | None = None) -> str:
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return git.run("commit-tree", "-m", "More", "-p", str(tip), f"{tree or tip}^{{tree}}", environment=who).text


def test_a_check_that_comes_out_otherwise_is_found(stranger: Stranger, town: Town) -> None:
    said = read(stranger.report.read_text()).report
    lying = replace(said.verdicts[0], argv=("false",))
    stranger.report.write_text(signed(replace(said, verdicts=(lying, said.verdicts[1])), own_key(town.home), Masking()))
    found = stranger.verify(str(stranger.report), "--rerun")
    assert 1 == found.code
    assert ("differs", "2/2 then, 0/2 now") == found.verdicts["check false"]


def test_a_command_that_left_no_commit_is_itself_run_again_at_its_base(
    town: Town, repo: Repository, pull: Pull, tmp_path: Path
) -> None:
    town.task("look", ["test", "-e", "topic.txt"])
    town.start()
    town.says(pull, "/run look")
    (run,) = town.until("the run is closed", town.closed)
    stranger = Stranger(tmp_path / "elsewhere", town, repo, run)
    found = stranger.verify(str(stranger.report), "--rerun")
    assert (0, ("holds", "exit 0 then, exit 0 now")) == (found.code, found.verdicts["command test -e topic.txt"]), found
    said = read(stranger.report.read_text()).report
    lying = replace(said, ran=(replace(said.ran[0], argv=("test", "-e", "nothing")),))
    stranger.report.write_text(signed(lying, own_key(town.home), Masking()))
    found = stranger.verify(str(stranger.report), "--rerun")
    assert (1, ("differs", "exit 0 then, exit 1 now")) == (found.code, found.verdicts["command test -e nothing"])


def test_what_holds_no_report_could_not_be_checked_and_says_the_next_step(stranger: Stranger) -> None:
    (stranger.clone / "text").write_text("hello")
    (stranger.clone / "folder").mkdir()
    steps = {
        "nothing": "Give a commit's whole id",
        "folder": "Give a commit's whole id",
        "text": "Name a run's report.json",
        "http://127.0.0.1:1/report.json": "can't be read",
        "http://127.0.0.1:1/local/acme/shop/1#comment-2": "can't be read",
    }
    (stranger.clone / "leadsman.toml").write_text(ELSEWHERE)
    for what, step in steps.items():
        found = stranger.verify(what)
        assert (3, True) == (found.code, step in found.err), f"nothing differs: {what} {found}"
    (stranger.folder / "none").mkdir()
    (stranger.folder / "none" / "leadsman.db").write_text("no store" * 100)
    found = stranger.verify("http://127.0.0.1:1/local/acme/shop/1#comment-2")
    assert (3, True) == (found.code, "It can't be checked now" in found.err), found


def test_a_file_whose_name_looks_like_a_secret_is_no_difference(
    town: Town, repo: Repository, pull: Pull, tmp_path: Path
) -> None:
    script = town.script("names", "#!/bin/sh\necho a > sk-translations-of-the-whole-app.json\n")
    town.task("names", [script])
    town.start()
    town.says(pull, "/run names")
    (run,) = town.until("the run is closed", town.closed)
    stranger = Stranger(tmp_path / "elsewhere", town, repo, run)
    assert ("***.json",) == tuple(change.path for change in read(stranger.report.read_text()).report.changes)
    found = stranger.verify(str(stranger.report))
    assert (0, "holds") == (found.code, found.verdicts["figures"][0])


def test_a_run_that_published_nothing_is_checked_too(town: Town, repo: Repository, pull: Pull, tmp_path: Path) -> None:
    town.task("fails", FIX, '[[task.verify]]\nrun = ["false"]\n')
    town.start()
    town.says(pull, "/run fails")
    (run,) = town.until("the run is closed", town.closed)
    stranger = Stranger(tmp_path / "elsewhere", town, repo, run)
    found = stranger.verify(str(stranger.report))
    assert 3 == found.code, "its commits are nowhere but in the bot's mirror"
    assert {"nothing was published": "holds", "figures": "could not check"} == {
        claim: found.verdicts[claim][0] for claim in ("nothing was published", "figures")
    }
    town.says(pull, "/verify")
    said = town.until("an answer", lambda: next((b for b in town.answers(pull) if "checked again" in b), None))
    assert "| figures | holds | 1 files, +1 -0 |" in said

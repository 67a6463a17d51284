"""Issues that are offered by their label are taken by themselves; who takes one by command has it."""

from __future__ import annotations

import json

from tests.stories.harbour import Harbour
from tests.world import Repository


def test_offered_issues_are_taken_oldest_first_and_one_that_failed_waits_for_a_person(
    harbour: Harbour, docks: Repository
) -> None:
    harbour.task("try", ["sh", "-c", 'grep -q bad "$LEADSMAN_TICKET" && exit 1; echo x > x'])
    harbour.config += '\n[[rule]]\non = "schedule"\ntask = "try"\n'
    bad, good, plain, held = (
        docks.issue(title, author="alice", labels=labels)
        for title, labels in (("bad", ("bot",)), ("good", ("Bot",)), ("plain", ()), ("held", ("bot", "at work")))
    )
    docks.pull(head="topic", files={"x": "y"}, author="alice").label("bot", by="alice")
    harbour.start()
    harbour.note(bad, "claim released: the run failed")
    harbour.note(good, "# REPORT -")
    runs = harbour.until("both are closed", lambda: harbour.closed(2))
    assert [1, 2] == [json.loads((run / "intent.json").read_text())["event"]["subject"]["number"] for run in runs]
    for _ in range(3):
        harbour.ring("scan")
    bad.comment("alice", "Try again, it is good now.")
    harbour.ring("scan")
    harbour.until("it was tried once more", lambda: harbour.closed(3))
    assert 3 == len(harbour.runs())
    assert [] == harbour.notes(plain) + harbour.notes(held)
    assert (["bot"], []) == harbour.shown(bad)
    assert ([], []) == harbour.shown(good)


def test_an_issue_that_a_person_took_by_command_is_offered_no_longer(harbour: Harbour, docks: Repository) -> None:
    harbour.config += '\n[[rule]]\non = "schedule"\ntask = "fix"\n'
    issue = docks.issue("Broken", author="alice")
    harbour.start()
    harbour.says(issue, "/claim")
    harbour.until("alice is told", lambda: any("`alice` has this ticket now" in one for one in harbour.answers(issue)))
    assert (["at work"], ["alice"]) == harbour.shown(issue)
    issue.label("bot", by="alice")
    harbour.ring("scan")
    harbour.says(issue, "/release")
    harbour.until("alice is told", lambda: any("`alice` gave the ticket back" in one for one in harbour.answers(issue)))
    harbour.ring("scan")
    harbour.note(issue, "# REPORT -")
    assert 1 == len(harbour.runs())


def test_a_scan_works_what_is_offered_without_a_server_and_force_gives_a_strangers_claim_back(
    harbour: Harbour, docks: Repository
) -> None:
    harbour.config += '\n[[rule]]\non = "schedule"\ntask = "fix"\n'
    offered, held = (docks.issue("Broken", author="alice", labels=("bot",)) for _ in range(2))
    harbour.another_claims(held, "20260101-000000-aaaaaa")
    done = harbour.leadsman("scan", "--once")
    assert 0 == done.returncode, done.stderr
    assert [("github:acme/shop#1", "fix:", "published")] == [
        (subject, *rest) for subject, _, *rest in map(str.split, done.stdout.splitlines())
    ]
    assert 1 == len(harbour.notes(offered, "# REPORT -"))
    refused = harbour.leadsman("claims", "release", "github:acme/shop#2")
    assert (1, True) == (refused.returncode, "--force" in refused.stderr)
    forced = harbour.leadsman("claims", "release", "github:acme/shop#2", "--force")
    assert 0 == forced.returncode, forced.stderr
    assert "leadsman@elsewhere had it" in forced.stdout
    assert "gave it back by hand" in harbour.notes(held, "claim released")[0]
    assert (["bot"], []) == harbour.shown(held)
    wrong = harbour.leadsman("claims", "release", "gitlab:acme/shop#2", "--force")
    assert (2, True) == (wrong.returncode, "FORGE:OWNER/NAME#NUMBER" in wrong.stderr)

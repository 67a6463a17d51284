"""`/claim` and `/release` on an issue of the forge."""

from __future__ import annotations

from tests.stories.town import Town


def test_a_person_takes_an_issue_and_gives_it_back(town: Town) -> None:
    repo = town.repo()
    issue = repo.issue("Broken", author="alice")
    town.start()
    town.says(issue, "/claim")
    town.until("alice is told", lambda: any("`alice` has this ticket now" in one for one in town.answers(issue)))
    with town.world.lock:
        assert [person.login for person in issue.assignees] == ["alice"]
    town.says(issue, "/release I was wrong")
    town.until("alice is told", lambda: any("gave the ticket back (I was wrong)" in one for one in town.answers(issue)))
    with town.world.lock:
        assert issue.assignees == []


def test_after_a_release_the_run_that_works_the_issue_stops(town: Town) -> None:
    repo = town.repo()
    town.config += "\n[budget]\nper_turn_seconds = 4\nturns = { medium = 100 }\n"
    town.task("wait", ["sleep", "300"])
    issue = repo.issue("Broken", author="alice")
    town.start()
    town.says(issue, "/run wait")
    town.until("it runs", lambda: any("is under way" in one for one in town.answers(issue)))
    town.says(issue, "/claim")
    town.until("it is held", lambda: any("`/release` has it stop" in one for one in town.answers(issue)))
    town.says(issue, "/release")
    town.until(
        "its comment says so", lambda: any("asked to stop after its turn by" in one for one in town.answers(issue))
    )
    town.until("the run is closed", town.closed)
    town.until("its comment says why", lambda: any("alice, who gave the ticket back" in o for o in town.answers(issue)))
    town.assert_nothing_is_left(repo)


def test_a_pull_request_is_no_ticket(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/claim\n/release")
    said = town.settled(pull, "is for issues and tickets")
    assert said.count("is for issues and tickets") == 2

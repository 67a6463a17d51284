"""`.leadsman.toml`: the default branch's counts; a wrong one changes nothing, and is told once."""

from __future__ import annotations

import signal

from tests.stories.town import Town
from tests.world import Issue, Repository

GOOD = '[[task]]\nname = "lint"\nrun = ["true"]\npublish = "none"\n'
WRONG = '[[task]]\nname = "lint"\nrun = "make lint"\n'
SAID = '.leadsman.toml:3: \\[\\[task\\]\\] run: must be a list, not "make lint"'


def asks(town: Town, thread: Issue, text: str, word: str) -> str:
    """Somebody writes `text`; what the bot answers to it, once it holds `word`."""
    before = len(town.answers(thread))
    town.says(thread, text)
    return town.until(
        f"an answer with {word!r}",
        lambda: next((body for body in town.answers(thread)[before:] if word in body), None),
    )


def lint_works(town: Town, thread: Issue) -> str:
    said = asks(town, thread, "/run lint", "**Nothing to publish**")
    town.until("closed", town.closed)
    return said


def breaks(town: Town, repo: Repository, text: str = WRONG) -> str:
    sha = repo.commit({".leadsman.toml": text})
    town.deliver(town.world.told("push"))
    return sha


def test_a_task_that_only_the_pull_requests_own_file_has_is_no_task(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo, files={".leadsman.toml": GOOD})
    town.start()
    assert "There is no task `lint` here." in asks(town, pull, "/run lint", "no task")
    assert town.runs() == []


def test_a_wrong_file_leaves_the_last_good_one_in_force_and_is_told_in_one_comment(town: Town) -> None:
    repo = town.repo(files={".leadsman.toml": GOOD})
    pull = town.pull_of(repo)
    town.start()
    lint_works(town, pull)
    sha = breaks(town, repo)
    first = lint_works(town, pull)
    assert SAID in first
    assert sha in first
    assert "what it said when it was last right still counts" in first
    repo.commit({"other.txt": "x"})  # the file stays as wrong as it was
    assert "is wrong" not in lint_works(town, pull)
    breaks(town, repo, f"# another\n{WRONG}")
    assert "is wrong" in lint_works(town, pull)


def test_the_last_good_file_survives_a_reload_and_a_restart(town: Town) -> None:
    repo = town.repo(files={".leadsman.toml": GOOD})
    pull = town.pull_of(repo)
    town.start()
    lint_works(town, pull)
    breaks(town, repo)
    town.until("the push is worked", lambda: "queued" not in town.states() or None)
    assert town.server is not None
    town.server.send_signal(signal.SIGHUP)
    town.until("reloaded", lambda: "was read anew" in town.log() or None)
    lint_works(town, pull)
    town.kill()
    town.start()
    assert "is wrong" not in lint_works(town, pull)  # told before
    breaks(town, repo, GOOD.replace("lint", "tidy"))
    assert "There is no task `lint` here." in asks(town, pull, "/run lint", "no task")


def test_a_first_file_that_is_wrong_is_told_and_nothing_of_it_counts(town: Town) -> None:
    repo = town.repo(files={".leadsman.toml": WRONG})
    issue = repo.issue("Something", author="alice")
    town.start()
    said = asks(town, issue, "/run lint", "no task")
    assert SAID in said
    assert "nothing of it counts" in said


def test_the_pull_request_that_broke_the_file_hears_of_it_when_it_is_merged(town: Town) -> None:
    repo = town.repo(files={".leadsman.toml": GOOD})
    pull = town.pull_of(repo, files={".leadsman.toml": WRONG})
    harmless = town.pull_of(repo, head="harmless", files={"x": "y"})
    town.start()
    lint_works(town, harmless)
    town.deliver(pull.merge(by="alice"))
    assert SAID in town.until("it is told", lambda: next(iter(town.answers(pull)), None))
    told = len(town.answers(harmless))
    town.deliver(harmless.merge(by="alice"))
    town.until("the merge is worked", lambda: "queued" not in town.states() or None)
    assert told == len(town.answers(harmless))

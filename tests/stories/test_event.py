"""`leadsman event`: a CI step works one event to its end, without a server, and fails where its run did."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.stories.nursery import nursery
from tests.stories.town import Town
from tests.world import Delivery
from webhooks.receiver import SIZE


def event(town: Town, delivery: Delivery | bytes, *options: str) -> tuple[int, str, str]:
    config, file = town.folder / "leadsman.toml", town.folder / "event.json"
    config.write_text(town.config)
    file.write_bytes(delivery if isinstance(delivery, bytes) else delivery.body)
    words = ["--source", "github", "--event", "issue_comment", *options]
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(town.folder / "nobody"),
        "BOT_TOKEN": town.bot.token,
        "HOOK_SECRET": town.world.secret,
        "LEADSMAN_POOL_DIR": str(town.folder / "pool"),
    }
    argv = ["--home", str(town.home), "--config", str(config), "event", str(file), *words]
    return nursery().ran(argv, environ, town.folder, seconds=100)


def test_an_event_is_worked_to_its_end_and_only_once(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    delivery = pull.comment("alice", "/run fix")
    code, out, err = event(town, delivery)
    (run,) = town.runs()
    assert (0, f"{run.name} fix github:acme/shop#1: published\n", "") == (code, out, err)
    assert "**Published**" in town.settled(pull, "**Published**")
    assert list((town.home / "worktrees").iterdir()) == []
    assert not any("claims" in ref for ref in town.refs(repo))
    code, out, err = event(town, delivery, "--json")
    told = json.loads(out)
    assert (0, "", True, False, "") == (code, err, told["again"], told["server"], told["ignored"])
    run_of_it = {"run_id": run.name, "task": "fix", "subject": "github:acme/shop#1", "reason": "published"}
    assert ([run_of_it], [], "") == (told["runs"], told["refused"], told["failed"])
    assert [run] == town.runs()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/run bad", "Not all of it was done; the answer on github:acme/shop#1 says why.\n"),
        ("/run nope", "Not all of it was done; the answer on github:acme/shop#1 says why.\n"),
        ("/help\n/run nope", "Not all of it was done; the answer on github:acme/shop#1 says why.\n"),
        ("/help", ""),
        ("no command", ""),
    ],
)
def test_a_refusal_and_a_failed_run_fail_the_step(town: Town, text: str, said: str) -> None:
    town.task("bad", ["false"])
    pull = town.pull_of(town.repo())
    told = pull.comment("alice", text)
    code, _, err = event(town, told)
    assert (1 if said else 0, said) == (code, err)
    if text == "/run nope":  # a step that is run again does not turn green by that, whatever it calls the event
        code, out, err = event(town, told, "--delivery", "another")
        assert (1, said) == (code, err)
        assert out.startswith("ignored: Each command of the comment was obeyed before")


def test_an_event_that_nobody_could_be_told_of_fails_the_step(town: Town) -> None:
    pull = town.pull_of(town.repo())
    delivery = pull.comment("alice", "/run fix")
    town.world.revoke(town.bot.token)
    code, out, err = event(town, delivery)
    assert (1, "No run was started.\n") == (code, out)
    assert err.startswith("The event could not be worked: ")


def test_with_a_server_the_event_is_handed_over(town: Town) -> None:
    pull = town.pull_of(town.repo())
    town.start()
    assert (0, "A server holds this home; it works the event.\n", "") == event(town, pull.comment("alice", "/help"))
    town.settled(pull, "What `alice` may do here")


@pytest.mark.parametrize(
    ("body", "options", "said"),
    [
        (b"[1]", (), "is no issue_comment of github: it holds no JSON object. Give the payload as it was sent.\n"),
        (b'{"action": "created"}', (), "repository is missing. Give the payload as it was sent.\n"),
        (b"{}", ("--event", ""), "--event takes one word of up to 200 letters, as the forge sends it.\n"),
        (b"{}", ("--delivery", "a b"), "--delivery takes one word of up to 200 letters, as the forge sends it.\n"),
        pytest.param(b" " * (SIZE + 1), (), f"is larger than {SIZE} bytes, which no forge delivers.\n", id="too large"),
        (
            b"{}",
            ("--source", "gitbub"),
            "There is no [forges.gitbub] and no [trackers.gitbub] in the configuration. Known: github.\n",
        ),
    ],
)
def test_what_is_no_event_is_refused_with_2(town: Town, body: bytes, options: tuple[str, ...], said: str) -> None:
    town.repo()
    code, out, err = event(town, body, *options)
    assert (2, "") == (code, out)
    assert err.endswith(said)
    assert not Path(town.home / "leadsman.db").exists()


def test_what_may_not_end_within_the_cycle_stays_waiting_and_the_next_step_works_it(town: Town) -> None:
    town.config += "\n[budget]\nrun_cap_seconds = 900\njob_cap_seconds = 1800\n"
    repo = town.repo()
    pull = town.pull_of(repo)
    code, out, _ = event(town, pull.comment("alice", "/run fix"), "--cycle-seconds", "3600")
    assert code == 1
    assert "insufficient_cycle_time: " in out
    assert "4 x 900 s + 30 s = 3630 s pass." in out
    assert town.run_branches(repo) == []
    code, out, _ = event(town, pull.comment("alice", "/help"), "--cycle-seconds", "3660")
    assert 0 == code
    assert len(town.run_branches(repo)) == 1
    assert any("**Published**" in said for said in town.answers(pull))

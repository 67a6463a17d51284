"""A delivery that never came is sent again; a repository without a webhook is looked at; nothing is obeyed twice."""

from __future__ import annotations

import json
import random
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.stories.test_event import event
from tests.stories.town import FIX, Town
from tests.world import Delivery, Repository, World


def free_port() -> int:
    """One that nobody is given by chance while no server of ours listens there: below those the kernel hands out."""
    lowest, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    while True:
        port = random.randrange(5000, int(lowest))
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@pytest.fixture
def town(tmp_path: Path, world: World) -> Iterator[Town]:
    """One that looks each second at what has no webhook, and whose door is where it was after a restart."""
    port = free_port()
    town = Town(tmp_path, world, poll_seconds=1, port=port)
    town.address = f"http://127.0.0.1:{port}"
    town.task("fix", FIX)
    yield town
    town.close()


def hooked(town: Town, repo: Repository) -> None:
    """Its webhook points to the server's door, and the bot may see it."""
    repo.allow("leadsman-bot", "admin").hook(f"{town.address}/webhooks/github", secret=town.world.secret)


def said(town: Town, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in town.journal().splitlines()]
    return [line for line in lines if line["event"] == event]


def rows(town: Town) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(town.home / "leadsman.db")) as connection:
        return list(connection.execute("select event, state, note from deliveries order by id"))


def looked(town: Town, times: int = 1) -> None:
    """Waits until the server has looked at its repositories as often again, whole."""
    begun = len(town.world.asked("GET /repos/*/issues"))
    town.until("it looks", lambda: len(town.world.asked("GET /repos/*/issues")) >= begun + times + 1)


# ── deliveries that failed ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_failed_while_the_server_was_down_is_obeyed_once_it_is_up(town: Town) -> None:
    repo = town.repo()
    hooked(town, repo)
    pull = town.pull_of(repo)
    missed = pull.comment("alice", "/run fix")
    assert [502] == [attempt.code for attempt in town.world.send(missed)]
    town.start()
    town.settled(pull, "**Published**")
    assert len(town.runs()) == 1
    assert [missed.id] == [line["delivery"] for line in said(town, "sent_again")]
    assert said(town, "webhooks_unknown") == []


def test_what_arrived_is_not_sent_again_and_neither_is_what_asks_nothing(town: Town) -> None:
    repo = town.repo()
    hooked(town, repo)
    pull = town.pull_of(repo)
    lost = pull.comment("alice", "hello")
    town.world.send(lost)
    town.world.send(deleted := pull.delete(pull.comment("bob", "x")))
    assert deleted.event == "issue_comment"
    town.start()
    town.until("both are sent again", lambda: len(said(town, "sent_again")) == 2)
    arrived = pull.comment("alice", "/help")
    assert [202] == [attempt.code for attempt in town.world.send(arrived)]
    town.until("an answer", lambda: town.answers(pull) or None)
    town.stop()
    town.start()
    town.until("it has asked again", lambda: len(town.world.asked("GET /repos/*/hooks/*/deliveries")) >= 2)
    asked = town.world.asked("POST /repos/*/attempts")
    assert len(asked) == 2


def test_an_app_has_its_own_deliveries_sent_again(tmp_path: Path, world: World) -> None:
    port = free_port()
    town = Town(tmp_path, world, port=port)
    town.task("fix", FIX)
    app = world.app("leadsman")
    (tmp_path / "key.pem").write_text(app.private_key)
    (tmp_path / "leadsman.toml").touch(0o600)
    way_in = f'app_id = {app.id}\nprivate_key_file = "key.pem"'
    town.config = town.config.replace('token_env = "BOT_TOKEN"', way_in)
    repo = town.repo()
    world.install(app, repo)
    world.hook(app, f"http://127.0.0.1:{port}/webhooks/github", secret=world.secret)
    town.bot = app.bot
    pull = town.pull_of(repo)
    assert [502] == [attempt.code for attempt in world.send(pull.comment("alice", "/run fix"))]
    try:
        town.start()
        town.settled(pull, "**Published**")
    finally:
        town.close()
    assert len(town.runs()) == 1
    assert len(world.asked("POST /app/hook/deliveries/*/attempts")) == 1


def test_without_the_right_to_see_webhooks_that_is_said_once_and_all_else_works(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    for _ in range(2):
        town.start()
        town.until("it has looked for webhooks", lambda: said(town, "webhooks_unknown") or None)
        town.says(pull, "/help")
        town.until("an answer", lambda: town.answers(pull) or None)
        town.stop()
    (line,) = said(town, "webhooks_unknown")
    assert line["repo"] == "github:acme/shop"
    assert line["lost"] == "deliveries that fail while the server is away are not sent again"
    assert town.world.asked("POST /repos/*/attempts") == []


# ── repositories without a webhook ───────────────────────────────────────────────────────────────────────────────────


def test_a_comment_in_a_repository_without_a_webhook_is_found_and_obeyed(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    told = pull.comment("alice", "/run fix")
    town.settled(pull, "**Published**")
    town.until("rocket", lambda: "rocket" in town.reactions(told))
    looked(town, 2)
    assert len(town.runs()) == 1
    town.assert_nothing_is_left(repo)


def test_a_comment_that_is_delivered_and_found_is_obeyed_once(town: Town) -> None:
    repo = town.repo()
    found_first, delivered_first = town.pull_of(repo), town.pull_of(repo, head="other", files={"o.txt": "x\n"})
    town.start()
    late = found_first.comment("alice", "/run fix")
    town.settled(found_first, "**Published**")
    town.says(delivered_first, "/run fix")
    assert town.deliver(late).status == 202
    town.settled(delivered_first, "**Published**")
    town.until("all was decided", lambda: "queued" not in town.states())
    looked(town, 2)
    town.until("all was decided", lambda: "queued" not in town.states())
    assert len(town.runs()) == 2
    assert [1, 1] == [len(town.answers(pull)) for pull in (found_first, delivered_first)]


def test_what_was_said_while_the_server_was_down_is_found_and_what_was_said_before_it_was_there_is_not(
    town: Town,
) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    now = town.world.clock
    old = now()
    town.world.clock = lambda: old.replace(year=old.year - 1)
    pull.comment("alice", "/help")
    town.world.clock = now
    town.start()
    looked(town)
    town.stop()
    pull.comment("alice", "/run fix")
    town.start()
    assert "Published" in town.settled(pull, "**Published**")
    assert len(town.answers(pull)) == 1


def test_an_edited_comment_that_was_found_by_asking_counts_for_nothing(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    first = pull.comment("alice", "/help")
    town.until("help", lambda: town.answers(pull) or None)
    clock = town.world.clock
    town.world.clock = lambda: clock() + timedelta(seconds=2)  # times are whole seconds
    pull.edit(first, "/help\n/run fix", by="mallory")
    town.until(
        "the edit is kept", lambda: [row for row in rows(town) if row[1] == "ignored" and "edited" in row[2]] or None
    )
    looked(town, 2)
    assert town.runs() == []
    assert len(town.answers(pull)) == 1
    town.world.clock = lambda: clock() + timedelta(seconds=4)
    told = pull.edit(first, "/help\n/run fix # mine")
    assert town.deliver(told).status == 202  # a webhook tells who edited it
    town.until("a run", lambda: town.closed(1))


def test_a_push_a_label_an_issue_and_an_end_are_found(town: Town) -> None:
    town.task("mark", ["true"], '\n[[rule]]\non = "issues.labeled"\nif = { label = "bot" }\ntask = "mark"\n')
    town.config += '\n[[rule]]\non = "pull_request.pushed"\ntask = "fix"\n'
    town.config += '\n[[rule]]\non = "issues.opened"\ntask = "mark"\n'
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    looked(town)
    pull.push({"topic.txt": "y\n"})
    town.until("a run for the push", lambda: town.closed(1))
    issue = repo.issue("Broken", author="alice")
    town.until("a run for the issue", lambda: town.closed(2))
    labeled = issue.label("bot", by="alice")
    town.until("a run for the label", lambda: town.closed(3))
    assert town.deliver(labeled).status == 202  # there is a webhook that the bot may not see
    assert town.deliver(issue.opened).status == 202
    pull.close(by="alice")
    town.until("all was decided", lambda: "queued" not in town.states())
    town.until("its end", lambda: [row for row in rows(town) if row[0] == "pull.closed" and row[1] == "done"] or None)
    looked(town, 2)
    assert len(town.runs()) == 3
    events = {row[0] for row in rows(town)}
    found = {"pull.opened", "pull.pushed", "issue.opened", "issue.labeled", "pull.closed"}
    assert found | {"issues"} == events


def test_a_repository_with_a_webhook_is_not_looked_at(town: Town) -> None:
    repo = town.repo()
    hooked(town, repo)
    pull = town.pull_of(repo)
    town.start()
    assert [202] == [attempt.code for attempt in town.world.send(pull.comment("alice", "/run fix"))]
    town.settled(pull, "**Published**")
    assert town.world.asked("GET /repos/*/issues/comments") == []


def test_a_ci_step_works_its_own_event_and_looks_for_no_other(town: Town) -> None:
    repo = town.repo()
    pull, other = town.pull_of(repo), town.pull_of(repo, head="other", files={"o.txt": "x\n"})
    other.comment("alice", "/run fix")
    code, out, err = event(town, pull.comment("alice", "/run fix"))
    assert (0, "", 1) == (code, err, len(town.runs())), out
    assert [] == town.world.asked("GET /repos/*/hooks") + town.world.asked("GET /repos/*/issues/comments")


def test_deliveries_are_forgotten_after_a_month_and_no_earlier(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    old: Delivery = pull.comment("alice", "nothing old")
    young: Delivery = pull.comment("alice", "nothing new")
    for told in (old, young):
        assert town.deliver(told).status == 202
    town.until("all was decided", lambda: "queued" not in town.states())
    town.stop()
    with closing(sqlite3.connect(town.home / "leadsman.db")) as connection, connection:
        for told, days in ((old, 30.1), (young, 29.9)):
            came = time.time() - days * 86400
            connection.execute("update deliveries set received_at = ? where delivery = ?", (came, told.id))
    town.start()

    def left() -> set[str]:
        with closing(sqlite3.connect(town.home / "leadsman.db")) as connection:
            return {found for (found,) in connection.execute("select delivery from deliveries")}

    town.until("the old one is gone", lambda: old.id not in left())
    assert young.id in left()

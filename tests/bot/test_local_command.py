"""The local forge from a terminal: real commands beside a real server, and without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.cli import main
from bot.store import StoreSettings
from bot.store.engine import open_store
from tests.bot.console import SCRIPT, Ended
from tests.bot.local_bench import Clone
from tests.stories.nursery import nursery
from webhooks.inbox import Entry, Inbox

CONFIG = """\
[server]
listen = "127.0.0.1:0"

[forges.local]
kind = "local"
users = { alice = "write", rita = "read" }

[[project]]
name = "shop"
forge = "local"
repository = "acme/shop"

[[task]]
name = "stamp"
run = ["sh", "-c", "echo stamped > stamp; echo made a stamp"]

[[task]]
name = "sleep"
run = ["sleep", "600"]

[fleet]
max_load_per_cpu = 1000.0
"""


class Newcomer:
    """A folder with a configuration, in which somebody types commands."""

    def __init__(self, folder: Path, config: str = CONFIG) -> None:
        self.folder = folder
        self.server: subprocess.Popen[str] | None = None
        (folder / "leadsman.toml").write_text(config)

    def types(self, *argv: str, code: int = 0) -> Ended:
        places = {"LEADSMAN_HOME": str(self.folder / "home")}
        ended = nursery().ran(argv, {**os.environ, **places}, self.folder)
        assert ended.code == code, ended
        return ended

    def reads(self, *argv: str, code: int = 0) -> Any:
        """What the command answers to a program."""
        return json.loads(self.types(*argv, "--json", code=code).out)

    def serves(self) -> str:
        """Starts a server; returns its address."""
        places = {"LEADSMAN_HOME": str(self.folder / "home"), "LEADSMAN_POOL_DIR": str(self.folder / "pool")}
        with (self.folder / "server.log").open("a") as log:
            self.server = subprocess.Popen(
                [SCRIPT, "serve"],
                cwd=self.folder,
                env={**os.environ, **places},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.server.stdout is not None
        line = self.server.stdout.readline()
        assert line.startswith("leadsman listens at "), line
        return line.removeprefix("leadsman listens at ").split(",")[0]

    def sees(self, what: str, look: Callable[[], object]) -> None:
        """Looks until it is so."""
        end = time.monotonic() + 90
        while not look():
            assert time.monotonic() < end, f"not seen within 90 s: {what}"
            time.sleep(0.05)

    def sees_closed(self) -> None:
        """Waits until nothing of the one run is left to do: a test leaves no process behind."""
        self.sees("the run is closed", lambda: list((self.folder / "home" / "runs").glob("*/closed.json")))

    def authors(self, subject: str) -> list[str]:
        """Who wrote the comments."""
        return [one["author"] for one in self.reads("local", "show", subject)["comments"]]

    def ends(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.communicate(timeout=60)
            self.server = None

    def clone(self) -> Clone:
        place = self.folder / "repositories" / "acme" / "shop.git"
        subprocess.run(("git", "clone", "--quiet", place, self.folder / "clone"), check=True, capture_output=True)
        return Clone(self.folder / "clone")

    def deliveries(self) -> tuple[Entry, ...]:
        store = open_store(StoreSettings(), self.folder / "home")
        try:
            return Inbox(store, lambda: 0.0).listing()
        finally:
            store.close()


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    made = Newcomer(tmp_path)
    yield made
    made.ends()


def test_a_newcomer_gets_from_nothing_to_a_published_branch(newcomer: Newcomer) -> None:
    address = newcomer.serves()
    assert "git clone" in newcomer.types("local", "init-repo", "acme/shop").out
    clone = newcomer.clone()
    first = clone.commit("topic", "a.txt", "a")
    opened = newcomer.reads("local", "pull", "acme/shop", "topic", "--title", "Adds a", "--as", "alice")
    assert opened == {
        "subject": "acme/shop#1",
        "kind": "pull",
        "url": f"{address}/local/acme/shop/1",
        "told": "server",
    }

    answer = newcomer.types("comment", "acme/shop#1", "/run stamp", "--as", "alice", "--wait")
    assert answer.out.startswith("**Published** `stamp`: ")
    branches = clone.git("ls-remote", "origin", "refs/heads/leadsman/run/*").split()
    assert clone.git("fetch", "--quiet", "origin", branches[1]) == ""
    assert clone.git("show", "FETCH_HEAD:stamp") == "stamped"
    assert clone.git("rev-parse", "FETCH_HEAD~1") == first

    shown = newcomer.reads("local", "show", "acme/shop#1")
    assert (shown["title"], shown["state"], shown["head_sha"]) == ("Adds a", "open", first)
    assert [(said["author"], said["reactions"]) for said in shown["comments"]] == [
        ("alice", ["eyes", "rocket"]),
        ("leadsman[bot]", []),
    ]
    page = newcomer.types("local", "show", "acme/shop#1").out
    assert "alice" in page
    assert "<!--" not in page
    with urllib.request.urlopen(shown["url"], timeout=30) as found:
        assert "<strong>Published</strong>" in found.read().decode()

    # A push is told by the repository's hook, to the branch and to the pull request; the bot's own push is not.
    second = clone.commit("topic", "b.txt", "b")
    told = [(entry.event, entry.state) for entry in newcomer.deliveries() if "push" in entry.event]
    assert sorted(event for event, _ in told) == ["pull.pushed", "push", "push"]
    assert newcomer.reads("local", "show", "acme/shop#1")["head_sha"] == second
    clone.git("push", "--quiet", "origin", "topic:main")
    assert newcomer.reads("local", "show", "acme/shop#1")["state"] == "merged"
    assert "pull.closed" in [entry.event for entry in newcomer.deliveries()]


def test_the_exit_code_tells_how_it_went(newcomer: Newcomer) -> None:
    newcomer.serves()
    newcomer.types("local", "init-repo", "acme/shop")
    newcomer.types("local", "issue", "acme/shop", "Slow tests", "--as", "rita")
    refused = newcomer.types("comment", "acme/shop#1", "/run stamp", "--as", "rita", "--wait", code=1)
    assert "`/run` needs **write** permission" in refused.out
    quiet = newcomer.types("comment", "acme/shop#1", "It is slow.", "--as", "rita", "--wait")
    assert quiet.out == "The bot has nothing to say to this.\n"
    late = newcomer.types("comment", "acme/shop#1", "/run sleep", "--as", "alice", "--wait", "--timeout", "0", code=124)
    assert late.err.endswith(
        "No answer to the end within 0 s. `leadsman local show acme/shop#1` shows how it goes on.\n"
    )
    ended = newcomer.reads("comment", "acme/shop#1", "/cancel", "--as", "alice", "--wait")
    assert ended["well"] is True
    newcomer.sees_closed()


def test_what_is_said_without_a_server_is_answered_by_the_next_one(newcomer: Newcomer) -> None:
    newcomer.types("local", "init-repo", "acme/shop")
    newcomer.types("local", "issue", "acme/shop", "Slow tests", "--as", "rita")
    said = newcomer.types("comment", "acme/shop#1", "/help", "--as", "rita")
    assert "No server runs here: it is kept for the next `leadsman serve`." in said.out
    assert [(entry.event, entry.state) for entry in newcomer.deliveries()] == [
        ("comment.created", "queued"),
        ("issue.opened", "queued"),
    ]
    waits = newcomer.types("comment", "acme/shop#1", "/help", "--as", "rita", "--wait", code=1)
    assert "Start it to get an answer." in waits.err

    newcomer.serves()
    newcomer.types("comment", "acme/shop#1", "/tasks", "--as", "rita", "--wait")
    # One repository is worked in order; but each answer is posted for itself.
    newcomer.sees("all are worked", lambda: [entry.state for entry in newcomer.deliveries()] == ["done"] * 4)
    newcomer.sees("three answers", lambda: newcomer.authors("acme/shop#1").count("leadsman[bot]") == 3)


def test_what_a_server_does_not_take_is_put_into_its_queue(newcomer: Newcomer) -> None:
    newcomer.serves()
    newcomer.types("local", "init-repo", "acme/shop")
    newcomer.types("local", "issue", "acme/shop", "Slow tests", "--as", "rita")
    (newcomer.folder / "home" / "local.secret").write_text("another secret than the server's" * 2)
    said = newcomer.types("comment", "acme/shop#1", "/help", "--as", "rita")
    assert "did not take it (401 Unauthorized): it is in its queue." in said.out
    answer = newcomer.types("comment", "acme/shop#1", "/help", "--as", "rita", "--wait")
    assert "What `rita` may do here, with **read** permission:" in answer.out


def test_labels_edits_and_closing_are_told_once(newcomer: Newcomer) -> None:
    newcomer.types("local", "init-repo", "acme/shop")
    newcomer.types("local", "issue", "acme/shop", "Slow tests", "--as", "rita")
    newcomer.types("comment", "acme/shop#1", "hello", "--as", "rita")
    for argv, said in (
        (("label", "acme/shop#1", "bot"), "bot is on acme/shop#1."),
        (("label", "acme/shop#1", "bot"), "bot was already on acme/shop#1."),
        (("label", "acme/shop#1", "bot", "--remove"), "bot was taken off acme/shop#1."),
        (("assign", "acme/shop#1", "bob"), "acme/shop#1 is assigned to bob."),
        (("assign", "acme/shop#1", "ann"), "acme/shop#1 is assigned to ann, bob."),
        (("assign", "acme/shop#1", "bob", "--remove"), "acme/shop#1 is assigned to ann."),
        (("assign", "acme/shop#1", "bob", "--remove"), "acme/shop#1 is assigned to ann."),
        (("edit", "acme/shop#1", "1", "hello again"), "Comment 1 of acme/shop#1 was edited."),
        (("close", "acme/shop#1"), "acme/shop#1 is closed."),
        (("close", "acme/shop#1"), "acme/shop#1 was already closed."),
    ):
        assert newcomer.types("local", *argv, "--as", "rita").out.startswith(said)
    assert [entry.event for entry in reversed(newcomer.deliveries())] == [
        "issue.opened", "comment.created", "issue.labeled", "issue.updated",
        *["issue.updated"] * 3, "comment.edited", "issue.closed",
    ]  # fmt: skip
    shown = newcomer.reads("local", "show", "acme/shop#1")
    assert (shown["state"], shown["labels"], shown["assignees"]) == ("closed", [], ["ann"])
    assert [one["body"] for one in shown["comments"]] == ["hello again"]
    assert newcomer.reads("local", "list") == [{"forge": "local", "repository": "acme/shop"}]
    assert [one["subject"] for one in newcomer.reads("local", "list", "acme/shop")] == ["acme/shop#1"]


def test_what_a_terminal_would_obey_is_shown_written_out(newcomer: Newcomer) -> None:
    newcomer.types("local", "init-repo", "acme/shop")
    newcomer.types("local", "issue", "acme/shop", "a\x1b]0;evil\x07b", "--as", "rita")
    newcomer.types("comment", "acme/shop#1", "\x1b[2Jgone\u202e", "--as", "rita")
    for out in (newcomer.types("local", "show", "acme/shop#1").out, newcomer.types("local", "list", "acme/shop").out):
        assert not {"\x1b", "\x07", "\u202e"} & set(out)


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("comment", "acme/shop", "x"), 2, "'acme/shop' is no pull request or issue. One is named like acme/shop#7."),
        (("comment", "acme/shop#1", "x", "--timeout=nan"), 2, "--timeout takes a number of seconds."),
        (("comment", "acme/shop#1", "x"), 1, "There is no #1 in acme/shop. `leadsman local list acme/shop` shows"),
        (("comment", "acme/none#1", "x"), 1, "`leadsman local init-repo acme/none` makes one."),
        (("comment", "../x#1", "x"), 2, "'../x' is no repository. A repository is named like acme/shop."),
        (("comment", "github:acme/shop#1", "x"), 2, "There is no local forge github. There is: local."),
        (("local", "init-repo", "acme/shop"), 1, "acme/shop is there already"),
        (("local", "init-repo", "../../x"), 2, "is no repository"),
        (("local", "pull", "acme/shop", "none"), 1, "There is no branch none in acme/shop. Push it to "),
        (("local", "issue", "acme/shop", " "), 1, "A title or label needs 1 to 256 characters"),
        (("local", "issue", "acme/shop", "t", "--as", "leadsman[bot]"), 1, "can't be a person's login here"),
        (("local", "list", "acme/none"), 1, "There is no repository acme/none"),
        (("local", "nonsense"), 2, "No such command 'nonsense'"),
    ],
)
def test_what_can_not_be_done_is_said_with_the_next_step(
    *,
    shop: Newcomer,
    argv: tuple[str, ...],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(shop.folder)
    monkeypatch.setenv("LEADSMAN_HOME", str(shop.folder / "home"))
    monkeypatch.setattr(sys, "argv", ["leadsman", *argv])
    assert main() == code
    assert said in capsys.readouterr().err


def test_a_run_pushes_nothing_to_a_local_repository_past_hooks_or_not(tmp_path: Path) -> None:
    url = tmp_path / "repositories" / "acme" / "shop.git"
    tries = (
        f"env -u GIT_CONFIG_COUNT git push --no-verify {url} HEAD:main; env -i PATH=$PATH git push {url} HEAD:main; "
        f"git push --force {url} HEAD:refs/heads/other; true"
    )
    task = f"""
[[task]]
name = "evil"
run = ["sh", "-c", "echo x > x; git add x; git commit -qm x; {tries}"]
[[task.verify]]
run = ["sh", "-c", "git push --no-verify {url} HEAD:refs/heads/other; git push origin HEAD:refs/heads/checked; {tries}"]
"""
    newcomer = Newcomer(tmp_path, CONFIG + task)
    try:
        newcomer.serves()
        newcomer.types("local", "init-repo", "acme/shop")
        clone = newcomer.clone()
        clone.commit("topic", "a.txt", "a")
        newcomer.types("local", "pull", "acme/shop", "topic", "--title", "Adds a", "--as", "alice")
        looked_at = ("refs/heads/main", "refs/heads/other", "refs/heads/checked")
        before = clone.git("ls-remote", "origin", *looked_at)
        answer = newcomer.types("comment", "acme/shop#1", "/run evil", "--as", "alice", "--wait")
        assert before == clone.git("ls-remote", "origin", *looked_at)
        assert "push of HEAD to refs/heads/other" in answer.out
        assert "push of HEAD to refs/heads/checked" in answer.out
        (log,) = (tmp_path / "home" / "runs").glob("*/worker.log")
        assert "Nothing can be pushed from inside a run." in log.read_text()
    finally:
        newcomer.ends()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    """A newcomer who has made acme/shop, and nothing in it yet."""
    made = Newcomer(tmp_path_factory.mktemp("shop"))
    made.types("local", "init-repo", "acme/shop")
    return made


def test_without_a_local_forge_it_says_what_to_write(tmp_path: Path) -> None:
    said = Newcomer(tmp_path, "").types("local", "list", code=2).err
    assert 'has no local forge. Add one:\n\n[forges.local]\nkind = "local"' in said


def test_a_repository_without_a_project_is_said_to_be_without_answers(newcomer: Newcomer) -> None:
    said = newcomer.types("local", "init-repo", "acme/other").out
    assert "The bot does not answer in acme/other yet" in said
    assert '[[project]]\nname = "other"\nforge = "local"\nrepository = "acme/other"' in said


def test_with_two_local_forges_the_one_that_has_the_repository_is_meant(tmp_path: Path) -> None:
    both = Newcomer(tmp_path, '[forges.one]\nkind = "local"\nroot = "1"\n[forges.two]\nkind = "local"\nroot = "2"\n')
    assert "Which forge? one:acme/shop or two:acme/shop." in both.types("local", "init-repo", "acme/shop", code=2).err
    assert both.reads("local", "init-repo", "two:acme/shop")["path"] == str(tmp_path / "2" / "acme" / "shop.git")
    both.types("local", "issue", "acme/shop", "t", "--as", "rita")
    both.types("local", "init-repo", "one:acme/shop")
    assert "Which forge?" in both.types("local", "show", "acme/shop#1", code=2).err
    assert both.reads("local", "show", "two:acme/shop#1")["title"] == "t"

"""The local forge: what the bot reads from it, what people do on it, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from bot.errors import Gone, Unavailable, UserError
from bot.forges import Forge
from bot.forges.local import Settings, account, connect, webhook_secrets
from bot.model import (
    Actor,
    BranchRef,
    Closed,
    Commented,
    IssueRef,
    Labeled,
    Opened,
    Permission,
    Pushed,
    Repo,
    Sha,
    Updated,
)
from bot.secret import Secret
from bot.store import StoreSettings
from bot.store.engine import Store, open_store
from tests.bot.local_bench import REPO, START, Bench, around, bench
from webhooks.sources import local as source


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Bench]:
    made = bench(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store in a folder of its own."""
    opened = open_store(StoreSettings(), tmp_path_factory.mktemp("store"))
    yield opened
    opened.close()


def test_it_is_a_forge(here: Bench) -> None:
    forge: Forge = here.forge
    assert (forge.name, forge.kind) == ("local", "local")
    assert forge.me() == Actor("leadsman[bot]", "leadsman[bot]", is_bot=True)


def test_a_new_repository_can_be_cloned_and_worked_on(here: Bench) -> None:
    clone = here.clone()
    facts = here.forge.repository(here.repo)
    assert (clone.path / "README.md").read_text() == "# shop\n"
    assert facts.default_branch == "main"
    assert facts.web_url == "http://127.0.0.1:8780/local/acme/shop"
    assert here.forge.branch_sha(here.repo, "main") == clone.git("rev-parse", "HEAD")
    assert here.forge.git(here.repo).token is None


def test_a_repository_can_be_made_from_one_that_exists(here: Bench, tmp_path: Path) -> None:
    clone = here.clone()
    tip = clone.commit("trunk", "a.txt", "a")
    clone.git("tag", "v1", tip)
    clone.git("switch", "--quiet", "trunk")
    made = here.people.make_repository("acme/copy", source=clone.path, author="alice")
    copy = Repo("local", "acme/copy")
    assert here.forge.repository(copy).default_branch == "trunk"
    assert here.forge.branch_sha(copy, "trunk") == tip
    assert (
        subprocess.run(
            ("git", "--git-dir", made, "rev-parse", "v1"), check=True, capture_output=True, text=True
        ).stdout.strip()
        == tip
    )


def test_a_repository_that_exists_is_not_made_again(here: Bench) -> None:
    before = here.forge.branch_sha(here.repo, "main")
    with pytest.raises(UserError, match=r"acme/shop is there already: .*acme/shop\.git\."):
        here.people.make_repository(REPO, source=None, author="alice")
    assert here.forge.branch_sha(here.repo, "main") == before
    assert [path.name for path in (here.folder / "repositories" / "acme").iterdir()] == ["shop.git"]


def test_a_source_that_is_no_repository_leaves_nothing_behind(here: Bench, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(UserError, match="can't be read as a git repository"):
        here.people.make_repository("acme/copy", source=tmp_path / "plain", author="alice")
    assert [path.name for path in (here.folder / "repositories" / "acme").iterdir()] == ["shop.git"]


HOSTILE_NAMES = [
    "",
    "shop",
    "acme/",
    "/shop",
    "/etc/passwd",
    "../x",
    "acme/..",
    "acme/../shop",
    "acme/shop/more",
    "-x/shop",
    "acme/-x",
    ".hidden/shop",
    "acme/shop.git",
    "acme/shop\n",
    "acme/sh op",
    "acme/$(id)",
    "acme/shop\0",
    "\u00e4cme/shop",
    "a" * 200 + "/shop",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_name_that_could_lead_elsewhere_is_refused(here: Bench, name: str) -> None:
    with pytest.raises(Gone):
        here.forge.repository(Repo("local", name))
    with pytest.raises(Gone):
        here.forge.git(Repo("local", name))
    with pytest.raises(UserError):
        here.people.make_repository(name, source=None, author="alice")


@pytest.mark.parametrize("link", ["acme/link.git", "other"])
def test_a_link_out_of_the_root_is_refused(here: Bench, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    subprocess.run(("git", "init", "--quiet", "--bare", outside / "shop.git"), check=True)
    target = outside / "shop.git" if link.endswith(".git") else outside
    (here.folder / "repositories" / link).symlink_to(target)
    with pytest.raises(Gone):
        here.forge.git(Repo("local", "acme/link" if link.endswith(".git") else "other/shop"))
    assert here.forge.bares.names() == [REPO]


def test_a_root_that_is_itself_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "repositories").symlink_to(tmp_path / "disk")
    made = bench(tmp_path)
    assert made.forge.bares.names() == [REPO]
    made.store.close()


def test_a_repository_of_another_forge_is_gone(here: Bench) -> None:
    with pytest.raises(Gone, match="github:acme/shop is not on the forge local"):
        here.forge.repository(Repo("github", REPO))


def test_a_pull_request_shows_its_branch_as_it_is_now(here: Bench) -> None:
    clone = here.clone()
    first = clone.commit("topic", "a.txt", "a")
    event = here.people.open_pull(REPO, head="topic", base=None, title="Adds a", author="alice").event
    assert (event.subject, event.what, event.head_sha) == (here.pull(1), Opened("Adds a"), first)

    pull = here.forge.pull(here.pull(1))
    assert (pull.title, pull.author.login, pull.head_ref, pull.base_ref) == ("Adds a", "alice", "topic", "main")
    assert (pull.open, pull.merged, pull.is_fork, pull.head_sha) == (True, False, False, first)

    second = clone.commit("topic", "b.txt", "b")
    moved = here.forge.pull(here.pull(1))
    assert moved.head_sha == second
    assert moved.updated_at > pull.updated_at
    assert clone.git("ls-remote", "origin", "refs/pull/1/head").split() == [second, "refs/pull/1/head"]
    assert here.forge.changed_files(here.pull(1)) == ("a.txt", "b.txt")


def test_what_main_gained_meanwhile_is_no_change_of_the_pull_request(here: Bench) -> None:
    clone = here.clone()
    clone.commit("topic", "a.txt", "a")
    here.people.open_pull(REPO, head="topic", base="main", title="Adds a", author="alice")
    clone.commit("main", "other.txt", "o")
    assert here.forge.changed_files(here.pull(1)) == ("a.txt",)


def test_what_changed_between_two_commits_is_told_as_long_as_both_are_here(here: Bench) -> None:
    before = here.forge.branch_sha(here.repo, "main")
    after = here.clone().commit("main", "a.txt", "a")
    assert here.forge.changed_between(here.repo, before, after) == ("a.txt",)
    assert here.forge.changed_between(here.repo, before, Sha("0" * 39 + "1")) is None


def test_file_names_of_any_bytes_are_listed(here: Bench) -> None:
    clone = here.clone()
    (Path(os.fsdecode(os.fsencode(clone.path) + b"/caf\xe9"))).write_text("x")
    clone.commit("topic", 'd/"q"\n$(id)', "a")
    here.people.open_pull(REPO, head="topic", base="main", title="t", author="alice")
    assert set(here.forge.changed_files(here.pull(1))) == {'d/"q"\n$(id)', "caf\\xe9"}


def test_a_deleted_branch_leaves_the_last_head(here: Bench) -> None:
    clone = here.clone()
    tip = clone.commit("topic", "a.txt", "a")
    here.people.open_pull(REPO, head="topic", base="main", title="t", author="alice")
    clone.git("push", "--quiet", "origin", ":refs/heads/topic")
    pull = here.forge.pull(here.pull(1))
    assert (pull.head_sha, pull.open) == (tip, True)


def test_a_closed_pull_request_keeps_the_head_it_had(here: Bench) -> None:
    clone = here.clone()
    tip = clone.commit("topic", "a.txt", "a")
    here.people.open_pull(REPO, head="topic", base="main", title="t", author="alice")
    event = here.people.close(REPO, 1, author="alice")
    assert event is not None
    assert (event.what, event.head_sha) == (Closed(merged=False), tip)
    assert here.people.close(REPO, 1, author="alice") is None
    clone.commit("topic", "b.txt", "b")
    pull = here.forge.pull(here.pull(1))
    assert (pull.open, pull.merged, pull.head_sha) == (False, False, tip)


def test_a_push_of_the_head_to_the_base_merges_the_pull_request(here: Bench) -> None:
    clone = here.clone()
    tip = clone.commit("topic", "a.txt", "a")
    here.people.open_pull(REPO, head="topic", base="main", title="t", author="alice")
    before = here.forge.branch_sha(here.repo, "main")
    clone.git("push", "--quiet", "origin", "topic:main")
    branch, closed = here.people.pushed(REPO, "refs/heads/main", before, tip, author="alice")
    assert (branch.subject, branch.what) == (BranchRef(here.repo, "refs/heads/main"), Pushed(before, tip))
    assert (closed.subject, closed.what) == (here.pull(1), Closed(merged=True))
    pull = here.forge.pull(here.pull(1))
    assert (pull.open, pull.merged, pull.head_sha) == (False, True, tip)


def test_a_merge_that_somebody_has_looked_at_before_the_hook_is_told_once_all_the_same(here: Bench) -> None:
    clone = here.clone()
    tip = clone.commit("topic", "a.txt", "a")
    here.people.open_pull(REPO, head="topic", base="main", title="t", author="alice")
    before = here.forge.branch_sha(here.repo, "main")
    clone.git("push", "--quiet", "origin", "topic:main")
    assert here.forge.pull(here.pull(1)).merged
    _, closed = here.people.pushed(REPO, "refs/heads/main", before, tip, author="alice")
    assert (closed.subject, closed.what, closed.head_sha) == (here.pull(1), Closed(merged=True), tip)
    later = clone.commit("topic", "b.txt", "b")
    assert len(here.people.pushed(REPO, "refs/heads/main", tip, later, author="alice")) == 1


def test_a_push_to_the_head_is_told_to_the_pull_request(here: Bench) -> None:
    clone = here.clone()
    first = clone.commit("topic", "a.txt", "a")
    here.people.open_pull(REPO, head="topic", base="main", title="t", author="alice")
    second = clone.commit("topic", "b.txt", "b")
    branch, pull = here.people.pushed(REPO, "refs/heads/topic", first, second, author="alice")
    assert (branch.subject, pull.subject) == (BranchRef(here.repo, "refs/heads/topic"), here.pull(1))
    assert (pull.what, pull.head_sha) == (Pushed(first, second), second)


def test_a_push_of_anything_but_a_branch_is_no_event(here: Bench) -> None:
    assert here.people.pushed(REPO, "refs/leadsman/claims/x", None, None, author="alice") == ()


@pytest.mark.parametrize(
    ("head", "base", "why"),
    [
        ("nowhere", "main", r"There is no branch nowhere in acme/shop\. Push it to .*acme/shop\.git first\."),
        ("main", "main", r"main has no commits that main does not have\."),
        ("topic", "nowhere", r"There is no branch nowhere in acme/shop\."),
        ("topic~1", "main", r"There is no branch topic~1"),
        ("topic^{tree}", "main", r"There is no branch topic"),
        ("--help", "main", r"There is no branch --help"),
        ("", "main", r"There is no branch  in"),
        ("x\0y", "main", r"There is no branch x"),
    ],
)
def test_a_pull_request_that_can_not_be_is_refused(here: Bench, head: str, base: str, why: str) -> None:
    here.clone().commit("topic", "a.txt", "a")
    with pytest.raises(UserError, match=why):
        here.people.open_pull(REPO, head=head, base=base, title="t", author="alice")
    assert here.forge.threads.listing(REPO) == ()


def test_a_branch_has_one_open_pull_request_into_a_base(here: Bench) -> None:
    here.clone().commit("topic", "a.txt", "a")
    here.people.open_pull(REPO, head="topic", base="main", title="t", author="alice")
    with pytest.raises(UserError, match="acme/shop#1 is open for topic into main already"):
        here.people.open_pull(REPO, head="topic", base="main", title="t", author="alice")
    here.people.close(REPO, 1, author="alice")
    assert here.people.open_pull(REPO, head="topic", base="main", title="t", author="alice").on == here.pull(2)


@pytest.mark.parametrize("branch", ["--upload-pack=x", "a'b", 'a"b', "$(id)", "\u00fcber/caf\u00e9", "a;b", "-x"])
def test_any_branch_name_that_git_takes_works(here: Bench, branch: str) -> None:
    clone = here.clone()
    tip = clone.commit("topic", "a.txt", "a")
    clone.git("push", "--quiet", "origin", f"topic:refs/heads/{branch}")
    here.people.open_pull(REPO, head=branch, base="main", title="t", author="alice")
    assert here.forge.pull(here.pull(1)).head_sha == tip
    assert here.forge.branch_sha(here.repo, branch) == tip


def test_an_issue_is_no_pull_request_and_the_other_way_round(here: Bench) -> None:
    here.clone().commit("topic", "a.txt", "a")
    opened = here.people.open_issue(REPO, title="  Slow\n tests ", author="rita", body="They are.")
    here.people.open_pull(REPO, head="topic", base="main", title="t", author="alice")
    issue = here.forge.issue(here.issue(1))
    assert opened.on == opened.event.subject == here.issue(1)
    assert (issue.title, issue.body, issue.author.login, issue.open) == ("Slow tests", "They are.", "rita", True)
    with pytest.raises(Gone, match="acme/shop#1 is an issue, not a pull request"):
        here.forge.pull(here.pull(1))
    with pytest.raises(Gone, match="acme/shop#2 is a pull request, not an issue"):
        here.forge.issue(here.issue(2))
    with pytest.raises(Gone):
        here.forge.comments(here.pull(1))


def test_a_comment_is_said_read_edited_and_reacted_to(here: Bench) -> None:
    here.people.open_issue(REPO, title="t", author="rita")
    said = here.people.comment(REPO, 1, author="alice", text="/run test")
    event = said.event
    assert (said.on, said.comment_id) == (here.issue(1), "1")
    assert event.what == Commented("1", Actor("alice", "alice"), "/run test", None)
    assert event.actor == Actor("alice", "alice")

    edited = here.people.edit_comment(REPO, 1, "1", editor="rita", text="/run other")
    assert edited.what == Commented("1", Actor("alice", "alice"), "/run other", "/run test")
    assert edited.actor.login == "rita"

    comment = here.forge.comment(here.issue(1), "1")
    assert (comment.body, comment.author.login) == ("/run other", "alice")
    assert START < comment.created_at < comment.updated_at

    mine = here.forge.post(here.issue(1), "waiting")
    here.forge.edit(here.issue(1), mine, "done")
    for reaction in ("eyes", "eyes", "rocket"):
        here.forge.react(here.issue(1), "1", reaction)  # type: ignore[arg-type]
    assert [(c.author.login, c.body) for c in here.forge.comments(here.issue(1))] == [
        ("alice", "/run other"),
        ("leadsman[bot]", "done"),
    ]
    assert here.forge.threads.said(REPO, 1, "1").reactions == ("eyes", "rocket")
    assert here.forge.comment_url(here.issue(1), mine) == "http://127.0.0.1:8780/local/acme/shop/1#comment-2"
    since = here.forge.comment(here.issue(1), mine).updated_at
    assert [c.id for c in here.forge.comments(here.issue(1), since=since)] == [mine]


@pytest.mark.parametrize("comment_id", ["", "0", "2", "x", "1.0", "-1", "1 or 1=1", "9" * 40, "\u0661"])
def test_a_comment_that_is_not_there_is_gone(here: Bench, comment_id: str) -> None:
    for title in ("one", "two"):
        here.people.open_issue(REPO, title=title, author="rita")
    here.people.comment(REPO, 1, author="alice", text="hello")
    with pytest.raises(Gone):
        here.forge.comment(here.issue(1), comment_id)
    with pytest.raises(Gone):
        here.forge.edit(here.issue(1), comment_id, "x")
    with pytest.raises(Gone):
        here.forge.react(here.issue(1), comment_id, "eyes")
    with pytest.raises(Gone):
        here.forge.comment(here.issue(2), "1")


@pytest.mark.parametrize("number", [0, 2, -1, 10**30])
def test_a_thread_that_is_not_there_is_gone(here: Bench, number: int) -> None:
    here.people.open_issue(REPO, title="t", author="rita")
    with pytest.raises(Gone):
        here.forge.issue(here.issue(number))
    with pytest.raises(Gone):
        here.forge.post(here.issue(number), "x")
    with pytest.raises(UserError, match="local list acme/shop"):
        here.people.comment(REPO, number, author="alice", text="x")


@pytest.mark.parametrize(
    ("login", "permission"),
    [
        ("alice", Permission.WRITE),
        ("rita", Permission.READ),
        ("tim", Permission.TRIAGE),
        ("mia", Permission.MAINTAIN),
        ("adam", Permission.ADMIN),
        ("nils", Permission.NONE),
        ("stranger", Permission.NONE),
        ("ALICE", Permission.NONE),
        (account(), Permission.ADMIN),
        ("leadsman[bot]", Permission.WRITE),
    ],
)
def test_a_person_may_do_what_the_table_says(tmp_path: Path, login: str, permission: Permission) -> None:
    users = {"alice": "write", "rita": "read", "tim": "triage", "mia": "maintain", "adam": "admin", "nils": "none"}
    here = bench(tmp_path, users)
    assert here.forge.permission(here.repo, Actor(login, login)) == permission
    here.store.close()


def test_the_account_that_runs_the_server_can_be_given_less(tmp_path: Path) -> None:
    here = bench(tmp_path, {account(): "read"})
    assert here.forge.permission(here.repo, Actor(account(), account())) == Permission.READ
    here.store.close()


def test_a_right_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValidationError, match="users"):
        Settings.model_validate({"kind": "local", "users": {"alice": "owner"}})


def test_a_file_is_read_at_a_commit(here: Bench) -> None:
    clone = here.clone()
    (clone.path / "link").symlink_to("/etc/passwd")
    (clone.path / "run.sh").write_text("x")
    (clone.path / "run.sh").chmod(0o755)
    tip = clone.commit("main", "d/.leadsman.toml", "[[task]]\n")
    read = here.forge.file
    assert read(here.repo, "d/.leadsman.toml", tip) == b"[[task]]\n"
    assert read(here.repo, "run.sh", tip) == b"x"
    for path in ("link", "d", "d/", "nothing", "", "../x", "/etc/passwd", "d/../run.sh", "*", ":(glob)*", "x\0", "-h"):
        assert read(here.repo, path, tip) is None


def test_a_file_that_is_too_big_is_not_read(here: Bench) -> None:
    tip = here.clone().commit("main", "big", "x" * (1 << 20) + "x")
    with pytest.raises(Unavailable, match="big has 1048577 bytes"):
        here.forge.file(here.repo, "big", tip)


def test_labels_are_set_once_and_taken_off(here: Bench) -> None:
    here.people.open_issue(REPO, title="t", author="rita")
    event = here.people.label(REPO, 1, " bot\n", author="alice")
    assert event is not None
    assert event.what == Labeled("bot")
    assert here.people.label(REPO, 1, "bot", author="alice") is None
    here.people.label(REPO, 1, "slow", author="alice")
    assert here.forge.issue(here.issue(1)).labels == ("bot", "slow")
    taken = here.people.unlabel(REPO, 1, " bot ", author="rita")
    assert taken is not None
    assert taken.what == Updated("", "bot", "", assignee=False)
    assert here.people.unlabel(REPO, 1, "bot", author="rita") is None
    assert here.forge.issue(here.issue(1)).labels == ("slow",)


def test_the_history_of_an_issue_holds_comments_and_changes_in_one_order(here: Bench) -> None:
    here.people.open_issue(REPO, title="t", author="rita")
    issue = here.issue(1)
    here.people.comment(REPO, 1, author="rita", text="one")
    here.forge.label(issue, "at work")
    here.forge.assign(issue, ["leadsman[bot]"])
    said = here.forge.post(issue, "two")
    here.people.assign(REPO, 1, "alice", on=True, author="rita")
    here.people.assign(REPO, 1, "leadsman[bot]", on=False, author="rita")
    here.people.unlabel(REPO, 1, "at work", author="rita")
    told = [
        (one.author.login, one.text or one.set_label or one.lost_label or one.assigns)
        for one in here.forge.history(issue)
    ]
    assert told == [
        ("rita", "one"), ("leadsman[bot]", "at work"), ("leadsman[bot]", True), ("leadsman[bot]", "two"),
        ("rita", True), ("rita", True), ("rita", "at work"),
    ]  # fmt: skip
    assert [one.body for one in here.forge.comments(issue)] == ["one", "two"]
    assert here.forge.issue(issue).assignees == ("alice",)
    assert here.people.assign(REPO, 1, "alice", on=True, author="rita") is None
    with pytest.raises(Gone):
        here.forge.edit(issue, str(int(said) + 1), "not a comment")


def test_the_issues_with_a_label_come_oldest_first(here: Bench) -> None:
    for title in ("one", "two", "three"):
        here.people.open_issue(REPO, title=title, author="rita")
    for number, label in ((1, "bot"), (2, "bug"), (3, "Bot")):
        here.people.label(REPO, number, label, author="rita")
    assert [one.title for one in here.forge.labeled(here.repo, "bot", open_only=True)] == ["one", "three"]
    here.people.close(REPO, 1, author="rita")
    assert [one.title for one in here.forge.labeled(here.repo, "bot", open_only=True)] == ["three"]
    assert [one.title for one in here.forge.labeled(here.repo, "bot", open_only=False)] == ["one", "three"]


@pytest.mark.parametrize("login", ["", "leadsman[bot]", "a b", "-x", "a\nb", "[bot]", "x" * 60])
def test_nobody_speaks_as_the_bot_or_under_a_name_that_is_none(here: Bench, login: str) -> None:
    here.people.open_issue(REPO, title="t", author="rita")
    for act in (
        lambda: here.people.comment(REPO, 1, author=login, text="x"),
        lambda: here.people.open_issue(REPO, title="t", author=login),
        lambda: here.people.close(REPO, 1, author=login),
        lambda: here.people.label(REPO, 1, "bot", author=login),
    ):
        with pytest.raises(UserError, match="can't be a person's login here"):
            act()
    assert here.forge.issue(here.issue(1)).open
    assert here.forge.issue(here.issue(1)).labels == ()
    assert len(here.forge.threads.listing(REPO)) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "needs a text"), (" \n", "needs a text"), ("x" * 65_537, "65537"), ("\udcff", "UTF-8"), ("a\0b", "NUL")],
)
def test_a_text_that_can_not_be_kept_is_refused(here: Bench, text: str, why: str) -> None:
    here.people.open_issue(REPO, title="t", author="rita")
    with pytest.raises(UserError, match=why):
        here.people.comment(REPO, 1, author="alice", text=text)
    assert list(here.forge.comments(here.issue(1))) == []


def test_every_act_becomes_a_delivery_that_reads_as_the_same_event(here: Bench) -> None:
    clone = here.clone()
    tip = clone.commit("topic", "a.txt", "a")
    people = here.people
    events = [
        people.open_pull(REPO, head="topic", base="main", title="t", author="alice").event,
        people.open_issue(REPO, title="t", author="rita").event,
        people.comment(REPO, 1, author="alice", text="/run test \u00fc").event,
        people.edit_comment(REPO, 1, "1", editor="alice", text="/run other"),
        people.label(REPO, 2, "bot", author="alice"),
        *people.pushed(REPO, "refs/heads/topic", None, tip, author="alice"),
        people.close(REPO, 1, author="alice"),
    ]
    for event in events:
        assert event is not None
        headers, body = source.write(event, Secret("s" * 32))
        lower = {name.lower(): text for name, text in headers.items()}
        assert source.read(lower, body, source="local", at=event.at) == event


def test_numbers_are_given_once_however_many_open_at_once(here: Bench) -> None:
    numbers: list[int] = []

    def open_ten() -> None:
        for _ in range(10):
            numbers.append(here.people.open_issue(REPO, title="t", author="rita").on.number)

    threads = [threading.Thread(target=open_ten) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 81))


def test_labels_set_at_once_are_all_kept(here: Bench) -> None:
    here.people.open_issue(REPO, title="t", author="rita")
    threads = [
        threading.Thread(target=here.people.label, args=(REPO, 1, f"l{n}"), kwargs={"author": "alice"})
        for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(here.forge.issue(here.issue(1)).labels) == {f"l{n}" for n in range(16)}


def test_a_pull_request_read_by_many_at_once_while_it_moves_is_read_right(here: Bench) -> None:
    clone = here.clone()
    clone.commit("topic", "a.txt", "a")
    here.people.open_pull(REPO, head="topic", base="main", title="t", author="alice")
    tip = clone.commit("topic", "b.txt", "b")
    heads: list[str] = []
    threads = [threading.Thread(target=lambda: heads.append(here.forge.pull(here.pull(1)).head_sha)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heads == [tip] * 16


def test_two_forges_in_one_store_know_nothing_of_each_other(here: Bench) -> None:
    other = connect(
        "second",
        Settings.model_validate({"kind": "local", "root": str(here.folder / "repositories")}),
        around(here.folder, here.store),
    )
    here.people.open_issue(REPO, title="t", author="rita")
    with pytest.raises(Gone):
        other.issue(IssueRef(Repo("second", REPO), 1))


def test_the_secret_is_made_once_and_is_nobody_elses_to_read(tmp_path: Path, store: Store) -> None:
    settings = Settings.model_validate({"kind": "local"})
    found: list[tuple[Secret, ...]] = []
    threads = [
        threading.Thread(target=lambda: found.append(webhook_secrets("local", settings, around(tmp_path, store, {}))))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({secrets[0].reveal() for secrets in found}) == 1
    assert len(found[0][0].reveal()) == 64
    assert [path.name for path in tmp_path.iterdir()] == ["local.secret"]
    assert (tmp_path / "local.secret").stat().st_mode & 0o777 == 0o600


def test_named_secrets_are_taken_from_the_environment(tmp_path: Path, store: Store) -> None:
    settings = Settings.model_validate({"kind": "local", "webhook_secret_env": ["NEW", "OLD"]})
    assert webhook_secrets("local", settings, around(tmp_path, store, {"NEW": "n", "OLD": "o\n"})) == (
        Secret("n"),
        Secret("o"),
    )
    for missing in ({"NEW": "n"}, {"NEW": "n", "OLD": ""}, {"NEW": "n", "OLD": " "}):
        with pytest.raises(UserError, match="OLD is not set"):
            webhook_secrets("local", settings, around(tmp_path, store, missing))
    assert list(tmp_path.iterdir()) == []


def test_a_secret_file_that_was_cut_short_is_not_used(tmp_path: Path, store: Store) -> None:
    (tmp_path / "local.secret").write_text("")
    with pytest.raises(UserError, match="holds no secret"):
        webhook_secrets("local", Settings.model_validate({"kind": "local"}), around(tmp_path, store, {}))


def test_a_root_that_is_not_there_holds_nothing(tmp_path: Path, store: Store) -> None:
    forge = connect("local", Settings.model_validate({"kind": "local"}), around(tmp_path, store))
    assert forge.bares.names() == []
    with pytest.raises(Gone):
        forge.repository(Repo("local", REPO))
    assert not (tmp_path / "repositories").exists()

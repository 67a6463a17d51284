"""The GitHub client against the simulated GitHub: real PyGithub, real HTTP, real git."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from bot.errors import Forbidden, Gone, OutOfTurn, Unavailable, UserError
from bot.forges import CommitStatus, Forge
from bot.forges.github import Settings, connect
from bot.forges.github.client import Github
from bot.model import Actor, IssueRef, Permission, PullRef, Repo, Sha
from bot.repositories import Repositories
from tests.bot.surroundings import around
from tests.world import Files, Link, Pull, Repository, World

SHOP = Repo("github", "acme/shop")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path / "world") as world:
        yield world


@pytest.fixture
def shop(world: World) -> Repository:
    return world.repo("acme/shop", files={"a.txt": "one\n"}).allow("leadsman-bot", "write").allow("alice", "write")


@pytest.fixture
def forge(world: World, shop: Repository, tmp_path: Path) -> Iterator[Github]:
    forge = client(world, tmp_path)
    yield forge
    forge.close()


@pytest.fixture
def pull(shop: Repository) -> Pull:
    return shop.pull(head="topic", files={"b.txt": "two\n"}, author="alice", title="Add b")


def client(world: World, base: Path, **settings: Any) -> Github:
    """As the account `leadsman-bot`, without pauses."""
    token = world.user("leadsman-bot").token
    usual = {"kind": "github", "api_url": world.api_url, "token_env": "TOKEN", "write_pause_seconds": 0}
    return connect(
        "github", Settings.model_validate(usual | settings), around(base, environ={"TOKEN": token}, world=world)
    )


def on(pull: Pull) -> PullRef:
    return PullRef(SHOP, pull.number)


def actor(world: World, login: str) -> Actor:
    return Actor(login, str(world.user(login).id))


# what it reads


def test_it_is_a_forge(forge: Forge) -> None:
    assert ("github", "github") == (forge.name, forge.kind)


def test_the_bot_knows_its_own_account_and_asks_only_once(forge: Github, world: World) -> None:
    assert actor(world, "leadsman-bot") == forge.me() == forge.me()
    assert 1 == len(world.asked("/user"))


def test_a_repository_is_read_with_its_addresses(forge: Github, world: World) -> None:
    facts = forge.repository(SHOP)
    assert ("main", f"{world.url}/acme/shop.git", f"{world.url}/acme/shop") == (
        facts.default_branch,
        facts.clone_url,
        facts.web_url,
    )


@pytest.mark.parametrize("branch", ["topic", "feature/a#1", "50%", "a;b", "übung", "-x", "a&b=c", "@", "it's"])
def test_a_branch_of_any_name_is_read(forge: Github, shop: Repository, branch: str) -> None:
    assert shop.commit({"x": "y"}, branch=branch) == forge.branch_sha(SHOP, branch)


def test_a_branch_is_never_mistaken_for_another_that_begins_alike(forge: Github, shop: Repository) -> None:
    shop.commit({"x": "y"}, branch="feature/one")
    with pytest.raises(Gone):
        forge.branch_sha(SHOP, "feature")


def test_files_are_read_at_one_commit(forge: Github, shop: Repository) -> None:
    files: Files = {
        "conf/übung & co.toml": "x = 1\n",
        "raw.bin": b"\x00\xff",
        "away": Link("/etc/passwd"),
        "empty": b"",
    }
    at = Sha(shop.commit(files))
    shop.commit({"conf/übung & co.toml": "x = 2\n"})
    read = {path: forge.file(SHOP, path, at) for path in (*files, "conf", "none.toml")}
    assert {
        "conf/übung & co.toml": b"x = 1\n",
        "raw.bin": b"\x00\xff",
        "away": None,
        "empty": b"",
        "conf": None,
        "none.toml": None,
    } == read


def test_a_file_above_a_megabyte_is_read_whole(forge: Github, shop: Repository) -> None:
    content = b"0123456789abcdef" * 70_000
    assert content == forge.file(SHOP, "large.bin", Sha(shop.commit({"large.bin": content})))


def test_a_commit_that_is_not_there_is_no_missing_file(forge: Github) -> None:
    with pytest.raises(Gone, match="No commit found"):
        forge.file(SHOP, "a.txt", Sha("1" * 40))


def test_a_pull_request_is_read_as_it_is_now(forge: Github, pull: Pull, world: World) -> None:
    pull.label("bot", by="alice")
    pull.push({"b.txt": "three\n"})
    found = forge.pull(on(pull))
    assert ("Add b", actor(world, "alice"), True, False) == (found.title, found.author, found.open, found.merged)
    assert (pull.head_sha, "topic", "acme/shop", "main") == (
        found.head_sha,
        found.head_ref,
        found.head_repo,
        found.base_ref,
    )
    assert ("bot",) == found.labels
    assert not found.is_fork
    assert UTC == found.updated_at.tzinfo
    assert 1 == len(world.asked("/repos/*"))


def test_a_merged_pull_request_is_closed_and_merged(forge: Github, pull: Pull) -> None:
    pull.merge(by="alice")
    assert (False, True) == (forge.pull(on(pull)).open, forge.pull(on(pull)).merged)


def test_a_fork_is_known_as_one_and_a_deleted_fork_too(forge: Github, shop: Repository) -> None:
    pull = shop.pull(head="fix", files={"c": "d"}, author="mallory", fork=True)
    assert "mallory/shop" == forge.pull(on(pull)).head_repo
    assert pull.head_repo is not None
    pull.head_repo.delete()
    gone = forge.pull(on(pull))
    assert (None, True, pull.head_sha) == (gone.head_repo, gone.is_fork, gone.head_sha)


def test_a_repository_written_in_other_letters_is_no_fork(forge: Github, pull: Pull, world: World) -> None:
    world.repositories["Acme/Shop"] = world.repositories["acme/shop"]
    assert not forge.pull(PullRef(Repo("github", "Acme/Shop"), pull.number)).is_fork


def test_a_repository_has_one_mirror_whatever_letters_its_name_is_written_in(forge: Github, tmp_path: Path) -> None:
    repositories = Repositories(tmp_path, {"github": forge})
    made = repositories.mirror(Repo("github", "Acme/Shop"))
    assert made == replace(repositories.mirror(Repo("github", "acme/shop")), remote=made.remote)
    assert made.path != repositories.mirror(Repo("github", "acme/shop2")).path
    assert repositories.put_aside() == []
    made.trash.mkdir()
    assert repositories.put_aside() == [made.trash]


def test_the_changed_files_have_both_names_of_a_rename_and_all_pages(forge: Github, shop: Repository) -> None:
    shop.commit({"old.txt": "same\n" * 9})
    many = {f"many/{n:03}.txt": f"{n}\n" for n in range(120)}
    pull = shop.pull(head="topic", files={"old.txt": None, "new.txt": "same\n" * 9, **many}, author="alice")
    assert {"old.txt", "new.txt", *many} == set(forge.changed_files(on(pull)))


def test_what_github_does_not_list_is_not_passed_over(forge: Github, shop: Repository) -> None:
    pull = shop.pull(head="topic", files={f"{n}.txt": f"{n}" for n in range(3000)}, author="alice")
    assert 3000 == len(forge.changed_files(on(pull)))
    pull.push({"one-more.txt": "x"})
    with pytest.raises(UserError, match="#1 changes 3001 files, and GitHub lists only 3000"):
        forge.changed_files(on(pull))


def test_a_push_is_known_by_the_paths_it_changed(forge: Github, shop: Repository, world: World) -> None:
    shop.commit({"old.txt": "same\n" * 9})
    before = Sha(shop.sha())
    after = Sha(shop.commit({"old.txt": None, "new.txt": "same\n" * 9, "x/y": "z"}))
    assert {"old.txt", "new.txt", "x/y"} == set(forge.changed_between(SHOP, before, after) or ())
    assert () == forge.changed_between(SHOP, after, after)
    assert 2 == len(world.asked("/repos/*"))


def test_a_push_whose_paths_can_not_all_be_told_is_not_known(forge: Github, shop: Repository) -> None:
    before = Sha(shop.sha())
    one, other = (Sha(shop.commit({name: "x"}, branch=name, parent=before)) for name in ("one", "other"))
    large = Sha(shop.commit({f"{n}.txt": f"{n}" for n in range(300)}))
    told = [(one, other), (one, before), (before, large), (Sha("1" * 40), large), (before, Sha("1" * 40))]
    assert [None] * 5 == [forge.changed_between(SHOP, *ends) for ends in told]


def test_an_issue_is_read_with_its_labels_and_assignees(forge: Github, shop: Repository, world: World) -> None:
    issue = shop.issue("Broken", author="bob", labels=("bug",))
    issue.assignees.append(world.user("alice"))
    found = forge.issue(IssueRef(SHOP, issue.number))
    assert ("Broken", "", actor(world, "bob"), True) == (found.title, found.body, found.author, found.open)
    assert (("bug",), ("alice",)) == (found.labels, found.assignees)


def test_the_issues_with_a_label_come_oldest_first_and_no_pull_requests(
    forge: Github, shop: Repository, pull: Pull
) -> None:
    for title, label in (("one", "Bot"), ("two", "bug"), ("three", "bot"), ("four", "bot")):
        shop.issue(title, author="bob", labels=(label,))
    pull.label("bot", by="alice")
    shop.threads[4].close(by="alice")
    assert ["one", "four"] == [one.title for one in forge.labeled(SHOP, "bot", open_only=True)]
    found = forge.labeled(SHOP, "bot", open_only=False)
    assert ["one", "three", "four"] == [one.title for one in found]
    assert forge.issue(found[0].ref) == found[0]


def test_an_issues_history_is_told_in_githubs_own_order_whatever_the_numbers(
    forge: Github, shop: Repository, world: World
) -> None:
    issue = shop.issue("Broken", author="bob")
    said = [issue.comment("alice", "one"), issue.label("at work", by="alice"), issue.comment("mallory", "two")]
    issue.unlabel("at work", by="bob")
    issue.assign("alice", by="bob")
    issue.unassign("alice", by="bob")
    issue.close(by="alice")
    first, second = (one.comment.id for one in said if one.comment is not None)
    told = forge.history(IssueRef(SHOP, issue.number))
    assert [
        (f"{first}", "alice", "one", True, "", "", False),
        ("event-7", "alice", "", True, "at work", "", False),
        (f"{second}", "mallory", "two", False, "", "", False),
        ("event-8", "bob", "", True, "", "at work", False),
        ("event-9", "bob", "", True, "", "", True),
        ("event-10", "bob", "", True, "", "", True),
    ] == [
        (one.id, one.author.login, one.text, one.by_member, one.set_label, one.lost_label, one.assigns) for one in told
    ]
    for number in range(120):
        issue.comment("bob", str(number))
    assert 126 == len(forge.history(IssueRef(SHOP, issue.number)))


# permission

ROLES = [
    ("read", None, Permission.READ),
    ("triage", None, Permission.TRIAGE),
    ("write", None, Permission.WRITE),
    ("maintain", None, Permission.MAINTAIN),
    ("admin", None, Permission.ADMIN),
    ("release-manager", "write", Permission.WRITE),
    ("Community Manager", "triage", Permission.TRIAGE),
]


@pytest.mark.parametrize(("role", "base", "expected"), ROLES)
def test_a_permission_is_the_role_and_a_custom_one_what_it_may_do(
    forge: Github, world: World, role: str, base: str | None, expected: Permission
) -> None:
    world.repositories["acme/shop"].allow("carol", role, base=base)
    assert expected == forge.permission(SHOP, actor(world, "carol"))


def test_a_stranger_may_read_what_is_public_and_nothing_of_what_is_private(
    forge: Github, shop: Repository, world: World
) -> None:
    assert Permission.READ == forge.permission(SHOP, actor(world, "stranger"))
    shop.private = True
    assert Permission.NONE == forge.permission(SHOP, actor(world, "stranger"))


def test_an_account_that_does_not_exist_may_do_nothing(forge: Github) -> None:
    assert Permission.NONE == forge.permission(SHOP, Actor("nobody/../alice", "1"))


def test_a_login_that_somebody_took_over_does_not_bring_the_rights_along(
    forge: Github, shop: Repository, world: World
) -> None:
    stranger = actor(world, "dave")
    world.rename("dave", "dave-was-here")
    shop.allow(world.user("dave"), "admin")
    assert Permission.NONE == forge.permission(SHOP, stranger)


def test_permissions_can_be_read_only_by_who_may_push(forge: Github, shop: Repository, world: World) -> None:
    shop.allow("leadsman-bot", "read")
    with pytest.raises(Forbidden, match="Must have push access"):
        forge.permission(SHOP, actor(world, "alice"))


# comments


def test_a_comment_is_read_back_with_its_author(forge: Github, pull: Pull, world: World) -> None:
    said = pull.comment("alice", "/run fix\r\nplease \N{ROCKET}").comment
    assert said is not None
    found = forge.comment(on(pull), str(said.id))
    assert (str(said.id), actor(world, "alice"), "/run fix\r\nplease \N{ROCKET}") == (
        found.id,
        found.author,
        found.body,
    )
    assert found.created_at == found.updated_at


def test_a_comment_of_a_deleted_account_is_the_ghosts(forge: Github, pull: Pull) -> None:
    said = pull.comment("alice", "/run fix").comment
    assert said is not None
    said.author = None
    assert Actor("ghost", "10137") == forge.comment(on(pull), str(said.id)).author


def test_a_comment_of_another_pull_request_is_gone(forge: Github, shop: Repository, pull: Pull) -> None:
    said = shop.issue("Other", author="bob").comment("bob", "/run fix").comment
    assert said is not None
    with pytest.raises(Gone, match="another issue"):
        forge.comment(on(pull), str(said.id))


@pytest.mark.parametrize("comment_id", ["", "7/reactions", "-1", "x", "²", "99999999999999999999"])
def test_what_is_no_comment_is_gone(forge: Github, pull: Pull, comment_id: str) -> None:
    with pytest.raises(Gone):
        forge.comment(on(pull), comment_id)


def test_a_comment_that_was_deleted_is_gone(forge: Github, pull: Pull) -> None:
    said = pull.comment("alice", "/run fix").comment
    assert said is not None
    pull.delete(said)
    with pytest.raises(Gone):
        forge.comment(on(pull), str(said.id))


def test_comments_come_in_their_order_over_all_pages(forge: Github, pull: Pull, world: World) -> None:
    for n in range(230):
        pull.comment("alice", f"comment {n}")
    assert [f"comment {n}" for n in range(230)] == [found.body for found in forge.comments(on(pull))]
    assert 3 == len(world.asked("GET /repos/*/comments"))


def test_comments_since_a_time_are_those_of_that_second_and_later(forge: Github, pull: Pull, world: World) -> None:
    start = datetime(2026, 3, 1, 12, 0, 0, 700_000, UTC)
    for minutes in range(3):
        stop_clock(world, start + timedelta(minutes=minutes))
        pull.comment("alice", f"at {minutes}")
    elsewhere = (start + timedelta(minutes=1)).astimezone(timezone(timedelta(hours=9)))
    assert ["at 1", "at 2"] == [found.body for found in forge.comments(on(pull), since=elsewhere)]


def test_an_edited_comment_is_among_the_new_ones(forge: Github, pull: Pull, world: World) -> None:
    start = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    stop_clock(world, start)
    said = pull.comment("alice", "old")
    stop_clock(world, start + timedelta(hours=1))
    pull.edit(said, "new")
    assert ["new"] == [found.body for found in forge.comments(on(pull), since=start + timedelta(minutes=1))]


def test_the_bot_posts_edits_and_reacts(forge: Github, pull: Pull, world: World) -> None:
    asked = pull.comment("alice", "/run fix").comment
    assert asked is not None
    answer = forge.post(on(pull), "on it")
    forge.edit(on(pull), answer, "done \N{WHITE HEAVY CHECK MARK}")
    for _ in range(2):
        forge.react(on(pull), str(asked.id), "eyes")
    assert [("alice", "/run fix"), ("leadsman-bot", "done \N{WHITE HEAVY CHECK MARK}")] == [
        (one.author and one.author.login, one.body) for one in pull.comments
    ]
    assert ["eyes"] == [reaction.content for reaction in asked.reactions]
    assert 4 == len(world.asked("/repos/*"))


def test_a_comment_that_is_too_long_is_refused_with_githubs_reason(forge: Github, pull: Pull) -> None:
    with pytest.raises(Forbidden, match="body is too long"):
        forge.post(on(pull), "x" * 65_537)


def test_a_locked_conversation_is_refused_with_githubs_reason(forge: Github, shop: Repository, pull: Pull) -> None:
    shop.allow("leadsman-bot", "read")
    pull.locked = True
    with pytest.raises(Forbidden, match="issue is locked"):
        forge.post(on(pull), "hello")


def test_links_are_made_without_asking(forge: Github, pull: Pull, world: World) -> None:
    said = pull.comment("alice", "hi")
    assert said.comment is not None
    assert said.payload["comment"]["html_url"] == forge.comment_url(on(pull), str(said.comment.id))
    assert f"{world.url}/acme/shop/issues/9#issuecomment-5" == forge.comment_url(IssueRef(SHOP, 9), "5")
    assert f"{world.url}/acme/shop/commit/{'a' * 40}" == forge.commit_url(SHOP, Sha("a" * 40))
    assert f"{world.url}/acme/shop/tree/fix/%231" == forge.branch_url(SHOP, "fix/#1")
    assert [] == world.requests


# failures


def test_what_is_hidden_from_the_token_is_gone(forge: Github, world: World) -> None:
    world.repo("acme/secret", private=True)
    for name in ("acme/secret", "acme/none", "acme/..", "../acme/shop", "acme", "acme/shop/x", "acme/shop?x"):
        with pytest.raises(Gone):
            forge.repository(Repo("github", name))


def test_an_answer_that_comes_late_after_an_event_is_there_when_asked_again(
    forge: Github, pull: Pull, world: World
) -> None:
    world.fail_next("/repos/acme/shop/pulls/1", 404, times=2)
    for _ in range(2):
        with pytest.raises(Gone):
            forge.pull(on(pull))
    assert pull.head_sha == forge.pull(on(pull)).head_sha


def test_a_refused_token_is_forbidden(forge: Github, world: World) -> None:
    world.revoke(world.user("leadsman-bot").token)
    with pytest.raises(Forbidden, match="401"):
        forge.repository(SHOP)


STATUSES = [
    (404, Gone),
    (410, Gone),
    (451, Gone),
    (409, Gone),
    (401, Forbidden),
    (403, Forbidden),
    (422, Forbidden),
    (429, Unavailable),
    (500, Unavailable),
    (502, Unavailable),
    (503, Unavailable),
    (504, Unavailable),
]


@pytest.mark.parametrize(("status", "expected"), STATUSES)
def test_each_status_has_one_meaning(
    forge: Github, pull: Pull, world: World, status: int, expected: type[Exception]
) -> None:
    world.fail_next("*", status)
    with pytest.raises(expected, match=f"{status} for #1 of acme/shop: It was ordered to fail"):
        forge.pull(on(pull))


BODIES = ["<html>A proxy's page</html>", {"message": "hello"}, [], "", "{broken", {"head": 7}, {"id": "x", "user": []}]


@pytest.mark.parametrize("body", BODIES)
def test_an_answer_that_is_not_githubs_is_unavailable(forge: Github, pull: Pull, world: World, body: Any) -> None:
    said = pull.comment("alice", "hi").comment
    assert said is not None
    world.fail_next("*", 200, times=None, body=body)
    for call in (
        forge.me,
        lambda: forge.repository(SHOP),
        lambda: forge.branch_sha(SHOP, "main"),
        lambda: forge.pull(on(pull)),
        lambda: forge.issue(IssueRef(SHOP, 1)),
        lambda: forge.permission(SHOP, actor(world, "alice")),
        lambda: forge.comment(on(pull), str(said.id)),
        lambda: forge.post(on(pull), "x"),
    ):
        with pytest.raises(Unavailable):
            call()


def test_a_redirect_to_another_host_is_not_followed(forge: Github, world: World) -> None:
    world.fail_next("*", 301, headers={"Location": "http://127.0.0.2:1/elsewhere"})
    with pytest.raises(Unavailable):
        forge.repository(SHOP)


def test_a_forge_that_is_down_is_unavailable_and_answers_again_when_it_is_up(
    forge: Github, pull: Pull, world: World
) -> None:
    assert forge.pull(on(pull)).open
    world.down()
    with pytest.raises(Unavailable, match="can't be reached"):
        forge.pull(on(pull))
    world.up()
    assert forge.pull(on(pull)).open


def test_a_forge_that_keeps_silent_is_left_at_the_deadline(pull: Pull, world: World, tmp_path: Path) -> None:
    forge = client(world, tmp_path, timeout_seconds=1)
    world.slow("*", 30)
    begun = time.monotonic()
    with pytest.raises(Unavailable, match="ReadTimeout"):
        forge.pull(on(pull))
    assert 25 > time.monotonic() - begun
    forge.close()


# limits


def minute(world: World) -> datetime:
    """One at which all clocks stand still."""
    now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    stop_clock(world, now)
    return now


def stop_clock(world: World, at: datetime) -> None:
    """The world's clock, and with it the client's."""
    world.clock = lambda: at


def test_a_spent_allowance_is_waited_for_without_asking(forge: Github, pull: Pull, world: World) -> None:
    now = minute(world)
    world.exhaust(world.user("leadsman-bot"), seconds=90)
    with pytest.raises(Unavailable, match="rate limit exceeded") as caught:
        forge.pull(on(pull))
    assert now + timedelta(seconds=91) == caught.value.retry_at
    asked = len(world.requests)
    with pytest.raises(Unavailable) as caught:
        forge.branch_sha(SHOP, "main")
    assert now + timedelta(seconds=91) == caught.value.retry_at
    assert asked == len(world.requests)
    stop_clock(world, now + timedelta(seconds=91))
    assert forge.pull(on(pull)).open


def test_retry_after_goes_before_the_reset(forge: Github, pull: Pull, world: World) -> None:
    now = minute(world)
    headers = {"Retry-After": "120", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}
    world.fail_next("*", 403, headers=headers)
    with pytest.raises(Unavailable) as caught:
        forge.post(on(pull), "x")
    assert now + timedelta(seconds=120) == caught.value.retry_at


def test_retry_after_may_be_a_date(forge: Github, pull: Pull, world: World) -> None:
    now = minute(world)
    world.fail_next("*", 503, headers={"Retry-After": format_datetime(now + timedelta(minutes=5), usegmt=True)})
    with pytest.raises(Unavailable) as caught:
        forge.pull(on(pull))
    assert now + timedelta(minutes=5) == caught.value.retry_at


@pytest.mark.parametrize("value", ["soon", "-5", "", "1e400", "999999999", "9" * 40])
def test_a_wait_that_can_not_be_read_or_is_absurd_is_bounded(
    forge: Github, pull: Pull, world: World, value: str
) -> None:
    now = minute(world)
    world.fail_next("*", 429, headers={"Retry-After": value})
    with pytest.raises(Unavailable) as caught:
        forge.pull(on(pull))
    assert caught.value.retry_at is not None
    assert now < caught.value.retry_at <= now + timedelta(days=1)


SECONDARY = [
    (403, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."),
    (429, "You have exceeded a secondary rate limit."),
    (422, "was submitted too quickly"),
]


@pytest.mark.parametrize(("status", "message"), SECONDARY)
def test_a_secondary_limit_without_a_time_is_waited_for_longer_each_time(
    forge: Github, pull: Pull, world: World, status: int, message: str
) -> None:
    now = minute(world)
    for seconds in (60, 120, 240):
        world.fail_next("*", status, body={"message": message})
        with pytest.raises(Unavailable) as caught:
            forge.pull(on(pull))
        assert now + timedelta(seconds=seconds) == caught.value.retry_at
        now += timedelta(seconds=seconds)
        stop_clock(world, now)
    assert forge.pull(on(pull)).open
    world.fail_next("*", status, body={"message": message})
    with pytest.raises(Unavailable) as caught:
        forge.pull(on(pull))
    assert now + timedelta(seconds=60) == caught.value.retry_at


def test_a_right_that_is_missing_closes_nothing(forge: Github, pull: Pull, world: World) -> None:
    world.fail_next("*", 403)
    with pytest.raises(Forbidden):
        forge.pull(on(pull))
    assert forge.pull(on(pull)).open


def test_writes_of_one_token_keep_their_distance_and_reads_do_not(pull: Pull, world: World, tmp_path: Path) -> None:
    slow, quick = (client(world, tmp_path, write_pause_seconds=seconds) for seconds in (60, 0.3))
    begun = time.monotonic()
    slow.post(on(pull), "x")
    for _ in range(5):
        slow.pull(on(pull))
    assert 60 > time.monotonic() - begun
    begun = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: quick.post(on(pull), str(n)), range(4)))
    assert 0.9 <= time.monotonic() - begun
    for forge in (slow, quick):
        forge.close()


def test_a_queue_of_writes_that_is_too_long_says_when_to_come_back(pull: Pull, world: World, tmp_path: Path) -> None:
    forge, now = client(world, tmp_path, write_pause_seconds=60), minute(world)
    forge.post(on(pull), "first")
    with pytest.raises(OutOfTurn, match="wait for their turn") as caught:
        forge.post(on(pull), "second")
    assert caught.value.retry_at is not None
    assert timedelta(seconds=50) < caught.value.retry_at - now <= timedelta(seconds=60)
    forge.close()


def test_a_write_that_waits_for_its_turn_is_not_made_when_the_limit_was_met_meanwhile(
    pull: Pull, world: World, tmp_path: Path
) -> None:
    forge = client(world, tmp_path, write_pause_seconds=4)
    forge.post(on(pull), "first")
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(forge.post, on(pull), "second")
        world.fail_next("GET *", 429)
        with pytest.raises(Unavailable):
            forge.pull(on(pull))
        with pytest.raises(Unavailable, match="no more calls"):
            second.result(timeout=60)
    assert ["first"] == [comment.body for comment in pull.comments]
    forge.close()


# threads and secrets


@pytest.fixture
def _stumbling() -> Iterator[None]:
    """Every thread pauses between setting up a request and sending it: a client that two share sends the other's."""

    def stumble(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "getresponse" and "Requester" in frame.f_code.co_filename:
            time.sleep(0.001)

    threading.setprofile(stumble)
    yield
    threading.setprofile(None)


@pytest.mark.usefixtures("_stumbling")
def test_sixteen_threads_get_each_its_own_answer(forge: Github, shop: Repository) -> None:
    issues = [shop.issue(f"Issue {n}", author="alice") for n in range(16)]
    ready = threading.Barrier(16)

    def ask(number: int) -> list[str]:
        ready.wait()
        titles = [forge.issue(IssueRef(SHOP, number)).title for _ in range(10)]
        forge.post(IssueRef(SHOP, number), f"for {number}")
        return titles

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, [issue.number for issue in issues]))
    assert [[f"Issue {n}"] * 10 for n in range(16)] == answers
    assert [[f"for {issue.number}"] for issue in issues] == [[one.body for one in issue.comments] for issue in issues]


def test_git_fetches_and_pushes_with_the_access_that_is_given(
    forge: Github, shop: Repository, pull: Pull, tmp_path: Path
) -> None:
    shop.private = True
    access = forge.git(SHOP)
    assert access.token is not None
    here = tmp_path / "clone"
    git("clone", "-q", access.url, str(here), user=access.username, token=access.token.reveal())
    git("fetch", "-q", "origin", f"refs/pull/{pull.number}/head", at=here, user="x", token=access.token.reveal())
    assert pull.head_sha == git("rev-parse", "FETCH_HEAD", at=here)
    (here / "large.bin").write_bytes(bytes(range(256)) * 9000 + b"x" * 999_999)
    git("add", ".", at=here)
    git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "Large", at=here)
    git("push", "-q", "origin", "HEAD:refs/heads/run", at=here, user=access.username, token=access.token.reveal())
    assert git("rev-parse", "HEAD", at=here) == forge.branch_sha(SHOP, "run")


def git(*args: str, at: Path | None = None, user: str = "", token: str = "") -> str:
    """git, given a token by a header from its environment."""
    import base64

    basic = base64.b64encode(f"{user}:{token}".encode()).decode()
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": "1"}
    env |= {
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}" if token else "X: y",
    }
    done = subprocess.run(["git", *args], cwd=at, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert 0 == done.returncode, done.stderr
    return done.stdout.strip()


def test_the_token_stands_in_no_url_and_in_no_error(forge: Github, pull: Pull, world: World, tmp_path: Path) -> None:
    token = world.user("leadsman-bot").token
    texts = [repr(forge), repr(forge.git(SHOP)), repr(vars(forge))]
    forge.post(on(pull), "x")
    world.fail_next("*", 500, times=None)
    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            forge.pull(on(pull))
        texts.append(repr(caught.value) + str(caught.value) + repr(caught.value.__cause__))
        world.down()
    world.up()
    assert all(token not in text for text in texts)
    assert world.requests
    assert all(token not in request.url and token.encode() not in request.body for request in world.requests)


# what it shows beside commits


GRADES = [("green", "success", "success"), ("red", "failure", "failure"), ("neutral", "pending", "neutral")]


def status_of(grade: Any, text: str = "1 of 1 checks hold") -> CommitStatus:
    return CommitStatus(name="leadsman/fix", grade=grade, text=text, url="https://bot.example/runs/1", run="r-1")


@pytest.mark.parametrize(("grade", "state", "_conclusion"), GRADES)
def test_an_account_sets_a_commit_status(
    forge: Github, shop: Repository, pull: Pull, grade: str, state: str, _conclusion: str
) -> None:
    forge.set_status(SHOP, Sha(pull.head_sha), status_of(grade))
    (shown,) = shop.statuses
    assert (pull.head_sha, state, "leadsman/fix") == (shown.sha, shown.state, shown.context)
    assert ("1 of 1 checks hold", "https://bot.example/runs/1") == (shown.description, shown.target_url)


def test_a_long_text_of_a_status_is_cut(forge: Github, shop: Repository, pull: Pull) -> None:
    forge.set_status(SHOP, Sha(pull.head_sha), status_of("green", "x" * 500))
    assert "x" * 139 + "…" == shop.statuses[0].description


def test_a_status_on_a_commit_that_is_not_there_is_refused(forge: Github) -> None:
    with pytest.raises(Forbidden, match="No commit found"):
        forge.set_status(SHOP, Sha("1" * 40), status_of("green"))


def test_a_branch_is_protected_where_the_forge_says_so(forge: Github, shop: Repository, pull: Pull) -> None:
    shop.protected.add("main")
    found = {name: forge.protected(SHOP, name) for name in ("main", pull.head_ref, "not-there", "a/b", "-x")}
    assert {"main": True, pull.head_ref: False, "not-there": False, "a/b": False, "-x": False} == found

"""Real git against the simulated GitHub: who may fetch and push what, and what follows from a push."""

from __future__ import annotations

import base64
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.world import Repository, User, World
from tests.world.gitrepo import clean_environment


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path / "world") as world:
        yield world


@pytest.fixture
def shop(world: World) -> Repository:
    return world.repo("acme/shop", files={"a.txt": "one\n"}).allow("alice", "write").allow("reader", "read")


def git(
    *args: str, at: Path | None = None, user: User | None = None, token: str = ""
) -> subprocess.CompletedProcess[str]:
    secret = user.token if user else token
    basic = base64.b64encode(f"x:{secret}".encode()).decode()
    header = ["-c", f"http.extraHeader=Authorization: Basic {basic}"] if secret else []
    who = ["-c", "user.name=x", "-c", "user.email=x@y"]
    env = clean_environment() | {"GIT_TERMINAL_PROMPT": "0"}
    return subprocess.run(
        ["git", *header, *who, *args], cwd=at, env=env, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def clone(world: World, shop: Repository, tmp_path: Path) -> Path:
    here = tmp_path / "clone"
    assert 0 == git("clone", "-q", shop.clone_url, str(here)).returncode
    git("commit", "-q", "--allow-empty", "-m", "Mine", at=here)
    return here


def test_what_is_public_is_read_by_anybody_and_written_by_nobody(world: World, shop: Repository, clone: Path) -> None:
    refused = git("push", "origin", "HEAD:refs/heads/x", at=clone)
    assert (128, ["main"]) == (refused.returncode, list(shop.branches))
    assert 401 in [request.status for request in world.requests]


def test_what_is_private_is_read_with_a_token_that_may(world: World, shop: Repository) -> None:
    shop.private = True
    stranger = world.user("stranger")
    codes = [git("ls-remote", shop.clone_url, user=who).returncode for who in (None, stranger, world.user("reader"))]
    assert [128, 128, 0] == codes
    assert 404 in [request.status for request in world.requests]


def test_a_token_that_is_no_good_is_refused_even_where_none_is_needed(shop: Repository) -> None:
    assert 128 == git("ls-remote", shop.clone_url, token="ghp_wrong").returncode


def test_writing_needs_the_right_to(world: World, shop: Repository, clone: Path) -> None:
    refused = git("push", "origin", "HEAD:refs/heads/x", at=clone, user=world.user("reader"))
    assert (128, "403" in refused.stderr) == (refused.returncode, True)
    assert 0 == git("push", "origin", "HEAD:refs/heads/x", at=clone, user=world.user("alice")).returncode
    assert {"main", "x"} == set(shop.branches)


def test_a_push_moves_the_pull_request_and_is_told(world: World, shop: Repository, clone: Path) -> None:
    pull = shop.pull(head="topic", files={"b.txt": "x"}, author="alice")
    before = pull.head_sha
    assert 0 == git("push", "--force", "origin", "HEAD:refs/heads/topic", at=clone, user=world.user("alice")).returncode
    told = world.told("pull_request", "synchronize", number=pull.number).payload
    assert (before, shop.sha("topic")) == (told["before"], told["after"])
    assert shop.sha("topic") == pull.head_sha == shop.git.refs()["refs/pull/1/head"]
    assert world.told("push").payload["forced"]


def test_a_fork_is_fetched_from_the_base_repository(world: World, shop: Repository, clone: Path) -> None:
    pull = shop.pull(head="fix", files={"b.txt": "x"}, author="mallory", fork=True)
    assert "fix" not in shop.branches
    assert 0 == git("fetch", "-q", "origin", "refs/pull/1/head", at=clone).returncode
    assert pull.head_sha == git("rev-parse", "FETCH_HEAD", at=clone).stdout.strip()
    pull.push({"b.txt": "y"})
    assert pull.head_sha == shop.git.refs()["refs/pull/1/head"]


def test_a_commit_is_fetched_by_its_sha(shop: Repository, clone: Path) -> None:
    sha = shop.commit({"c.txt": "x"}, branch="other")
    assert 0 == git("fetch", "-q", "origin", sha, at=clone).returncode


def test_a_protected_branch_and_a_pull_requests_ref_take_no_push(world: World, shop: Repository, clone: Path) -> None:
    shop.protect("main")
    alice = world.user("alice")
    before = shop.git.refs()
    protected = git("push", "origin", "HEAD:refs/heads/main", at=clone, user=alice)
    hidden = git("push", "origin", "HEAD:refs/pull/1/head", at=clone, user=alice)
    assert (True, True) == ("GH006" in protected.stderr, hidden.returncode != 0)
    assert before == shop.git.refs()


def test_a_claim_is_won_by_one_of_two_pushes_with_an_empty_lease(world: World, shop: Repository, clone: Path) -> None:
    alice, ref = world.user("alice"), "refs/heads/claims/7"
    codes = []
    for message in ("one", "two"):
        git("commit", "-q", "--allow-empty", "-m", message, at=clone)
        lease = ["push", "-q", f"--force-with-lease={ref}:", "origin", f"HEAD:{ref}"]
        codes.append(git(*lease, at=clone, user=alice).returncode)
    assert [0, 1] == codes


def test_a_pack_above_a_megabyte_arrives(world: World, shop: Repository, clone: Path) -> None:
    import random

    (clone / "large.bin").write_bytes(random.Random(7).randbytes(3_000_000))
    git("add", ".", at=clone)
    git("commit", "-q", "-m", "Large", at=clone)
    pushed = git("push", "-q", "origin", "HEAD:refs/heads/large", at=clone, user=world.user("alice"))
    assert 0 == pushed.returncode, pushed.stderr
    head = git("rev-parse", "HEAD", at=clone).stdout.strip()
    assert head == shop.sha("large")
    assert any(request.headers.get("transfer-encoding") == "chunked" for request in world.requests)


def test_git_fails_slows_and_stops_on_order(world: World, shop: Repository) -> None:
    world.fail_next("/acme/shop.git/*", 503)
    assert "503" in git("ls-remote", shop.clone_url).stderr
    assert 0 == git("ls-remote", shop.clone_url).returncode
    world.slow("/acme/shop.git/*", 0.5, times=1)
    begun = time.monotonic()
    assert 0 == git("ls-remote", shop.clone_url).returncode
    assert 0.5 <= time.monotonic() - begun
    world.down()
    assert 128 == git("ls-remote", shop.clone_url).returncode
    world.up()
    assert 0 == git("ls-remote", shop.clone_url).returncode


def test_a_host_that_goes_down_cuts_the_connections_that_are_open(world: World, shop: Repository) -> None:
    with requests.Session() as session:
        url = f"{world.api_url}/repos/acme/shop"
        assert 200 == session.get(url, timeout=60).status_code
        world.down()
        with pytest.raises(requests.ConnectionError):
            session.get(url, timeout=60)
        world.up()
        assert 200 == session.get(url, timeout=60).status_code

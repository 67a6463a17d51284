"""The GitHub client as a GitHub App: signed with its key, let in by tokens that end."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.errors import Forbidden, Gone, Unavailable, UserError
from bot.forges import CommitStatus
from bot.forges.github import Settings, connect
from bot.forges.github.client import Github
from bot.model import Actor, IssueRef, Permission, PullRef, Repo, Sha
from tests.bot.surroundings import around
from tests.world import App, Installation, Repository, World

SHOP, TOOLS, OTHER = (Repo("github", name) for name in ("acme/shop", "acme/tools", "other/repo"))


@dataclass(slots=True)
class Scene:
    world: World
    app: App
    shop: Repository
    acme: Installation
    other: Installation
    forge: Github

    def tokens(self) -> int:
        return len(self.world.asked("POST /app/installations/*/access_tokens"))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with World(tmp_path / "world") as world:
        now = datetime.now(UTC)
        world.clock = lambda: now
        app = world.app("leadsman")
        shop = world.repo("acme/shop", private=True)
        acme = world.install(app, shop, world.repo("acme/tools", private=True))
        other = world.install(app, world.repo("other/repo"))
        forge = connect_as(app, world, tmp_path)
        yield Scene(world, app, shop, acme, other, forge)
        forge.close()


def connect_as(app: App, world: World, base: Path, *, app_id: int | None = None) -> Github:
    (base / "key.pem").write_text(app.private_key)
    settings = Settings(
        kind="github",
        api_url=world.api_url,
        app_id=app_id or app.id,
        private_key_file="key.pem",
        write_pause_seconds=0.0,
    )
    return connect("github", settings, around(base, world=world))


def test_an_app_is_its_bot_account(scene: Scene) -> None:
    bot = Actor("leadsman[bot]", str(scene.app.bot.id), is_bot=True)
    assert bot == scene.forge.me() == scene.forge.me()
    assert 1 == len(scene.world.asked("/app"))


def test_an_installation_that_is_suspended_keeps_the_bot_from_no_other(scene: Scene) -> None:
    scene.acme.suspended_at = scene.world.now()
    assert "leadsman[bot]" == scene.forge.me().login
    assert "main" == scene.forge.repository(OTHER).default_branch
    with pytest.raises(Forbidden, match="suspended"):
        scene.forge.repository(SHOP)


def test_what_it_posts_is_its_bots(scene: Scene) -> None:
    issue = scene.shop.issue("Broken", author="alice")
    posted = scene.forge.comment(on := IssueRef(SHOP, issue.number), scene.forge.post(on, "hello"))
    assert scene.forge.me() == posted.author


def test_each_repository_gets_one_token_of_its_own(scene: Scene) -> None:
    for _ in range(3):
        scene.forge.repository(SHOP)
        scene.forge.repository(TOOLS)
    made = [request.json for request in scene.world.asked("POST /app/installations/*/access_tokens")]
    assert [{"repositories": ["shop"]}, {"repositories": ["tools"]}] == made
    access = scene.forge.git(SHOP)
    assert access.token is not None
    viewer = scene.world.viewer(access.token.reveal())
    assert viewer is not None
    assert frozenset({"acme/shop"}) == viewer.repositories
    assert ("x-access-token", 2) == (access.username, scene.tokens())


def test_sixteen_threads_at_once_borrow_one_token(scene: Scene) -> None:
    with ThreadPoolExecutor(16) as pool:
        facts = list(pool.map(scene.forge.repository, [SHOP] * 16))
    assert (16, 1) == (len(facts), scene.tokens())


def test_a_token_is_renewed_before_it_ends(scene: Scene) -> None:
    scene.forge.repository(SHOP)
    start = scene.world.now()
    for minutes, tokens in ((45, 1), (51, 2), (90, 2), (102, 3)):
        moment = start + timedelta(minutes=minutes)
        scene.world.clock = lambda at=moment: at  # type: ignore[misc]
        scene.forge.repository(SHOP)
        assert tokens == scene.tokens(), minutes


def test_a_token_for_git_lives_long_enough_for_a_push(scene: Scene) -> None:
    scene.forge.repository(SHOP)
    later = scene.world.now() + timedelta(minutes=51)
    scene.world.clock = lambda: later
    token = scene.forge.git(SHOP).token
    much_later = later + timedelta(minutes=9)
    scene.world.clock = lambda: much_later
    assert token is not None
    assert scene.world.viewer(token.reveal()) is not None


def test_a_token_that_was_revoked_is_replaced_at_the_next_try(scene: Scene) -> None:
    first = scene.forge.git(SHOP).token
    assert first is not None
    later = scene.world.now() + timedelta(minutes=5)
    scene.world.clock = lambda: later
    scene.world.revoke(first.reveal())
    with pytest.raises(Unavailable, match="fresh token"):
        scene.forge.repository(SHOP)
    assert "main" == scene.forge.repository(SHOP).default_branch


def test_a_fresh_token_that_is_refused_is_not_asked_for_again_and_again(scene: Scene) -> None:
    scene.forge.repository(SHOP)
    scene.world.fail_next("/repos/acme/shop", 403)
    with pytest.raises(Forbidden):
        scene.forge.repository(SHOP)


def test_a_repository_without_the_app_is_gone(scene: Scene) -> None:
    scene.world.repo("acme/none")
    with pytest.raises(Gone, match="installation on acme/none"):
        scene.forge.repository(Repo("github", "acme/none"))


def test_an_app_that_was_installed_again_is_found_again(scene: Scene) -> None:
    scene.forge.repository(SHOP)
    del scene.world.installations[scene.acme.id]
    scene.world.install(scene.app, scene.shop)
    later = scene.world.now() + timedelta(hours=2)
    scene.world.clock = lambda: later
    with pytest.raises(Gone):
        scene.forge.repository(SHOP)
    assert "main" == scene.forge.repository(SHOP).default_branch


def test_an_app_that_is_installed_nowhere_says_so(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        forge = connect_as(world.app("leadsman"), world, tmp_path)
        with pytest.raises(Forbidden, match="installed nowhere"):
            forge.me()
        forge.close()


def test_the_key_of_another_app_is_forbidden(scene: Scene, tmp_path: Path) -> None:
    forge = connect_as(scene.app, scene.world, tmp_path, app_id=scene.world.app("another").id)
    with pytest.raises(Forbidden, match="could not be decoded"):
        forge.repository(SHOP)
    forge.close()


def test_the_limit_of_one_installation_holds_up_no_other(scene: Scene) -> None:
    for repo in (SHOP, TOOLS, OTHER):
        scene.forge.repository(repo)
    scene.world.exhaust(scene.acme, seconds=600)
    with pytest.raises(Unavailable) as caught:
        scene.forge.repository(SHOP)
    asked = len(scene.world.requests)
    with pytest.raises(Unavailable) as same:
        scene.forge.repository(TOOLS)
    assert (caught.value.retry_at, asked) == (same.value.retry_at, len(scene.world.requests))
    assert "main" == scene.forge.repository(OTHER).default_branch


def test_a_forge_that_is_slow_for_one_repository_is_quick_for_another(scene: Scene) -> None:
    scene.forge.repository(OTHER)
    scene.world.slow("/repos/acme/shop/installation", 20)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(scene.forge.repository, SHOP)
        assert "main" == scene.forge.repository(OTHER).default_branch
        assert not waiting.done()
        scene.world.closing.set()
        assert "main" == waiting.result(timeout=60).default_branch


def test_an_app_reads_permissions_and_pull_requests(scene: Scene) -> None:
    scene.shop.allow("alice", "maintain")
    pull = scene.shop.pull(head="topic", files={"a": "b"}, author="alice")
    alice = Actor("alice", str(scene.world.user("alice").id))
    assert Permission.MAINTAIN == scene.forge.permission(SHOP, alice)
    assert ("a",) == scene.forge.changed_files(PullRef(SHOP, pull.number))


@pytest.mark.parametrize(
    "content", ["no key", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"]
)
def test_a_file_without_a_key_is_refused_at_once(tmp_path: Path, content: str) -> None:
    (tmp_path / "key.pem").write_text(content)
    settings = Settings(kind="github", app_id=7, private_key_file="key.pem")
    with pytest.raises(UserError, match=r"\[forges.gh\] private_key_file: key.pem holds no RSA private key"):
        connect("gh", settings, around(tmp_path))


def test_no_token_and_no_key_stands_in_a_url(scene: Scene) -> None:
    scene.forge.me()
    scene.forge.repository(SHOP)
    secrets = [request.headers["authorization"].partition(" ")[2] for request in scene.world.requests]
    assert 2 < len(set(secrets))
    assert all(secret not in request.url for secret in secrets for request in scene.world.requests)


@pytest.mark.parametrize(("grade", "conclusion"), [("green", "success"), ("red", "failure"), ("neutral", "neutral")])
def test_an_app_sets_a_check_run_which_has_a_word_for_neither(scene: Scene, grade: str, conclusion: str) -> None:
    pull = scene.shop.pull(head="topic", files={"a": "b"}, author="alice")
    status = CommitStatus(name="leadsman/fix", grade=grade, text="held", url="https://x.example/", run="r-1")  # type: ignore[arg-type]
    scene.forge.set_status(SHOP, Sha(pull.head_sha), status)
    (shown,) = scene.shop.check_runs
    assert (pull.head_sha, "leadsman/fix", "completed", conclusion, "r-1") == (
        shown.head_sha,
        shown.name,
        shown.status,
        shown.conclusion,
        shown.external_id,
    )
    assert {"title": "held", "summary": "held"} == shown.output

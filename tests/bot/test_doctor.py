"""`leadsman doctor`: each line says ok, or what is lost and what to do. The installed script against a GitHub."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.cli.clicked import Setting
from bot.cli.doctor import findings
from bot.finding import Finding
from tests.stories.nursery import leadsman
from tests.world import App, Repository, World
from tests.world.state import Hook

URL = "https://bot.example"
DOOR = f"{URL}/webhooks/github"

CONFIG = """\
[server]
public_url = "{url}"

[forges.github]
kind = "github"
api_url = "{api_url}"
{way_in}
webhook_secret_env = {secrets}
poll_seconds = {poll_seconds}

[[project]]
name = "shop"
forge = "github"
repository = "acme/shop"
"""


@dataclass
class House:
    """A configured home, and the GitHub that it is for."""

    folder: Path
    world: World
    shop: Repository
    way_in: str = 'token_env = "BOT_TOKEN"'
    url: str = URL
    poll_seconds: int = 60
    secrets: str = '["HOOK_SECRET"]'
    more: str = ""
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.environ = {"BOT_TOKEN": self.world.user("leadsman-bot").token, "HOOK_SECRET": "hush"}

    def configured(self) -> Path:
        config = self.folder / "leadsman.toml"
        config.touch(0o600)
        about = {"url": self.url, "api_url": self.world.api_url, "way_in": self.way_in, "secrets": self.secrets}
        config.write_text(CONFIG.format(**about, poll_seconds=self.poll_seconds) + self.more)
        return config

    def about(self, subject: str) -> list[tuple[str, str]]:
        """The lines on it: (verdict, text)."""
        return [(found.verdict, found.what) for found in self.lines() if found.subject == subject]

    def lines(self) -> list[Finding]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environ.items():
                patch.setenv(name, value)
            setting = Setting(home=self.folder / "home", config_file=self.configured(), verbose=False)
            return list(findings(setting))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with World(tmp_path / "world") as world:
        shop = world.repo("acme/shop").allow("leadsman-bot", "admin")
        shop.protect("main")
        yield House(tmp_path, world, shop)


def good_hook(house: House, **about: Any) -> Hook:
    hook = house.shop.hook(DOOR, secret="hush")
    for name, value in about.items():
        setattr(hook, name, value)
    return hook


def answered(house: House, hook: Hook, *codes: int) -> None:
    """The webhook has delivered, one comment after the other, and this was answered."""
    url, hook.url = hook.url, "http://127.0.0.1:1/"
    for code in codes:
        told = house.shop.issue("Broken", author="bob").comment("bob", "hello")
        (attempt,) = house.world.send(told)
        hook.attempts[-1] = type(attempt)(
            attempt.id, told, attempt.repository_id, attempt.at, again=False, code=code, status=f"{code}"
        )
    hook.url = url


def test_all_is_well_where_all_is_well(house: House) -> None:
    answered(house, good_hook(house), 202)
    house.configured()
    done = leadsman("doctor", "--json", cwd=house.folder, environ=house.environ)
    lines = json.loads(done.out)
    assert (0, "", set()) == (done.code, done.err, {line["what"] for line in lines if line["verdict"] != "ok"})
    subjects = {line["subject"] for line in lines}
    parts = {"git", "tmux", "disk", "home", "store", "configuration", "[forges.github]", "/webhooks/github"}
    assert parts | {"project shop", "acme/shop webhook", "acme/shop main"} <= subjects


def test_a_person_reads_it_as_a_table_and_how_much_is_wrong(house: House) -> None:
    house.shop.allow("leadsman-bot", "read")
    house.configured()
    done = leadsman("doctor", cwd=house.folder, environ=house.environ)
    assert 1 == done.code
    assert re.search(r"^wrong +project shop +the bot may not even see who may do what there", done.out, re.MULTILINE)
    assert re.fullmatch(r"1 of \d+ are wrong\.\n", done.err)


@pytest.mark.parametrize(
    ("scopes", "verdict", "text"),
    [
        (("repo", "workflow"), "ok", "a classic token with the scopes repo, workflow"),
        (("public_repo",), "warning", "private repositories can't be seen; for these give it the scope repo"),
        (("gist",), "wrong", "a classic token with the scopes gist: nothing can be pushed or answered; give it the"),
        ((), "wrong", "a classic token with the scopes none: nothing can be pushed or answered"),
        (None, "ok", "a fine-grained token: it needs contents, issues and pull requests (read and write) there"),
    ],
)
def test_it_tells_what_a_token_may_not(house: House, scopes: tuple[str, ...] | None, verdict: str, text: str) -> None:
    house.world.user("leadsman-bot").scopes = scopes
    found = house.about("[forges.github]")
    assert [verdict] == [v for v, what in found if text in what], found


@pytest.mark.parametrize(
    ("secrets", "more", "expected"),
    [
        (
            "[]",
            "",
            (
                "warning",
                "has no webhook secret: what is delivered there is refused (403). Name one with webhook_secret_env",
            ),
        ),
        ("[]", 'webhook_secret_env = ["HOOK_SECRET"]\n', ("ok", "takes deliveries; live secrets: 1")),
        (
            "[]",
            (
                'webhook_secret_env = ["HOOK_SECRET"]\n'
                '[[project]]\nname = "blog"\nforge = "github"\nrepository = "acme/blog"\n'
            ),
            (
                "warning",
                (
                    "no webhook secret is for acme/blog: what is delivered of it is refused (401). "
                    "Name one with webhook_secret_env, there or under its [[project]]"
                ),
            ),
        ),
    ],
)
def test_it_tells_whose_deliveries_are_refused(
    house: House, secrets: str, more: str, expected: tuple[str, str]
) -> None:
    house.secrets, house.more = secrets, more
    assert [expected] == house.about("/webhooks/github")


def test_a_token_that_is_refused_is_said_and_the_rest_is_looked_at(house: House) -> None:
    house.environ["BOT_TOKEN"] = "ghp_wrong"
    (line,) = house.about("[forges.github]")
    assert ("wrong", True) == (line[0], "401" in line[1])
    assert line[1].endswith(": give the bot that right, or a token or key that is valid")
    assert [("ok", "takes deliveries; live secrets: 1")] == house.about("/webhooks/github")


def app_of(house: House, **permissions: str) -> App:
    app = house.world.app("leadsman", **permissions)
    (house.folder / "key.pem").write_text(app.private_key)
    house.way_in = f'app_id = {app.id}\nprivate_key_file = "key.pem"'
    house.world.install(app, house.shop)
    return app


def test_it_tells_which_permissions_an_app_lacks_and_what_is_lost(house: House) -> None:
    house.world.hook(app_of(house, issues="read"), DOOR)
    found = house.about("[forges.github]")
    text = "the App leadsman lacks permissions: issues: write (issues can't be answered); give it these"
    assert ("wrong", text) in found


def test_an_apps_own_webhook_counts(house: House) -> None:
    app = app_of(house)
    answered(house, house.world.hook(app, DOOR), 202)
    assert ("ok", "the App leadsman has the permissions it needs") in house.about("[forges.github]")
    assert [
        ("ok", f"app points to {DOOR} and brings all that is needed"),
        ("ok", "its latest delivery was answered 202: it arrives, and its secret is right"),
    ] == house.about("acme/shop webhook")


@pytest.mark.parametrize(("seconds", "side"), [(95, "ahead of"), (-95, "behind")])
def test_a_clock_that_is_off_is_told(house: House, seconds: int, side: str) -> None:
    clock = house.world.clock
    house.world.clock = lambda: clock() - timedelta(seconds=seconds)
    (text,) = [what for verdict, what in house.about("[forges.github]") if verdict == "wrong"]
    assert f" s {side} its clock: an App's key is not accepted" in text
    assert text.endswith("set it by NTP")


def test_without_the_right_to_see_webhooks_it_tells_what_is_lost(house: House) -> None:
    house.shop.allow("leadsman-bot", "write")
    ((verdict, text),) = house.about("acme/shop webhook")
    assert "warning" == verdict
    assert "so deliveries that fail while the server is away are not sent again" in text
    assert "serve looks there every 60 s instead" in text
    assert text.endswith(
        "give the bot the admin role there, and its token or App the right to webhooks (read and write)"
    )


@pytest.mark.parametrize(
    ("poll_seconds", "verdict", "lost"),
    [
        (60, "warning", "serve looks there every 60 s instead"),
        (0, "wrong", "nothing that happens there is noticed ([forges.github] poll_seconds = 0)"),
    ],
)
def test_without_a_webhook_it_tells_what_takes_its_place(
    house: House, poll_seconds: int, verdict: str, lost: str
) -> None:
    house.poll_seconds = poll_seconds
    ((found, text),) = house.about("acme/shop webhook")
    assert (verdict, True) == (found, text.startswith(f"none points here: {lost}"))
    assert f"add one to {DOOR}: content type application/json, the secret; issue comments" in text


def test_a_webhook_that_points_to_where_the_server_was_is_named(house: House) -> None:
    house.shop.hook("https://old.example/webhooks/github")
    ((_, text),) = house.about("acme/shop webhook")
    assert text.startswith(f"none points to {DOOR}, but one to https://old.example/webhooks/github: ")


@pytest.mark.parametrize(
    ("about", "text"),
    [
        ({"active": False}, "it is switched off: switch it on"),
        ({"content_type": "form"}, "it sends forms, which the door refuses (415): set its content type to"),
        ({"events": ["push", "issues"]}, "it does not bring issue_comment, pull_request: tick these events"),
    ],
)
def test_a_webhook_that_is_set_up_wrongly_is_told(house: House, about: dict[str, Any], text: str) -> None:
    good_hook(house, **about)
    (verdict, what), _ = house.about("acme/shop webhook")
    assert ("warning", True) == (verdict, what.startswith(text)), what


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((), [("ok", "it has delivered nothing yet, so its secret is not known to be right")]),
        (
            (502, 202),
            [("ok", "its latest delivery was answered 202"), ("warning", "not arrived, serve has them sent again: 1")],
        ),
        (
            (401,),
            [("wrong", "its latest delivery was answered 401: its secret is none of"), ("warning", "not arrived")],
        ),
        (
            (502,),
            [("wrong", f"its latest delivery was answered 502: {DOOR} was not reached"), ("warning", "not arrived")],
        ),
    ],
)
def test_it_tells_whether_deliveries_arrive(
    house: House, codes: tuple[int, ...], expected: list[tuple[str, str]]
) -> None:
    answered(house, good_hook(house), *codes)
    found = house.about("acme/shop webhook")[1:]
    assert [verdict for verdict, _ in expected] == [verdict for verdict, _ in found]
    for (_, start), (_, what) in zip(expected, found, strict=True):
        assert what.startswith(start), what


def test_an_open_default_branch_and_a_closed_publish_branch_are_told(house: House) -> None:
    house.shop.protected.clear()
    house.shop.rules |= {"leadsman/publish": ("pull_request", "non_fast_forward"), "leadsman/run/*": ("creation",)}
    ((verdict, main),) = house.about("acme/shop main")
    assert ("warning", True) == (verdict, main.startswith("is not protected on GitHub: Leadsman pushes nothing there"))
    do = (
        "what a run publishes there may be refused; put the bot on the bypass list, or leave the branch out of the rule"
    )
    assert [("warning", f"it takes pull requests only: {do}")] == house.about("acme/shop leadsman/publish")
    (run,) = house.about("acme/shop leadsman/run/20260101-000000-abcdef")
    assert ("warning", f"only those on its bypass list may make it: {do}") == run


def test_a_protected_default_branch_is_well(house: House) -> None:
    assert [("ok", "is protected on GitHub, too")] == house.about("acme/shop main")
    house.shop.protected.clear()
    house.shop.rules["main"] = ("pull_request",)
    assert [("ok", "is protected on GitHub, too")] == house.about("acme/shop main")


def test_without_permission_to_push_it_says_so(house: House) -> None:
    house.shop.allow("leadsman-bot", "triage")
    (wrong,) = [what for verdict, what in house.about("project shop") if verdict == "wrong"]
    assert wrong.startswith("the bot may not even see who may do what there (GitHub answered 403")
    assert wrong.endswith("it can't push what runs publish, nor set claims; give it write")
    assert [("ok", "is protected on GitHub, too")] == house.about("acme/shop main")


def test_what_is_not_reached_or_not_there_is_told_with_what_to_do(house: House) -> None:
    house.more = (
        '[forges.gone]\nkind = "github"\ntoken_env = "BOT_TOKEN"\napi_url = "http://127.0.0.1:1"\n'
        '[forges.here]\nkind = "local"\n'
        '[[project]]\nname = "abacus"\nforge = "here"\nrepository = "demo/abacus"\n'
        '[[project]]\nname = "blog"\nforge = "github"\nrepository = "acme/blog"\n'
    )
    lost = "(or its base branch) is not there, or not for the bot: correct its [[project]]"
    unreached = "GitHub can't be reached for the bot's own account (ConnectionError)"
    expected = {
        "[forges.gone]": f"{unreached}: see that it runs and can be reached from here, then ask again",
        "project abacus": f"demo/abacus {lost}; `leadsman local init-repo demo/abacus` makes it",
        "project blog": f"acme/blog {lost}; let the bot see it",
    }
    wrong = {line.subject: line.what for line in house.lines() if line.verdict == "wrong"}
    assert expected == {subject: text for subject, text in wrong.items() if subject in expected}


def test_a_home_that_can_not_be_is_one_of_its_lines(tmp_path: Path) -> None:
    (tmp_path / "leadsman.toml").touch()
    (tmp_path / "home").touch()
    setting = Setting(home=tmp_path / "home", config_file=tmp_path / "leadsman.toml", verbose=False)
    found = {finding.subject: finding.verdict for finding in findings(setting)}
    assert ("ok", "wrong") == (found["git"], found["home"])


def test_the_local_forge_needs_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "leadsman.toml").write_text('[forges.here]\nkind = "local"\nroot = "repos"\n')
    done = leadsman("doctor", "--json", cwd=tmp_path)
    lines = json.loads(done.out)
    assert 0 == done.code
    assert [] == [line for line in lines if line["verdict"] == "wrong"]
    assert not any("GitHub" in line["what"] for line in lines)

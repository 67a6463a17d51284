"""Reading the configuration: which file counts, and what it comes to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.config import Config, find, load
from bot.cpus import host_size
from bot.errors import UsageError
from bot.model import Repo
from bot.trackers.redmine import Settings as Redmine

EXAMPLE = """
[server]
listen = "127.0.0.1:8780"
public_url = "https://leadsman.example.org/"

[store]
url = "sqlite"

[forges.github]
kind = "github"
api_url = "https://api.github.com"
token_env = "LEADSMAN_GITHUB_TOKEN"
webhook_secret_env = ["LEADSMAN_GITHUB_SECRET"]

[trackers.work]
kind = "redmine"
url = "https://redmine.example.org"
api_key_env = "LEADSMAN_REDMINE_KEY"

[[project]]
name = "shop"
forge = "github"
repository = "acme/shop"
tracker = "work"
tracker_project = "shop"
base = "main"
max_parallel = 1

[[task]]
name = "fix"
run = ["./tools/agent", "--fix"]
projects = ["*"]
difficulty = "medium"
passes = 1
publish = "run"
on_push = "outdated"
env = ["LANG", "OPENAI_API_KEY"]

[[task.verify]]
run = ["python", "-m", "pytest", "-q"]
repeat = 1
red_at_base = ["tests/**"]

[[rule]]
on = "issues.labeled"
if = { label = "bot" }
task = "fix"

[fleet]
slots = 4
max_concurrent_turns = 1
[budget]
per_turn_seconds = 90
[publish]
branch = "leadsman/publish"
author = "Leadsman <leadsman@localhost>"
never = ["main", "master", "release/*"]
"""

SET = {"LEADSMAN_GITHUB_TOKEN": "t", "LEADSMAN_GITHUB_SECRET": "s", "LEADSMAN_REDMINE_KEY": "k"}


def loaded(text: str, folder: Path, environ: dict[str, str] | None = None) -> Config:
    file = folder / "leadsman.toml"
    file.write_text(text)
    return load(file, environ or {}, home=folder / "home")


def test_the_whole_example_is_read_as_it_stands(tmp_path: Path) -> None:
    config = loaded(EXAMPLE, tmp_path, SET)
    assert ("127.0.0.1", 8780) == config.server.address
    assert "https://leadsman.example.org" == config.server.url
    assert ["shop"] == [project.name for project in config.projects]
    assert "main" == config.projects[0].base
    assert ("./tools/agent", "--fix") == config.tasks[0].run
    assert ("tests/**",) == config.tasks[0].verify[0].red_at_base
    assert "bot" == config.rules[0].if_.label
    assert (4, None) == (config.fleet.slots, config.fleet.max_concurrent)
    assert ("Leadsman", "leadsman@localhost") == config.publish.identity
    tracker = config.trackers["work"]
    assert isinstance(tracker, Redmine)
    assert ("In Progress", "New") == (tracker.claim_status, tracker.claimable_status)
    assert frozenset(SET) == config.secret_names
    assert () == config.warnings


def test_without_a_file_everything_is_at_its_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load(None, {}, home=tmp_path)
    assert config.source is None
    assert tmp_path == config.base
    assert "http://127.0.0.1:8780" == config.server.url
    assert ((), (), {}) == (config.projects, config.tasks, config.forges)
    assert {"easy": 1, "medium": 3, "hard": 5, "diploma": 8} == config.budget.turns


def test_the_given_file_counts_then_the_one_here_then_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, users, given = tmp_path / "here", tmp_path / "xdg/leadsman", tmp_path / "given.toml"
    here.mkdir()
    users.mkdir(parents=True)
    monkeypatch.chdir(here)
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert find(None, environ) is None
    (users / "leadsman.toml").touch()
    assert users / "leadsman.toml" == find(None, environ)
    (here / "leadsman.toml").touch()
    assert Path("leadsman.toml") == find(None, environ)
    given.touch()
    assert given == find(given, environ)


def test_the_users_file_is_below_dot_config_where_nothing_else_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "user/.config/leadsman"
    folder.mkdir(parents=True)
    (folder / "leadsman.toml").touch()
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    environ = {"HOME": str(tmp_path / "user")}
    assert folder / "leadsman.toml" == find(None, environ)
    assert folder / "leadsman.toml" == find(None, {**environ, "XDG_CONFIG_HOME": "relative"})
    assert find(None, {**environ, "XDG_CONFIG_HOME": str(tmp_path)}) is None


def test_a_given_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no configuration file at .*nowhere\.toml"):
        find(tmp_path / "nowhere.toml", {})


def test_a_file_that_can_not_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"The configuration file /proc/self/mem can't be read: Input/output error\."):
        load(Path("/proc/self/mem"), {}, home=tmp_path)  # also root can't read its first byte


def test_paths_are_relative_to_the_file_and_not_to_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/leadsman.toml").touch()
    monkeypatch.chdir(tmp_path)
    config = load(Path("etc/leadsman.toml"), {}, home=tmp_path)
    assert tmp_path / "etc/keys/sign" == config.path("keys/sign")
    assert Path("/keys/sign") == config.path("/keys/sign")


def test_a_named_variable_that_is_not_set_is_a_warning_with_its_line(tmp_path: Path) -> None:
    config = loaded(EXAMPLE, tmp_path, {**SET, "LEADSMAN_GITHUB_TOKEN": ""})
    assert [("[forges.github]", "token_env", "the environment variable LEADSMAN_GITHUB_TOKEN is not set")] == [
        (warning.table, warning.key, warning.what) for warning in config.warnings
    ]
    assert str(config.warnings[0]).startswith(f"{tmp_path}/leadsman.toml:12: ")


def test_a_secrets_file_that_is_not_there_is_a_warning_with_its_line(tmp_path: Path) -> None:
    text = '[forges.gh]\nkind = "github"\ntoken_file = "keys/token"\n'
    file = tmp_path / "leadsman.toml"
    file.touch(0o600)
    (warning,) = loaded(text, tmp_path).warnings
    assert f"{file}:3: [forges.gh] token_file: there is no file {tmp_path}/keys/token" == str(warning)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/token").touch()
    assert () == loaded(text, tmp_path).warnings


def test_more_passes_than_this_host_has_are_a_warning(tmp_path: Path) -> None:
    text = '[[task]]\nname = "a"\nrun = ["x"]\npasses = "all"\n[[task.verify]]\nrun = ["x"]\npasses = 9999\n'
    (warning,) = loaded(text, tmp_path).warnings
    said = f"7: [[task.verify]] passes: this host has {host_size()}: what asks for 9999 is not started here"
    assert f"{tmp_path}/leadsman.toml:{said}" == str(warning)


@pytest.mark.parametrize("listen", ["0.0.0.0:8780", "[::]:8780"])
def test_links_that_would_lead_nowhere_are_a_warning(listen: str, tmp_path: Path) -> None:
    text = f'[server]\nlisten = "{listen}"\n'
    assert [f"links would lead to http://{listen}; set public_url, too"] == [
        warning.what for warning in loaded(text, tmp_path).warnings
    ]
    assert () == loaded(f'{text}public_url = "https://leadsman.example.org"\n', tmp_path).warnings


def test_a_repository_is_found_as_its_forge_spells_it_or_not(tmp_path: Path) -> None:
    config = loaded(EXAMPLE, tmp_path)
    assert config.projects[0] == config.project_of(Repo("github", "Acme/Shop"))
    assert config.project_of(Repo("other", "acme/shop")) is None
    assert config.project_of(Repo("github", "acme/shop2")) is None


@pytest.mark.parametrize(
    ("address", "listen"),
    [
        (("127.0.0.1", 0), "127.0.0.1:0"),
        (("::1", 8780), "[::1]:8780"),
        (("localhost", 65535), "localhost:65535"),
        (("0.0.0.0", 80), "0.0.0.0:80"),
    ],
)
def test_the_server_listens_at_an_address_and_a_port(address: tuple[str, int], listen: str, tmp_path: Path) -> None:
    assert address == loaded(f'[server]\nlisten = "{listen}"\n', tmp_path).server.address


def test_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    (tmp_path / "leadsman.toml").write_bytes(b"[fleet]\r\nslots = 7\r\n")
    assert 7 == load(tmp_path / "leadsman.toml", {}, home=tmp_path).fleet.slots


def test_a_byte_order_mark_at_its_beginning_is_no_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "leadsman.toml"
    file.write_bytes(b"\xef\xbb\xbf[fleet]\r\nslots = 7\r\n")
    assert 7 == load(file, {}, home=tmp_path).fleet.slots


@pytest.mark.parametrize("kind", ["folder", "dangling link", "pipe"])
def test_something_in_its_place_that_is_no_file_is_not_passed_over(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    there = Path("leadsman.toml")
    match kind:
        case "folder":
            there.mkdir()
        case "dangling link":
            there.symlink_to("nowhere")
        case _:
            os.mkfifo(there)
    with pytest.raises(UsageError, match=r"^leadsman\.toml is no file, so it can't be read\."):
        load(None, {}, home=tmp_path)

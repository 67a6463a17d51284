"""A repository's own file: taken within what the server allows, and never a danger to the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.config import Config, ConfigErrors, RepoFile, load, repository_file

SERVER = """
[forges.gh]
kind = "github"
token_env = "SECRET_TOKEN"
[[task]]
name = "fix"
run = ["server-fix"]
[publish]
never = ["main", "release/*"]
"""
ORIGIN = ".leadsman.toml at 0000 of main"


@pytest.fixture
def server(tmp_path: Path) -> Config:
    file = tmp_path / "leadsman.toml"
    file.write_text(SERVER)
    return load(file, {}, home=tmp_path)


def read(text: str, server: Config) -> RepoFile:
    return repository_file(text.encode(), ORIGIN, server)


def refusal(text: str, server: Config) -> list[str]:
    with pytest.raises(ConfigErrors) as refused:
        read(text, server)
    return [str(problem) for problem in refused.value.problems]


def test_its_tasks_and_rules_are_taken(server: Config) -> None:
    found = read('[[task]]\nname = "test"\nrun = ["t"]\n[[rule]]\non = "push"\ntask = "test"\n', server)
    assert ["test"] == [task.name for task in found.tasks]
    assert ["test"] == [rule.task for rule in found.rules]
    assert ORIGIN == found.origin
    assert () == found.warnings


def test_an_empty_file_changes_nothing(server: Config) -> None:
    assert server.publish == read("", server).publish


def test_unknown_keys_and_tables_are_warnings_and_the_rest_counts(server: Config) -> None:
    text = (
        '[server]\nlisten = "0.0.0.0:1"\n[[task]]\nname = "test"\nrun = ["t"]\nrunn = 1\n'
        '[[task.verify]]\nrun = ["v"]\nrepaet = 2\n[publsh]\n'
    )
    found = read(text, server)
    assert [
        ".leadsman.toml:1: [server]: unknown table",
        '.leadsman.toml:6: [[task]] runn: unknown key, did you mean "run"?',
        '.leadsman.toml:9: [[task.verify]] repaet: unknown key, did you mean "repeat"?',
        '.leadsman.toml:10: [publsh]: unknown table, did you mean "publish"?',
    ] == [str(warning) for warning in found.warnings]
    assert ("v",) == found.tasks[0].verify[0].run


def test_a_wrong_value_refuses_the_file_so_that_the_last_good_one_stays(server: Config) -> None:
    text = '[[task]]\nname = "test"\nrun = "t"\nrunn = 1\n'
    assert ['.leadsman.toml:3: [[task]] run: must be a list, not "t"'] == refusal(text, server)


def test_no_text_and_no_toml_refuse_the_file(server: Config) -> None:
    with pytest.raises(ConfigErrors):
        repository_file(b"\xff", ORIGIN, server)
    assert [".leadsman.toml:1: is not TOML: invalid value"] == refusal("a =", server)


def test_the_servers_task_outranks_one_of_the_same_name(server: Config) -> None:
    found = read('[[task]]\nname = "fix"\nrun = ["mine"]\n', server)
    assert () == found.tasks
    assert ['.leadsman.toml:2: [[task]] name: the server has a task "fix", and that one counts'] == [
        str(warning) for warning in found.warnings
    ]


def test_a_rule_may_start_the_servers_task_and_none_that_nobody_has(server: Config) -> None:
    assert "fix" == read('[[rule]]\non = "push"\ntask = "fix"\n', server).rules[0].task
    assert ['.leadsman.toml:3: [[rule]] task: no [[task]] is named "fxi", did you mean "fix"?'] == refusal(
        '[[rule]]\non = "push"\ntask = "fxi"\n', server
    )


def test_it_can_not_ask_for_the_servers_secrets(server: Config) -> None:
    assert [
        ".leadsman.toml:4: [[task]] env[0]: SECRET_TOKEN is one of the server's own secrets; no run may have it"
    ] == refusal('[[task]]\nname = "test"\nrun = ["t"]\nenv = ["SECRET_TOKEN"]\n', server)


def test_it_can_add_protected_branches_and_take_none_away(server: Config) -> None:
    found = read('[publish]\nnever = ["stable"]\nskip_ci = true\nbranch = "leadsman/ours"\n', server)
    assert ("main", "release/*", "stable") == found.publish.never
    assert found.publish.skip_ci
    assert "leadsman/ours" == found.publish.branch
    assert server.publish.author == found.publish.author


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[publish]\nbranch = "main"\n',
            '2: [publish] branch: must start with "leadsman/", or be the server\'s "leadsman/publish", not "main"',
        ),
        (
            '[publish]\nbranch = "leadsman/run/x"\n',
            '2: [publish] branch: "leadsman/run/x" is in the way of the runs\' own branches, leadsman/run/<run_id>',
        ),
        (
            '[publish]\nnever = ["leadsman/p*"]\n',
            (
                '1: [publish] branch: "leadsman/publish" is protected by never = "leadsman/p*"; name a branch that '
                "only the bot writes to"
            ),
        ),
    ],
)
def test_its_branch_stays_within_what_the_server_allows(text: str, expected: str, server: Config) -> None:
    assert [f".leadsman.toml:{expected}"] == refusal(text, server)


def test_it_has_no_say_in_whose_name_commits_are_made(server: Config) -> None:
    found = read('[publish]\nauthor = "Mallory <m@x>"\nsign_key_file = "/etc/shadow"\n', server)
    assert server.publish == found.publish
    assert 2 == len(found.warnings)


def test_an_unknown_key_beside_keys_that_do_not_fit_together_is_told_with_them(server: Config) -> None:
    text = '[[rule]]\non = "push"\nif = { label = "x" }\ntask = "fix"\ncolour = 1\n'
    assert ['.leadsman.toml:1: [[rule]]: if.label never holds with on = "push", so it would start nothing'] == refusal(
        text, server
    )

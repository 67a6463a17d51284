"""What is refused, in the words that people read: every problem of a file at once, each with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.config import ConfigErrors, load
from bot.errors import UserError

FORGE = '[forges.gh]\nkind = "github"\ntoken_env = "T"\n'
PROJECT = FORGE + '[[project]]\nname = "shop"\nforge = "gh"\nrepository = "acme/shop"\n'
TASK = '[[task]]\nname = "fix"\nrun = ["x"]\n'
TRACKER = '[trackers.work]\nkind = "redmine"\nurl = "https://r.example.org"\napi_key_env = "K"\n'
GH_TOKEN = "ghp_" + "a1B2" * 9

REFUSED = {
    "unknown table": ("[servr]\nx = 1\n", '1: [servr]: unknown table, did you mean "server"?'),
    "unknown table, nothing near": ("[zzz]\n", "1: [zzz]: unknown table"),
    "key outside of a table": ("slots = 3\n", "1: slots: unknown key outside of any table"),
    "unknown key": ('[server]\nlistn = "a"\n', '2: [server] listn: unknown key, did you mean "listen"?'),
    "unknown key, nothing near": ("[fleet]\nzzz = 1\n", "2: [fleet] zzz: unknown key"),
    "unknown key, nested": (
        TASK + '[[task.verify]]\nrun = ["x"]\nrepeats = 2\n',
        '6: [[task.verify]] repeats: unknown key, did you mean "repeat"?',
    ),
    "unknown key in an inline table": (
        TASK + '[[rule]]\non = "push"\ntask = "fix"\nif = { labl = "x" }\n',
        '7: [[rule]] if.labl: unknown key, did you mean "label"?',
    ),
    "a table that is a value": ("server = 1\n", "1: server: must be a table, like [server]"),
    "one that should be several": (
        '[project]\nname = "x"\n',
        "1: [project]: must be written as [[project]], once for each",
    ),
    "forges that are a value": ("forges = 1\n", "1: forges: must be written as [forges.<name>], once for each"),
    "a forge that is a value": ("[forges]\nx = 1\n", "2: [forges.x]: must be a table, [forges.<name>]"),
    "text for a number": ('[fleet]\nslots = "4"\n', '2: [fleet] slots: must be a whole number, not "4"'),
    "fraction for a whole number": ("[fleet]\nslots = 1.5\n", "2: [fleet] slots: must be a whole number, not 1.5"),
    "truth for a number": ("[fleet]\nslots = true\n", "2: [fleet] slots: must be a whole number, not true"),
    "number for truth": ("[publish]\nskip_ci = 1\n", "2: [publish] skip_ci: must be true or false, not 1"),
    "number for text": ("[server]\nlisten = 1\n", "2: [server] listen: must be text, not 1"),
    "number for a table": ("[fleet]\nrepo_map = 1\n", "2: [fleet] repo_map: must be a table, not 1"),
    "infinite number": (
        "[fleet]\nmax_load_per_cpu = inf\n",
        "2: [fleet] max_load_per_cpu: must be at most 1000.0, not inf",
    ),
    "text for a list": (
        '[[task]]\nname = "a"\nrun = "make test"\n',
        '3: [[task]] run: must be a list, not "make test"',
    ),
    "number in a list": ('[[task]]\nname = "a"\nrun = ["x",\n 1]\n', "4: [[task]] run[1]: must be text, not 1"),
    "empty argv": ('[[task]]\nname = "a"\nrun = []\n', "3: [[task]] run: must not be empty"),
    "no program": ('[[task]]\nname = "a"\nrun = [""]\n', "3: [[task]] run: must begin with a program"),
    "NUL in an argument": (
        '[[task]]\nname = "a"\nrun = ["x", "\\u0000"]\n',
        "3: [[task]] run: must not hold a NUL character",
    ),
    "no name of a variable for a run": (
        TASK + 'env = ["LANG", "C I"]\n',
        (
            "4: [[task]] env[1]: must be the name of an environment variable: letters, digits and _, no digit first, "
            'not "C I"'
        ),
    ),
    "a condition that never holds": (
        TASK + '[[rule]]\non = "push"\nif = { label = "bot" }\ntask = "a"\n',
        '4: [[rule]]: if.label never holds with on = "push", so it would start nothing',
    ),
    "too small": ("[fleet]\nslots = 0\n", "2: [fleet] slots: must be at least 1, not 0"),
    "too large": ("[fleet]\nslots = 1000\n", "2: [fleet] slots: must be at most 999, not 1000"),
    "not above": (
        TASK + '[[task.verify]]\nrun = ["x"]\ntimeout = 0\n',
        "6: [[task.verify]] timeout: must be above 0, not 0",
    ),
    "passes, a wrong word": (TASK + 'passes = "al"\n', '4: [[task]] passes: must be a whole number or all, not "al"'),
    "passes, too few": (TASK + "passes = -1\n", "4: [[task]] passes: must be at least 0, not -1"),
    "passes, too many": (TASK + "passes = 10000\n", "4: [[task]] passes: must be at most 9999, not 10000"),
    "one of some words": (
        TASK + 'publish = "rnu"\n',
        '4: [[task]] publish: must be run, shared or none, not "rnu", did you mean "run"?',
    ),
    "name with a blank": (
        '[[task]]\nname = "a b"\nrun = ["x"]\n',
        (
            "2: [[task]] name: must be a name: letters, digits, ., _ and -, at most 64 of them, a letter or digit "
            'first, not "a b"'
        ),
    ),
    "missing key": (
        '[[task]]\nname = "a"\n',
        "1: [[task]] run: is missing (argv, never a shell; what stands after `--` in the comment follows it)",
    ),
    "missing kind": ("[forges.x]\n", "1: [forges.x] kind: is missing; one of github, local"),
    "unknown kind": (
        '[forges.x]\nkind = "githb"\n',
        '2: [forges.x] kind: must be one of github, local, not "githb", did you mean "github"?',
    ),
    "unknown tracker": (
        '[trackers.x]\nkind = "jira"\n',
        '2: [trackers.x] kind: must be one of redmine, not "jira"',
    ),
    "kind that is no text": ("[forges.x]\nkind = 1\n", "2: [forges.x] kind: must be one of github, local, not 1"),
    "forge with a bad name": (
        '[forges."a b"]\nkind = "local"\n',
        "1: [forges.a b]: is part of an address: letters, digits, - and _, at most 64 of them",
    ),
    "secret under its own name": (
        '[forges.gh]\nkind = "github"\ntoken = "hunter2"\n',
        (
            "3: [forges.gh] token: a secret is never written into this file. Put it into an environment variable, and "
            'name that one: token_env = "LEADSMAN_TOKEN"'
        ),
    ),
    "secret instead of a name": (
        f'[forges.gh]\nkind = "github"\ntoken_env = "{GH_TOKEN}"\n',
        (
            "3: [forges.gh] token_env: holds the secret itself; it takes the NAME of the environment variable "
            "that holds "
            "it. Revoke this one"
        ),
    ),
    "secret that could be a name": (
        f'[trackers.work]\nkind = "redmine"\nurl = "https://r.example.org"\napi_key_env = "{"a" * 40}"\n',
        (
            "4: [trackers.work] api_key_env: holds the secret itself; it takes the NAME of the environment "
            "variable that "
            "holds it. Revoke this one"
        ),
    ),
    "no name of a variable": (
        '[forges.gh]\nkind = "github"\ntoken_env = "hunter2!"\n',
        "3: [forges.gh] token_env: takes the name of an environment variable: letters, digits and _, no digit first",
    ),
    "secret in a command": (
        f'[[task]]\nname = "a"\nrun = ["x", "--token={GH_TOKEN}"]\n',
        (
            "3: [[task]] run[1]: holds a secret, which is never written into this file. Revoke it, and pass the "
            "new one "
            "by environment"
        ),
    ),
    "password in an address": (
        '[store]\nurl = "postgresql://bot:hunter2@db/leadsman"\n',
        (
            "2: [store] url: holds a password, which is never written into this file; leave it out of the address "
            "(PostgreSQL takes it from PGPASSWORD or PGPASSFILE)"
        ),
    ),
    "password with a slash in an address": (
        '[store]\nurl = "postgresql://bot:hun/ter2@db/leadsman"\n',
        (
            "2: [store] url: holds a password, which is never written into this file; leave it out of the address "
            "(PostgreSQL takes it from PGPASSWORD or PGPASSFILE)"
        ),
    ),
    "a key of a cloud": (
        f'[[task]]\nname = "a"\nrun = ["x"]\nhelp = "{"AKIA" + "Z" * 16}"\n',
        (
            "4: [[task]] help: holds a secret, which is never written into this file. Revoke it, and pass the new one "
            "by environment"
        ),
    ),
    "token in an address": (
        '[forges.gh]\nkind = "github"\ntoken_env = "T"\napi_url = "https://hunter2@ghe.example.org/api/v3"\n',
        (
            "4: [forges.gh] api_url: holds a password, which is never written into this file; leave it out of the "
            "address (PostgreSQL takes it from PGPASSWORD or PGPASSFILE)"
        ),
    ),
    "token behind an address": (
        '[server]\npublic_url = "https://leadsman.example.org/?access_token=hunter2"\n',
        (
            "2: [server] public_url: holds a password, which is never written into this file; leave it out of the "
            "address (PostgreSQL takes it from PGPASSWORD or PGPASSFILE)"
        ),
    ),
    "variable with its value": (
        '[[task]]\nname = "fix"\nrun = ["make"]\nenv = ["LANG", "API_KEY=hunter2"]\n',
        ('4: [[task]] env[1]: takes the name alone, "API_KEY"; its value is never written into this file'),
    ),
    "password behind an address": (
        '[store]\nurl = "postgresql://bot@db/leadsman?sslmode=require&password=hunter2"\n',
        (
            "2: [store] url: holds a password, which is never written into this file; leave it out of the address "
            "(PostgreSQL takes it from PGPASSWORD or PGPASSFILE)"
        ),
    ),
    "not a store": (
        '[store]\nurl = "mysql://db"\n',
        '2: [store] url: must be "sqlite" or like "postgresql://HOST/NAME", not "mysql://db"',
    ),
    "no address to listen at": (
        '[server]\nlisten = "8780"\n',
        '2: [server] listen: must be an address and a port, like "127.0.0.1:8780" or "[::1]:8780", not "8780"',
    ),
    "no such port": (
        '[server]\nlisten = "127.0.0.1:65536"\n',
        (
            '2: [server] listen: must be an address and a port, like "127.0.0.1:8780" or "[::1]:8780", not '
            '"127.0.0.1:65536"'
        ),
    ),
    "no public address": (
        '[server]\npublic_url = "leadsman.example.org"\n',
        '2: [server] public_url: must be an address like "https://example.org", not "leadsman.example.org"',
    ),
    "undefined forge": (
        FORGE + '[[project]]\nname = "shop"\nforge = "gth"\nrepository = "a/b"\n',
        '6: [[project]] forge: no [forges.*] is named "gth", did you mean "gh"?',
    ),
    "no forge at all": (
        '[[project]]\nname = "shop"\nforge = "gh"\nrepository = "a/b"\n',
        '3: [[project]] forge: no [forges.*] is named "gh"; there is none yet',
    ),
    "undefined tracker": (
        PROJECT + 'tracker = "wrk"\n' + TRACKER,
        '8: [[project]] tracker: no [trackers.*] is named "wrk", did you mean "work"?',
    ),
    "tracker without its project": (
        PROJECT + 'tracker = "work"\n' + TRACKER,
        '4: [[project]] tracker_project: is missing: which project of "work" is it',
    ),
    "undefined project of a task": (
        PROJECT + TASK + 'projects = ["*", "shp"]\n',
        '11: [[task]] projects[1]: no [[project]] is named "shp", did you mean "shop"?',
    ),
    "undefined task of a rule": (
        TASK + '[[rule]]\non = "push"\ntask = "fxi"\n',
        '6: [[rule]] task: no [[task]] is named "fxi", did you mean "fix"?',
    ),
    "undefined repository": (
        PROJECT + '[fleet.repo_map]\nbilling = "acme/shp"\n',
        '9: [fleet] repo_map.billing: no [[project]] has the repository "acme/shp", did you mean "acme/shop"?',
    ),
    "undefined difficulty": (
        TASK + 'difficulty = "midium"\n',
        (
            '4: [[task]] difficulty: "midium" is no row of [budget] turns, did you mean "medium"? one of easy, medium, '
            "hard, diploma"
        ),
    ),
    "not a repository": (
        FORGE + '[[project]]\nname = "shop"\nforge = "gh"\nrepository = "../x"\n',
        '7: [[project]] repository: must be owner/name, as the forge spells it, not "../x"',
    ),
    "two projects of one name": (
        PROJECT + '[[project]]\nname = "Shop"\nforge = "gh"\nrepository = "acme/other"\n',
        '9: [[project]] name: there is a project "Shop" already; names must differ, and not only in case',
    ),
    "two projects of one repository": (
        PROJECT + '[[project]]\nname = "two"\nforge = "gh"\nrepository = "Acme/Shop"\n',
        '11: [[project]] repository: is the repository of project "shop" already',
    ),
    "two tasks of one name": (
        TASK + TASK,
        '5: [[task]] name: there is a task "fix" already; names must differ, and not only in case',
    ),
    "a tracker named as a forge": (
        FORGE + TRACKER.replace("trackers.work", "trackers.gh"),
        "4: [trackers.gh]: there is a [forges.gh] too; both would have the address /webhooks/gh",
    ),
    "a run with the server's secret": (
        FORGE + TASK + 'env = ["LANG", "T"]\n',
        "7: [[task]] env[1]: T is one of the server's own secrets; no run may have it",
    ),
    "protected publish branch": (
        '[publish]\nbranch = "release/bot"\n',
        (
            '2: [publish] branch: "release/bot" is protected by never = "release/*"; name a branch that only the bot '
            "writes to"
        ),
    ),
    "protected run branches": (
        '[publish]\nbranch = "bot"\nnever = ["main", "leadsman/*"]\n',
        '3: [publish] never: "leadsman/*" protects the runs\' own branches, leadsman/run/<run_id>, too',
    ),
    "publish branch in the way": (
        '[publish]\nbranch = "leadsman"\n',
        '2: [publish] branch: "leadsman" is in the way of the runs\' own branches, leadsman/run/<run_id>',
    ),
    "publish branch that is the base": (
        PROJECT + 'base = "bot"\n[publish]\nbranch = "bot"\n',
        '8: [[project]] base: is also [publish] branch, "bot"; they must differ',
    ),
    "publish branch as a ref": (
        '[publish]\nbranch = "refs/heads/bot"\n',
        '2: [publish] branch: must be a branch without refs/heads/, not "refs/heads/bot"',
    ),
    "publish branch that is an option": (
        '[publish]\nbranch = "--force"\n',
        '2: [publish] branch: must be a branch name that git takes, not "--force"',
    ),
    "base that git does not take": (
        PROJECT + 'base = "a..b"\n',
        '8: [[project]] base: must be a branch name that git takes, not "a..b"',
    ),
    "author without an address": (
        '[publish]\nauthor = "Leadsman"\n',
        '2: [publish] author: must be like "Leadsman <leadsman@localhost>", not "Leadsman"',
    ),
    "author of two lines": (
        '[publish]\nauthor = "A\\nB <x@y>"\n',
        '2: [publish] author: must be like "Leadsman <leadsman@localhost>", not "A\\nB <x@y>"',
    ),
    "budget above both caps": (
        "[budget]\nper_turn_seconds = 120\n[budget.turns]\nmedium = 16\n",
        (
            "4: [budget] turns.medium: medium takes 16 x 120 s = 1920 s, which is above run_cap_seconds = 900 and "
            "job_cap_seconds = 1800; at 120 s a turn 7 turns would fit"
        ),
    ),
    "budget above the job's cap": (
        "[budget]\nrun_cap_seconds = 3600\nturns = { medium = 21 }\n",
        (
            "3: [budget] turns.medium: medium takes 21 x 90 s = 1890 s, which is above job_cap_seconds = 1800; "
            "at 90 s a "
            "turn 20 turns would fit"
        ),
    ),
    "default turns above a lowered cap": (
        "[budget]\nrun_cap_seconds = 700\n",
        (
            "1: [budget] turns.diploma: diploma takes 8 x 90 s = 720 s, which is above run_cap_seconds = 700; "
            "at 90 s a "
            "turn 7 turns would fit"
        ),
    ),
    "no turns": ("[budget]\nturns = { medium = 0 }\n", "2: [budget] turns.medium: must be at least 1, not 0"),
    "no difficulties": ("[budget.turns]\n", "1: [budget] turns: must have at least one difficulty"),
    "redmine without a key": (
        '[trackers.work]\nkind = "redmine"\nurl = "https://r.example.org"\n',
        "1: [trackers.work]: needs exactly one of api_key_env and api_key_file",
    ),
    "redmine statuses alike": (
        TRACKER + 'claim_status = "new"\n',
        '1: [trackers.work]: claim_status and claimable_status are both "new"; they must differ',
    ),
    "redmine claims that lead nowhere": (
        TRACKER + 'claim_enabled = true\nclaim_status = "Doing"\n',
        '1: [trackers.work]: status_map needs an entry for the claim status "Doing"',
    ),
    "labels alike": (
        FORGE + 'claim_status = "Bot"\nclaimable_status = "bot"\n',
        '1: [forges.gh]: claim_status and claimable_status are both "Bot"; they must differ',
    ),
    "a label for another claim": (
        FORGE + 'status_map = { doing = "done" }\n',
        '1: [forges.gh]: status_map has an entry for "doing", and claim_status is "in progress"',
    ),
    "a label that no list can be asked for": (
        FORGE + 'claim_status = "a, b"\n',
        '4: [forges.gh] claim_status: must be a text without commas, not "a, b"',
    ),
    "polling without a pause": (
        TRACKER + "poll_seconds = 1\n",
        "5: [trackers.work] poll_seconds: must be at least 5, not 1",
    ),
    "not TOML": ("[server]\nlisten = \n", "2: is not TOML: invalid value"),
    "a key twice": ('[server]\nlisten = "a:1"\nlisten = "b:1"\n', "3: is not TOML: cannot overwrite a value"),
    "an open string": ('[server]\nlisten = "a', "2: is not TOML: unterminated string"),
}


@pytest.mark.parametrize(("text", "expected"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_file_is_refused_with_line_table_and_key(text: str, expected: str, tmp_path: Path) -> None:
    assert [f"leadsman.toml:{expected}"] == problems(text, tmp_path)


def test_every_problem_is_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = '[fleet]\nslots = 0\nspare = 1\n[publish]\nauthor = "x"\n[[rule]]\non = "push"\ntask = "x"\n'
    assert [
        "leadsman.toml:2: [fleet] slots: must be at least 1, not 0",
        'leadsman.toml:3: [fleet] spare: unknown key, did you mean "spares"?',
        'leadsman.toml:5: [publish] author: must be like "Leadsman <leadsman@localhost>", not "x"',
        'leadsman.toml:8: [[rule]] task: no [[task]] is named "x"; there is none yet',
    ] == problems(text, tmp_path)


def test_a_broken_task_still_counts_as_defined(tmp_path: Path) -> None:
    text = '[[task]]\nname = "fix"\n[[rule]]\non = "push"\ntask = "fix"\n'
    assert 1 == len(problems(text, tmp_path))


def test_what_may_be_a_secret_is_never_repeated(tmp_path: Path) -> None:
    text = (
        '[forges.gh]\nkind = "github"\ntoken = "hunter2"\ntoken_env = "hunter2!"\n'
        'webhook_secret_env = ["x", "hunter2-"]\n'
        'private_key_file = ["hunter2"]\n[store]\nurl = "postgresql://u:hunter2@h/d"\n'
    )
    found = problems(text, tmp_path)
    assert 5 == len(found)
    assert "hunter2" not in "".join(found)


def test_the_refusal_ends_with_the_next_step_and_exit_code_2(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as refused:
        read("[fleet]\nslots = 0\n", tmp_path)
    end = "1 problem: nothing of this file is used until it is right. `leadsman config explain` tells every key."
    assert end == refused.value.text.splitlines()[-1]
    assert 2 == refused.value.code


@pytest.mark.parametrize("key", ['token_file = "t"', 'token_env = "T"\nwebhook_secret_file = "s"'])
def test_a_file_that_names_secret_files_must_not_be_readable_by_others(key: str, tmp_path: Path) -> None:
    text = f'[forges.gh]\nkind = "github"\n{key}\n'
    assert [] == problems(text, tmp_path, mode=0o640)
    found = problems(text, tmp_path, mode=0o644)
    assert 1 == len(found)
    assert re.search(
        r"names a file with a secret, so others may not read this one: chmod o-r .*leadsman.toml", found[0]
    )


def test_a_long_name_is_no_secret(tmp_path: Path) -> None:
    assert [] == problems('[[task]]\nname = "a"\nrun = ["tools/task-runner-with-a-long-name"]\n', tmp_path)


def test_a_file_that_names_no_secret_files_may_be_readable(tmp_path: Path) -> None:
    assert [] == problems(FORGE, tmp_path, mode=0o644)


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "leadsman.toml").write_bytes(b'[server]\nlisten = "\xff"\n')
    with pytest.raises(ConfigErrors) as refused:
        load(tmp_path / "leadsman.toml", {}, home=tmp_path)
    assert refused.value.text.startswith(f"{tmp_path}/leadsman.toml:2: is not UTF-8 text")


def test_a_file_nested_beyond_reason_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        read(f"a = {'[' * 100_000}{']' * 100_000}", tmp_path)


def read(text: str, folder: Path, mode: int = 0o600) -> None:
    file = folder / "leadsman.toml"
    file.write_text(text)
    file.chmod(mode)
    load(file, {}, home=folder)


def problems(text: str, folder: Path, mode: int = 0o600) -> list[str]:
    """The lines people read, without the folder; none for a file that is taken."""
    try:
        read(text, folder, mode)
    except ConfigErrors as refused:
        return [str(problem).removeprefix(f"{folder}/") for problem in refused.problems]
    return []

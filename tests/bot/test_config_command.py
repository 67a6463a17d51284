"""`leadsman config`: check, explain and schema, as people and editors use them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bot.config.tables import TABLES, ByKind
from tests.bot.test_config import EXAMPLE, SET
from tests.stories.nursery import leadsman


def write(folder: Path, text: str) -> None:
    (folder / "leadsman.toml").write_text(text)


def test_a_right_file_is_told_to_be_in_order(tmp_path: Path) -> None:
    write(tmp_path, EXAMPLE)
    assert (0, "leadsman.toml is in order: 1 forge, 1 tracker, 1 project, 1 task, 1 rule.\n", "") == leadsman(
        "config", "check", cwd=tmp_path, environ=SET
    )


def test_a_missing_variable_is_a_warning_and_no_refusal(tmp_path: Path) -> None:
    write(tmp_path, EXAMPLE)
    done = leadsman("config", "check", cwd=tmp_path)
    assert 0 == done.code
    assert (
        "warning: leadsman.toml:12: [forges.github] token_env: the environment variable LEADSMAN_GITHUB_TOKEN is not "
        "set\n"
    ) in done.err


def test_a_wrong_file_ends_with_2_and_every_problem(tmp_path: Path) -> None:
    write(tmp_path, "[fleet]\nslots = 0\nspare = 1\n")
    assert (
        2,
        "",
        (
            "leadsman.toml:2: [fleet] slots: must be at least 1, not 0\n"
            'leadsman.toml:3: [fleet] spare: unknown key, did you mean "spares"?\n'
            "2 problems: nothing of this file is used until it is right. `leadsman config explain` tells every key.\n"
        ),
    ) == leadsman("config", "check", cwd=tmp_path)


def test_programs_get_the_problems_as_json(tmp_path: Path) -> None:
    write(tmp_path, "[fleet]\nslots = 0\n")
    done = leadsman("config", "check", "--json", cwd=tmp_path)
    assert done == leadsman("--json", "config", "check", cwd=tmp_path)
    assert 2 == done.code
    assert {
        "file": "leadsman.toml",
        "ok": False,
        "problems": [
            {
                "file": "leadsman.toml",
                "line": 2,
                "table": "[fleet]",
                "key": "slots",
                "what": "must be at least 1, not 0",
            }
        ],
        "warnings": [],
    } == json.loads(done.out)


def test_explain_tells_type_default_meaning_and_where_the_value_comes_from(tmp_path: Path) -> None:
    write(tmp_path, "# mine\n[server]\nlisten = '127.0.0.1:1'\n")
    code, out, err = leadsman("config", "explain", "server", cwd=tmp_path)
    assert (0, "") == (code, err)
    assert out.startswith(
        "[server]\n"
        '  listen = "127.0.0.1:1"  (leadsman.toml:3)\n'
        "      address and port of the door; port 0 = any free one\n"
        '      text; default "127.0.0.1:8780"\n'
        "  public_url = unset  (default)\n"
    )


def test_explain_works_beside_a_file_that_is_wrong(tmp_path: Path) -> None:
    write(tmp_path, "[fleet]\nslots = \n")
    code, out, err = leadsman("config", "explain", "fleet", cwd=tmp_path)
    assert 0 == code
    assert "  slots = 4  (default)\n" in out
    assert "leadsman.toml:2: is not TOML" in err


def test_explain_shows_no_secret_that_was_written_into_the_file(tmp_path: Path) -> None:
    write(
        tmp_path, '[store]\nurl = "postgresql://u:hunter2@h/d"\n[forges.x]\nkind = "github"\ntoken_env = "hunter2!"\n'
    )
    done = leadsman("config", "explain", cwd=tmp_path)
    assert "hunter2" not in done.out + done.err
    assert "  url = ***  (leadsman.toml:2)\n" in done.out


def test_explain_takes_one_forge_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, EXAMPLE)
    out = leadsman("config", "explain", "forges.github", cwd=tmp_path).out
    assert out.startswith('[forges.github]\n  kind = "github"  (leadsman.toml:10)\n')
    assert "[forges.<name>]" not in out


def test_explain_takes_a_table_within_another_and_tells_of_each_of_several(tmp_path: Path) -> None:
    write(tmp_path, '[[task]]\nname = "a"\nrun = ["x"]\n[[task.verify]]\nrun = ["y"]\n[[task.verify]]\nrun = ["z"]\n')
    (table,) = json.loads(leadsman("config", "explain", "[[task.verify]]", "--json", cwd=tmp_path).out)
    told = {key["key"]: (key["value"], key["source"]) for key in table["keys"]}
    assert all(key.startswith("verify[") for key in told)
    assert ('["y"]', "leadsman.toml:5") == told["verify[0].run"]
    assert ('["z"]', "leadsman.toml:7") == told["verify[1].run"]
    assert ("1", "default") == told["verify[1].repeat"]


def test_explain_refuses_a_table_that_does_not_exist(tmp_path: Path) -> None:
    done = leadsman("config", "explain", "sever", cwd=tmp_path)
    assert 2 == done.code
    assert done.err.startswith('There is no table "sever", did you mean "server"? Known: server, store, forges')


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(leadsman("config", "schema", cwd=tmp_path_factory.mktemp("schema")).out)
    return found


def test_the_schema_is_one_and_takes_the_example(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(tomllib.loads(EXAMPLE))


@pytest.mark.parametrize("text", ["[servr]\n", "[server]\nlistn = 1\n", "[fleet]\nslots = 0\n", "[forges.x]\n"])
def test_the_schema_refuses_what_the_bot_refuses(text: str, schema: dict[str, Any]) -> None:
    assert not jsonschema.Draft202012Validator(schema).is_valid(tomllib.loads(text))


def test_every_table_and_key_is_explained_and_in_the_schema(tmp_path: Path, schema: dict[str, Any]) -> None:
    tables = json.loads(leadsman("config", "explain", "--json", cwd=tmp_path).out)
    expected = [
        f"[{name}.<name>] of kind {kind}" if kind else f"[{name}]"
        for name, table in TABLES.items()
        for kind in (table.modules if isinstance(table, ByKind) else [""])
    ]
    expected.append("[risk] of .leadsman.toml")
    assert expected == [table["name"].replace("[[", "[").replace("]]", "]") for table in tables]
    for table in tables:
        for key in table["keys"]:
            where = f"{table['name']} {key['key']}"
            assert key["meaning"], where
            assert key["type"], where
            assert key["default"], where
    for definition in schema["$defs"].values():
        for name, key in definition["properties"].items():
            numbers = [one for one in (key, *key.get("anyOf", ())) if one.get("type") in {"integer", "number"}]
            assert all("maximum" in one for one in numbers) or name == "app_id", f"{name} has no bound"
            assert "description" in key, name
            assert ("default" in key) != (name in definition.get("required", [])), name

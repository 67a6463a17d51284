"""Whatever stands in the file, the answer is a configuration or a refusal: never a traceback."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.config import ConfigErrors, load, repository_file
from bot.config.explaining import explain
from bot.config.loading import open_sheet
from bot.config.places import places
from bot.config.sheet import Sheet
from tests.bot.test_places import paths

TABLE_NAMES = "server forges trackers project task rule fleet budget publish local redmine github"
KEY_NAMES = "name run kind turns verify if repo_map env never branch listen token"
NAMES = st.sampled_from(f"{TABLE_NAMES} {KEY_NAMES}".split()) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=5
)
LEAVES = (
    st.none().map(lambda _: "x") | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | NAMES
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=6)


def toml(value: Any, *, top: bool = False) -> str:
    """A value as TOML; JSON's escapes are TOML's, but for a lone DEL."""
    if isinstance(value, dict):
        pairs = [f"{toml(key)} = {toml(inner)}" for key, inner in value.items()]
        return "\n".join(pairs) if top else "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",\n".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value).replace("e+", "e") if "inf" not in repr(value) else repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@given(DOCUMENTS)
@settings(max_examples=120, deadline=None)
def test_any_document_is_taken_or_refused_and_can_be_explained(document: dict[str, Any]) -> None:
    text = toml(document, top=True).encode()
    with TemporaryDirectory() as folder:
        file = Path(folder, "leadsman.toml")
        file.write_bytes(text)
        empty = Path(folder, "empty.toml")
        empty.touch()
        server = load(empty, {}, home=empty.parent)
        for read in (lambda: load(file, {}, home=file.parent), lambda: repository_file(text, "origin", server)):
            try:
                read()
            except ConfigErrors as refused:
                _told(refused)
        assert explain(open_sheet(file))


@given(DOCUMENTS)
@settings(max_examples=120, deadline=None)
def test_any_key_has_its_place(document: dict[str, Any]) -> None:
    text = toml(document, top=True)
    assert set(paths(tomllib.loads(text))) == set(places(text))


@given(st.binary(max_size=200) | st.text(alphabet="[]{}=.,\"'\\#\n ab1", max_size=60).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        sheet = Sheet(data, "leadsman.toml")
    except ConfigErrors:
        return
    assert set(paths(sheet.document)) == set(sheet.lines)


def _told(refused: ConfigErrors) -> None:
    """Every problem is one line."""
    assert refused.problems
    assert len(refused.text.splitlines()) == len(refused.problems) + 1

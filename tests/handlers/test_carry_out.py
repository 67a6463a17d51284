"""What was decided is done once: all of it in one transaction, and nothing of it that another one has done before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.errors import Unavailable
from bot.journal import Journal
from bot.model import Commented, Event
from bot.store import StoreSettings, schema
from bot.store.engine import Store, open_store
from handlers.carry_out import carry_out
from handlers.decision import Answer, Decision, Obeyed, Say
from tests.handlers.desk import NOW, PULL, REPO, actor

FIX, TEST = (Obeyed(REPO, "1", line, 0) for line in ("/run fix", "/run test"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(StoreSettings(), tmp_path)
    yield opened
    opened.close()


def carried_out(store: Store, folder: Path, key: str, *obeyed: Obeyed) -> list[object]:
    """One comment's commands, each answered with its own line."""
    said = tuple(Say(done.line) for done in obeyed)
    what = Commented("1", actor("will"), "", None)
    event = Event(source="github", delivery="d-1", subject=PULL, actor=actor("will"), what=what, head_sha=None, at=NOW)
    decision = Decision(said, Answer(key, PULL, "1"), obeyed)
    journal = Journal(folder / "events.jsonl", NOW.timestamp)
    return list(carry_out(decision, event, store, journal, NOW.timestamp, url="http://here/runs/{}".format))


def answers(store: Store) -> list[str]:
    with store.read() as connection:
        return list(connection.execute(sa.select(schema.answers.c.key)).scalars())


def test_what_was_obeyed_is_not_obeyed_again(store: Store, tmp_path: Path) -> None:
    assert carried_out(store, tmp_path, "first", FIX, TEST)
    assert carried_out(store, tmp_path, "second", FIX, TEST) == []
    assert answers(store) == ["first"]


def test_where_a_part_was_obeyed_meanwhile_nothing_is_done_and_the_rest_is_decided_anew(
    store: Store, tmp_path: Path
) -> None:
    carried_out(store, tmp_path, "first", FIX)
    with pytest.raises(Unavailable, match="meanwhile"):
        carried_out(store, tmp_path, "second", FIX, TEST)
    assert answers(store) == ["first"]
    assert carried_out(store, tmp_path, "third", TEST)  # the refusal has put nothing into the books
    assert answers(store) == ["first", "third"]

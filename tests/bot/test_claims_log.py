"""`leadsman claims` and `leadsman claims log`: what is held, and what became of claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.claimbook import ClaimBook
from bot.claimlog import Happened
from bot.cli.claims import about
from bot.home import make
from bot.journal import Journal
from bot.rundir import write_json
from bot.store import StoreSettings
from bot.store.engine import FILE, open_store
from tests.stories.nursery import leadsman

AT = 1767603600.0  # 2026-01-05T09:00:00Z
MINE, OTHER = "20260105-090000-aaaaaa", "20260105-090100-bbbbbb"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose bot has claimed, lost and given back."""
    home = make(tmp_path / "home")
    store = open_store(StoreSettings(), home)
    book = ClaimBook(store, Journal(home / "events.jsonl", lambda: AT), lambda: AT)
    book.say("claim", run=MINE, key="work:7", ref="refs/leadsman/claims/x", oid="a" * 40)
    book.say("reported", run=MINE, key="work:7", status="Resolved")  # that is nothing of a claim
    book.say("claim_lost", run=OTHER, key="work:8", holder="leadsman@there", holder_run="20260105-085900-cccccc")
    book.say("concede", run=OTHER, key="work:8", to="leadsman@there", to_run="20260105-085900-cccccc")
    book.say("release", run=MINE, key="work:7", why="published", was_ours=True)
    book.say("sweep", run="20260101-000000-dddddd", key="work:7", why="swept: \x1b[31mold")
    store.close()
    return home


def told(home: Path, which: str) -> list[tuple[str, str, str]]:
    done = leadsman("claims", "log", which, "--json", cwd=home.parent)
    assert (0, "") == (done.code, done.err)
    return [(one["event"], one["key"], one["run_id"]) for one in json.loads(done.out)]


def test_the_history_of_a_ticket_and_of_a_run(home: Path) -> None:
    ticket = [
        ("claim", "work:7", MINE),
        ("release", "work:7", MINE),
        ("sweep", "work:7", "20260101-000000-dddddd"),
    ]
    run = [("claim_lost", "work:8", OTHER), ("concede", "work:8", OTHER)]
    assert ticket == told(home, "work:7")
    assert ticket[:2] == told(home, MINE)
    assert run == told(home, OTHER[:14])
    (home / FILE).unlink()  # a store in another place: the journal says the same
    assert ticket == told(home, "work:7")
    assert run == told(home, OTHER)


def test_people_read_it_as_a_table_that_steers_no_terminal(home: Path) -> None:
    done = leadsman("claims", "log", "work:7", cwd=home.parent)
    assert (0, "") == (done.code, done.err)
    assert [
        "AT                    EVENT    CLAIMED  RUN                     ABOUT",
        f"2026-01-05T09:00:00Z  claim    work:7   {MINE}  with aaaaaaaaaaaa",
        f"2026-01-05T09:00:00Z  release  work:7   {MINE}  published",
        "2026-01-05T09:00:00Z  sweep    work:7   20260101-000000-dddddd  swept: \\x1b[31mold",
    ] == done.out.splitlines()


@pytest.mark.parametrize(
    ("event", "facts", "said"),
    [
        ("claim_lost", {"holder": "a@b", "holder_run": "r"}, "a@b has it, with run r"),
        ("concede", {"to": "a@b", "to_run": "r"}, "to a@b, run r"),
        ("release", {"why": "lost", "was_ours": False}, "lost; it was taken away before"),
    ],
)
def test_each_event_says_what_it_is_about(event: str, facts: dict[str, object], said: str) -> None:
    assert said == about(Happened("", event, "k", "r", json.dumps(facts)))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("log", "work:9"), "Nothing is known in "),
        (("log", "work:9"), 'did you mean "work:'),
        (("log", "20260105-09"), "is the start of 2 runs"),
        (("log",), "Name what is meant"),
        (("history", "work:7"), "`leadsman claims` knows `log` and `release`, not history"),
        (("log", "work:7", "x"), "is a word too many"),
        (("log", ""), "Nothing is known"),
    ],
)
def test_what_is_not_known_is_refused_with_the_next_step(home: Path, words: tuple[str, ...], says: str) -> None:
    done = leadsman("claims", *words, cwd=home.parent)
    assert 2 == done.code
    assert says in done.err


def test_what_open_runs_hold_is_listed_and_what_is_broken_or_over_is_not(home: Path) -> None:
    claim = {
        "intent": {"task": {"name": "fix"}, "event": {"actor": {"login": "dana"}}},
        "key": "work:7",
        "ref": "refs/leadsman/claims/x",
        "at": "2026-01-05T09:00:00.250000Z",
    }
    for number, files in enumerate(({"claim": claim}, {"claim": claim, "closed": {}}, {"claim": {"key": 3}}, {})):
        folder = home / "runs" / f"20260105-09000{number}-aaaaaa"
        folder.mkdir(parents=True)
        for name, value in files.items():
            write_json(folder / f"{name}.json", value)
    done = leadsman("claims", "--json", cwd=home.parent)
    assert [
        {
            "key": "work:7",
            "run_id": MINE,
            "task": "fix",
            "asked_by": "dana",
            "since": "2026-01-05T09:00:00Z",
            "phase": "",
            "ref": "refs/leadsman/claims/x",
        }
    ] == json.loads(done.out)


def test_a_home_without_anything_claims_nothing(tmp_path: Path) -> None:
    assert (0, "Nothing is claimed.\n", "") == tuple(leadsman("claims", cwd=tmp_path))
    done = leadsman("claims", "log", "work:7", cwd=tmp_path)
    assert (2, True) == (done.code, "Nothing is known in" in done.err)
    assert not (tmp_path / "home").exists()

"""What people read of a report: all of it in its place, whatever strangers wrote, and never too long."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.ages import NotRun, State
from bot.masking import Masking
from bot.model import UNSEEN, Cancelled, Failed, Lost, Published, Sha, Unchanged
from bot.rendering import BUDGET, render
from bot.reports import Change, Load, Report, Risk, Tail
from bot.secret import Secret
from bot.signing import SigningKey
from bot.statement import read, signed
from bot.wording import status_line
from tests.bot.reporting import BASE, RUN, TIP, check, hostile_report, ran, report

forge = MarkdownIt("commonmark").enable(["table", "strikethrough"])
CANCELLED = ran(exit_code=None, signal=15, ended="cancelled", stop_reason="cancelled", by="bo")
OURS = ("<details><summary>Logs</summary>", "</details>")


def seen(text: str) -> list[Token]:
    return forge.parse(text)


def stated(said: Report, key: SigningKey) -> Report:
    """As people get it: signed, and read again."""
    return read(signed(said, key, Masking())).report


def test_a_report_reads_as_it_should() -> None:
    tip, base, claim, digest = TIP, BASE, "d" * 40, "c" * 64
    folder = f"checks/1-%s-{TIP[:12]}/worker.log"
    assert (
        render(report())
        == f"""\
**Published** `fix`: [`{tip[:12]}`](https://github.example/c/b) on \
[`leadsman/run/{RUN}`](https://github.example/t/x), 1 of 1 checks hold. Run [`{RUN}`](https://bot.example/runs/1).

| | |
|---|---|
| for | github:acme/shop#\u200b7, project `shop` |
| asked by | alice with `/run fix` |
| base | [`{base}`](https://github.example/c/a): the head of #\u200b7 when the bot acted |
| tip | `{tip}`, 2 commits, the last one by the bot: the command left it uncommitted |
| changed | 2 files, +12 -3 |
| risk | T3, by the rules of `main` at `{base}`: decides who gets in (src/app.py) |
| task from | leadsman.toml |
| limit | 300 s, 3 turns (medium); round 1 of 3, turns used unknown |
| used | 3.5 s of CPU, 40 MiB of memory |
| host | tower, load at start 0.50, end 1.25 on 2 CPUs |
| Claim-Id | `{claim}` |
| does not close | github:acme/shop#\u200b7: merging it and closing it is for people |

**Ran**

| what | command | result | tests | took |
|---|---|---|---|---|
| the task's command | `make fix` | exit 0 |  | 12.2 s |
| check, 2/2, try 1 | `pytest -q` | exit 0 | 12 passed, 1 skipped (pytest) | 12.2 s (+1.5 s wait) |
| check, 2/2, try 2 | `pytest -q` | exit 0 | 12 passed, 1 skipped (pytest) | 12.2 s (+1.5 s wait) |
| check at base: red at base | `pytest -q` | exit 1 |  | 12.2 s |

**Not run**

- `make e2e`: an earlier check did not hold

**Files**

- `src/app.py` +12 -3
- `logo.png` binary

<details><summary>Logs</summary>

- `worker.log`: 1234 bytes, SHA-256 `{digest}`
- `{folder % 1}`: 1234 bytes, SHA-256 `{digest}`
- `{folder % 2}`: 1234 bytes, SHA-256 `{digest}`
- `{folder % "base"}`: 1234 bytes, SHA-256 `{digest}`

</details>
"""
    )


@pytest.mark.parametrize("seed", range(20))
def test_nothing_that_strangers_wrote_leaves_its_place(seed: int, key: SigningKey) -> None:
    """Twenty times twenty-five reports of some twenty-five texts each: more than ten thousand."""
    dice = random.Random(seed)
    for _ in range(25):
        said = stated(hostile_report(dice), key)
        text = render(said)
        assert len(text.encode()) <= BUDGET
        in_its_place(said, text)


def in_its_place(said: Report, text: str) -> None:
    tokens = seen(text)
    rows = len(said.all_ran)
    facts = re.search(r"\A.*\n\n\| \| \|\n\|---\|---\|\n((?:\|.*\|\n)+)", text)
    assert facts is not None
    assert 2 == sum(1 for token in tokens if token.type == "table_open")
    table_rows = sum(1 for token in tokens if token.type == "tr_open") - 2
    assert facts[1].count("\n") + rows == table_rows
    cells = sum(1 for token in tokens if token.type == "td_open")
    assert 2 * facts[1].count("\n") + 5 * rows == cells
    fences = [token for token in tokens if token.type in ("fence", "code_block")]
    assert sum(1 for tail in said.tails if tail.text.strip()) >= len(fences)
    assert all(token.type == "fence" and token.info == "" for token in fences)
    assert [*OURS] == [token.content.strip() for token in tokens if token.type == "html_block"]
    assert not [
        token for token in tokens if token.type in ("heading_open", "hr", "blockquote_open", "ordered_list_open")
    ]
    ours = {said.links.run, said.links.base, said.links.tip, said.links.ref}
    for token in tokens:
        for child in token.children or ():
            assert child.type not in ("html_inline", "image")
            if child.type == "link_open":
                assert child.attrs["href"] in ours
            if child.type == "text":
                assert not re.search(r"[@#][\w-]", child.content), "it would mention somebody"
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text.replace("\t", ""))


@pytest.mark.parametrize("commands", [0, 1, 60, 1000])
def test_the_longest_report_fits_and_says_what_it_leaves_out(commands: int) -> None:
    tails = tuple(Tail(what="x", log="worker.log", text=f"{letter * 90}\n" * 44) for letter in "abc")
    many = tuple(ran(what=f"command {n}", argv=("make", "`" * 300)) for n in range(commands))
    said = report(ran=many, tails=tails, changes=tuple(Change(path="é" * 500, added=1, deleted=1) for _ in range(500)))
    text = render(said)
    assert len(text.encode()) <= BUDGET
    assert 3 >= sum(1 for token in seen(text) if token.type == "fence")
    if commands == 1000:
        assert "oldest were left out here" in text
        assert "command 999" in text
        assert "command 0 " not in text
        assert "More of this log's end was left out here" in text
    if commands <= 1:
        assert "a" * 90 in text
    assert "- and 470 more" in text


@pytest.mark.parametrize("budget", [12_000, 20_000, 40_000])
def test_a_hostile_report_fits_into_a_smaller_room_too(budget: int, key: SigningKey) -> None:
    for seed in range(40):
        said = stated(hostile_report(random.Random(seed), commands=12), key)
        assert len(render(said, budget=budget).encode()) <= budget


@pytest.mark.parametrize("budget", [4_000, 5_000, 10_000, 20_000, 40_000])
def test_a_report_fits_into_a_smaller_room_too(budget: int) -> None:
    plain = report(tails=(Tail(what="x", log="y", text="z\n" * 9_000),), ran=tuple(ran() for _ in range(100)))
    assert len(render(plain, budget=budget).encode()) <= budget


def test_log_ends_give_way_before_commands_and_the_newest_of_a_log_stays() -> None:
    tail = Tail(what="x", log="worker.log", text="".join(f"line {n}\n" for n in range(400)))
    whole = render(report(tails=(tail,)), budget=None)
    assert "line 0\n" in whole
    text = render(report(tails=(tail,)), budget=5_000)
    assert "line 399" in text
    assert "line 0\n" not in text
    assert text.count("check, 2/2") == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("not checked by any command", {"verdicts": ()}),
        ("0 of 1 checks hold", {"verdicts": (check(0, 1),)}),
        ("check, 3/4, try 2", {"verdicts": (check(0, 1, 0, 0),)}),
        ("NOT red at base", {"verdicts": (check(0, at_base=0),)}),
        (f"as measured at `{BASE}`, an earlier commit with the same files", {"checked_at": BASE}),
        ("| unknown |", {"ran": (ran(exit_code=None, ended="lost"),)}),
        ("| cancelled by bo |", {"ran": (CANCELLED,)}),
        ("| stopped at its time limit |", {"ran": (ran(exit_code=None, ended="failed", stop_reason="time_limit"),)}),
        ("| exit 0, said it failed |", {"ran": (ran(exit_code=0, ended="failed", stop_reason="said_failed"),)}),
        ("| signal 11 |", {"ran": (ran(exit_code=None, signal=11, ended="failed", stop_reason="signal"),)}),
        ("| exit 3 |", {"ran": (ran(exit_code=3, ended="failed", stop_reason="exit_code"),)}),
        ("| risk | no tier: nothing changed |", {"risk": Risk(tier=None, reasons=("nothing changed",))}),
        ("| risk | unknown: git fetch: gone |", {"risk": Risk(tier="unknown", reasons=("git fetch: gone",))}),
        ("-3 |\n| task from | leadsman.toml |", {"risk": None}),
        ("load unknown", {"load": Load(at_start=None, at_end=None, cpus=None)}),
        ("**Nothing to publish** from `fix`: It left no change.", {"outcome": Unchanged("It left no change.")}),
        ("**Cancelled** `fix` by alice. Nothing was", {"outcome": Cancelled("alice")}),
        ("**Cancelled** `fix` by alice. It ended by itself. Nothing was",
         {"outcome": Cancelled("alice", "It ended by itself.")}),
        ("| cancelled by bo: turn over |", {"ran": (replace(CANCELLED, stop_reason="turn_over"),)}),
        ("does not descend from the base", {"descends": False}),
        ("**Tried and refused**\n\n- push of x", {"tried": ("push of x",)}),
    ],
)  # fmt: skip
def test_a_line_says_what_was_seen(words: str, said: dict[str, object]) -> None:
    assert words in render(report(**said))


def test_a_status_says_no_more_than_was_seen() -> None:
    unchanged = Unchanged('The task fix publishes nothing (publish = "none").')
    assert "nothing to publish, not checked" == status_line(report(outcome=unchanged, verdicts=()))
    assert "nothing to publish, 1 of 1 checks hold" == status_line(report(outcome=unchanged))
    assert "failed (verify), nothing was published" == status_line(report(outcome=Failed("verify", "No.")))
    unseen = report(outcome=Failed(UNSEEN, "The remote does not answer (tried 40 times)."))
    assert "failed (push), whether it was published is not known" == status_line(unseen)
    assert "(tried 40 times). Whether it was published is not known. Run" in render(unseen)


@pytest.mark.parametrize(
    ("grade", "said"),
    [
        ("green", {}),
        ("neutral", {"verdicts": ()}),
        ("neutral", {"verdicts": (), "outcome": Unchanged("x")}),
        ("neutral", {"outcome": Cancelled("alice")}),
        ("red", {"outcome": Failed("verify", "x")}),
        ("red", {"outcome": Lost("x")}),
    ],
)
def test_no_checks_are_never_green_and_a_cancelled_run_is_neither(grade: str, said: dict[str, object]) -> None:
    assert grade == report(**said).grade


@pytest.mark.parametrize(
    ("state", "about"),
    [
        ("green", {"exit_code": 0, "ended": "done"}),
        ("red", {"exit_code": 1, "ended": "failed"}),
        ("red", {"exit_code": 0, "ended": "failed"}),
        ("cancelled", {"exit_code": 0, "ended": "cancelled"}),
        ("unknown", {"exit_code": None, "ended": "lost"}),
        ("unknown", {"exit_code": 0, "ended": "blocked"}),
    ],
)
def test_one_doubtful_try_makes_a_check_doubtful(state: State, about: dict[str, object]) -> None:
    verdict = check(0, 0, 0)
    tries = (*verdict.tries[:2], replace(verdict.tries[2], **about))  # type: ignore[arg-type]
    assert state == replace(verdict, tries=tries).state
    assert (state == "green") == replace(verdict, tries=tries).holds


def test_a_check_without_a_try_holds_nothing() -> None:
    assert not replace(check(0), tries=()).holds


@pytest.mark.parametrize(
    ("proof", "about"),
    [
        (True, {"exit_code": 1, "stop_reason": "exit_code", "ended": "failed"}),
        (False, {"exit_code": 0, "stop_reason": "", "ended": "done"}),
        (False, {"exit_code": 1, "stop_reason": "time_limit", "ended": "failed"}),
        (False, {"exit_code": None, "stop_reason": "signal", "ended": "failed"}),
        (False, {"exit_code": None, "stop_reason": "not_started", "ended": "failed"}),
    ],
)
def test_only_a_failure_of_its_own_proves_a_check_red_at_base(proof: bool, about: dict[str, object]) -> None:
    verdict = check(0, at_base=1)
    assert verdict.at_base is not None
    assert proof == replace(verdict, at_base=replace(verdict.at_base, **about)).holds  # type: ignore[arg-type]


def test_nothing_is_rendered_that_the_statement_does_not_hold(key: SigningKey) -> None:
    said = report()
    texts: list[str] = []

    def collect(value: object) -> None:
        match value:
            case str():
                texts.append(value)
            case dict():
                for item in value.values():
                    collect(item)
            case list():
                for item in value:
                    collect(item)

    import base64

    collect(json.loads(base64.b64decode(json.loads(signed(said, key, Masking()))["payload"])))
    known = " ".join(texts)
    for word in re.findall(r"`([^`]+)`", render(said)):
        assert all(part in known for part in word.split())


def test_secrets_are_out_of_the_statement_before_it_is_signed(key: SigningKey) -> None:
    secret = "hunter2-hunter2"
    token = "ghp_" + "a" * 36
    tails = (Tail(what="x", log="worker.log", text=f"Authorization: Bearer {token}\npassword {secret}"),)
    said = report(
        asked_with=f"/run fix -- {secret}",
        tails=tails,
        outcome=Failed("x", f"https://bot:{secret}@host/ and {token}"),
        not_run=(NotRun(f"Authorization: token {token}", "x"),),
    )
    text = signed(said, key, Masking([Secret(secret)]))
    found = read(text).report
    assert secret not in render(found)
    assert token not in render(found)
    assert found.asked_with == "/run fix -- ***"
    assert found.not_run == (NotRun("Authorization: token ***", "x"),)


def test_a_secret_that_is_one_of_our_own_words_breaks_no_report(key: SigningKey) -> None:
    found = read(signed(report(), key, Masking([Secret("published")])))
    assert isinstance(found.report.outcome, Published)


def test_a_name_that_is_no_text_breaks_no_report(key: SigningKey) -> None:
    said = report(changes=(Change(path="caf\udce9", added=1, deleted=0),), base=Sha("a" * 40))
    assert "caf\\\\udce9" in render(stated(said, key)).replace("\\udce9", "\\\\udce9")

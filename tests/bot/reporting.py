"""Reports to test with: one of a run that went well, and any number of hostile ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from bot.ages import NotRun, Ran, Use, Verdict
from bot.counts import Counts
from bot.model import Blocked, Cancelled, Failed, Lost, Outcome, Published, RunId, Sha, Unchanged
from bot.reports import Change, Limits, Links, Load, Report, Repository, Risk, Tail

BASE, TIP = Sha("a" * 40), Sha("b" * 40)
RUN = RunId("20260105-090000-abcdef")


def ran(**about: object) -> Ran:
    given = {
        "what": "the task's command",
        "argv": ("make", "fix"),
        "exit_code": 0,
        "signal": None,
        "seconds": 12.25,
        "waited": None,
        "stop_reason": "",
        "log": "worker.log",
        "log_bytes": 1234,
        "log_sha256": "c" * 64,
        "ended": "done",
        "use": Use(cpu_seconds=3.5, max_rss_kib=40_960),
    }
    return Ran(**(given | about))  # type: ignore[arg-type]


def check(*codes: int, at_base: int | None = None, **about: object) -> Verdict:
    """A check with a try for each exit code."""
    tries = [_try(code, f"checks/1-{n}-{TIP[:12]}/worker.log", TIP, **about) for n, code in enumerate(codes, 1)]
    there = None if at_base is None else _try(at_base, f"checks/1-base-{TIP[:12]}/worker.log", BASE)
    return Verdict(argv=("pytest", "-q"), tries=tuple(tries), at_base=there, wanted_red=at_base is not None)


def _try(code: int, log: str, at: Sha, **about: object) -> Ran:
    ended = ("done", "") if code == 0 else ("failed", "exit_code")
    given = {"what": "pytest -q", "argv": ("pytest", "-q"), "log": log, "at": at, "exit_code": code}
    return ran(**(given | {"ended": ended[0], "stop_reason": ended[1]} | about))


def report(**about: object) -> Report:
    given = {
        "run": RUN,
        "task": "fix",
        "project": "shop",
        "subject": "github:acme/shop#7",
        "repository": Repository(forge="github", name="acme/shop", url="https://github.example/acme/shop.git"),
        "asked_by": "alice",
        "asked_with": "/run fix",
        "trusted_from": "leadsman.toml",
        "claim": "d" * 40,
        "base": BASE,
        "base_why": "the head of #7 when the bot acted",
        "tip": TIP,
        "ref": f"refs/heads/leadsman/run/{RUN}",
        "pull": "",
        "outcome": Published(TIP, f"refs/heads/leadsman/run/{RUN}"),
        "commits": 2,
        "leftovers_committed": True,
        "descends": True,
        "incorporated": (),
        "changes": (Change(path="src/app.py", added=12, deleted=3), Change(path="logo.png", added=None, deleted=None)),
        "changes_since": BASE,
        "risk": Risk(tier="T3", reasons=("decides who gets in (src/app.py)",), branch="main", rules_at=BASE),
        "skipped": (),
        "checked_at": TIP,
        "ran": (ran(),),
        "verdicts": (
            check(0, 0, at_base=1, counts=Counts(runner="pytest", passed=12, failed=0, skipped=1), waited=1.5),
        ),
        "not_run": (NotRun("make e2e", "an earlier check did not hold"),),
        "limits": Limits(seconds=300, turns=3, origin="medium", round=1, rounds=3),
        "env": (),
        "use": Use(cpu_seconds=3.5, max_rss_kib=40_960),
        "load": Load(at_start=0.5, at_end=1.25, cpus=2),
        "host": "tower",
        "tried": (),
        "kept": (),
        "does_not_close": "github:acme/shop#7: merging it and closing it is for people",
        "tails": (),
        "links": Links(
            run="https://bot.example/runs/1",
            base="https://github.example/c/a",
            tip="https://github.example/c/b",
            ref="https://github.example/t/x",
        ),
        "at": datetime(2026, 1, 5, 9, 2, 3, tzinfo=UTC),
    }
    return Report(**(given | about))  # type: ignore[arg-type]


_PIECES = (
    "`", "```", "``````````", "~~~", "|", "\\", "\\|", "*", "_", "[x](http://e)", "![x](http://e)", "<b>", "</details>",
    "<!--", "-->", "<!-- leadsman run=x -->", "<script>alert(1)</script>", "&amp;", "&#64;", "@alice", "@acme/team",
    "#12", "acme/shop#3", "\n", "\n\n", "\r\n", "\r", "\0", "\x1b[31m", "\x1b]8;;http://e\x07", "\u202e", "\u2028",
    "\u200b", "\U000e0041", "\ud800", "\udcff", "é", "漢", "🚀", "   ", "\t", "---", "# x", "- x", "1. x", "> x", "$x$",
    "***", "https://evil.example/?a=b", "www.evil.example", "x", "lorem ipsum", ":+1:", "</td>", "| --- |", "{{ 7*7 }}",
)  # fmt: skip


def hostile(dice: random.Random) -> str:
    """Some text that somebody wrote to break a report: short, long, of all of Unicode, or of what breaks Markdown."""
    length = dice.choice((0, 1, 3, 10, 40, 200))
    if dice.random() < 0.02:
        return dice.choice(("`", "x", "|", "\U000e0041", "<", "\\")) * dice.choice((1_000, 70_000))
    if dice.random() < 0.5:
        return "".join(dice.choice(_PIECES) for _ in range(length))
    return "".join(chr(dice.randrange(0x110000)) for _ in range(length))


def hostile_report(dice: random.Random, commands: int = 3) -> Report:
    """A report in which every text from outside is hostile."""

    def text() -> str:
        return hostile(dice)

    return replace(
        report(),
        task=text(),
        project=text(),
        subject=text(),
        asked_by=text(),
        asked_with=text(),
        trusted_from=text(),
        base_why=text(),
        pull=text(),
        outcome=_outcome(dice, text),
        changes=tuple(Change(path=text(), added=1, deleted=2) for _ in range(dice.randrange(4))),
        risk=Risk(tier="T2", reasons=(text(),), branch=text(), rules_at=BASE),
        skipped=tuple(text() for _ in range(dice.randrange(7))),
        ran=tuple(_ran(dice, text) for _ in range(commands)),
        verdicts=(replace(check(0, 1, at_base=1), argv=(text(), text())),),
        not_run=tuple(NotRun(text(), text()) for _ in range(dice.randrange(4))),
        limits=Limits(seconds=1, turns=1, origin=text(), round=2, rounds=None),
        host=text(),
        tried=tuple(text() for _ in range(dice.randrange(3))),
        kept=tuple(text() for _ in range(dice.randrange(3))),
        does_not_close=text(),
        tails=tuple(Tail(what=text(), log=text(), text=text()) for _ in range(dice.randrange(4))),
    )


def _ran(dice: random.Random, text: Callable[[], str]) -> Ran:
    ended = dice.choice(("done", "failed", "cancelled", "lost", "blocked"))
    reasons = ("", "exit_code", "signal", "time_limit", "silent", "not_started", text())
    return ran(
        what=text(),
        argv=(text(), text()),
        ended=ended,
        stop_reason=dice.choice(reasons),
        by=text(),
        exit_code=dice.choice((0, 1, None)),
        log=text(),
    )


def _outcome(dice: random.Random, text: Callable[[], str]) -> Outcome:
    found: tuple[Outcome, ...] = (
        Published(TIP, f"refs/heads/{text()}"),
        Unchanged(text()),
        Failed(text(), text()),
        Blocked(text()),
        Cancelled(text()),
        Lost(text()),
    )
    return dice.choice(found)

"""Many bots, each with a home and a server process of its own, before one forge: nothing but the forge is shared."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.stories.harbour import Harbour
from tests.world import Repository, World

ACCOUNTS = ("leadsman-bot", "leadsman-two", "leadsman-three")
"""Some bots share an account."""


class Regatta:
    """`count` bots that all want the same issues. The command of a run goes on until its issue's file is there."""

    def __init__(self, folder: Path, world: World, count: int) -> None:
        self.folder = folder
        self.bots = [self._bot(number, world) for number in range(count)]
        first = self.bots[0]
        self.repo: Repository = first.repo(max_parallel=4).allow("dana", "triage")
        for account in ACCOUNTS:
            self.repo.allow(account, "write")
        wait = f'until [ -e {folder}/go-"$1" ]; do sleep 0.05; done; echo x > "$1"'
        first.task("hold", ["sh", "-c", wait, "hold"])
        for bot in self.bots:
            bot.config = first.config

    def _bot(self, number: int, world: World) -> Harbour:
        place = self.folder / f"bot-{number}"
        place.mkdir()
        return Harbour(place, world, as_=ACCOUNTS[number % len(ACCOUNTS)])

    def start(self) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda bot: bot.start(), self.bots))

    def close(self) -> None:
        for bot in self.bots:
            bot.close()

    def ask(self) -> Any:
        """A new issue that a person asks the bots to work; all are told at once."""
        issue = self.repo.issue("a race", author="alice")
        told = issue.comment("alice", f"/run hold -- {issue.number}")
        with ThreadPoolExecutor(len(self.bots)) as pool:
            list(pool.map(lambda bot: bot.tells(told), self.bots))
        return issue

    def go(self, issue: Any) -> None:
        """Lets the run on that issue come to its end."""
        (self.folder / f"go-{issue.number}").touch()

    def notes(self, issue: Any, start: str) -> list[str]:
        return self.bots[0].notes(issue, start)

    def conceded(self, issue: Any, count: int) -> None:
        self.bots[0].until(f"{count} have conceded", lambda: len(self.notes(issue, "conceded to")) >= count)

    def race(self) -> None:
        """One round: all want it, one gets it, the others say so, and its report ends it."""
        issue = self.ask()
        self.conceded(issue, len(self.bots) - 1)
        self.go(issue)
        self.bots[0].note(issue, "# REPORT -")
        self.check(issue)

    def check(self, issue: Any) -> None:
        """One claim, one report, and everybody else conceded to that one."""
        claims, reports, conceded = (self.notes(issue, start) for start in ("claimed by", "# REPORT -", "conceded to"))
        assert (1, 1, len(self.bots) - 1) == (len(claims), len(reports), len(conceded)), self.notes(issue, "")
        winner = _found(r"run (\S+)\n", claims[0])
        assert winner == _found(r"# REPORT - run (\S+) ", reports[0])
        assert {_found(r"conceded to \S+ run (\S+):", note) for note in conceded} <= {winner}
        assert ([], []) == self.bots[0].shown(issue)
        started = [run.name for bot in self.bots for run in bot.runs() if _is_on(run, issue) and _ran(run)]
        assert [winner] == started

    def closed(self) -> None:
        """Nothing is left of any run, on the forge or on any host."""
        for bot in self.bots:
            bot.until("its runs are closed", lambda bot=bot: all((r / "closed.json").exists() for r in bot.runs()))
        for bot in self.bots:  # the claims of all of them are on the one remote
            bot.assert_nothing_is_left(self.repo)

    def with_run(self, issue: Any) -> Harbour:
        """The bot whose run works the issue."""

        def look() -> Harbour | None:
            with_it = (bot for bot in self.bots for run in bot.runs() if _is_on(run, issue) and _ran(run))
            return next(with_it, None)

        return self.bots[0].until("somebody works it", look)


def _is_on(run: Path, issue: Any) -> bool:
    intent = run / "intent.json"
    return intent.exists() and f'"number":{issue.number},' in intent.read_text()


def _ran(run: Path) -> bool:
    return (run / "status.json").exists()


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, text
    return found[1]

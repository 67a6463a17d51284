"""Many bots, each with a home and a server process of its own, before one tracker and one forge."""

from __future__ import annotations

import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.redmine.site import Site
from tests.redmine.town import TicketTown
from tests.world import Repository, World

USERS = ("bot", "bot2", "bot3")


class Fleet:
    """`count` bots that all want the same tickets. The command of a run holds on until its ticket's file is there."""

    def __init__(self, folder: Path, world: World, site: Site, count: int, *, more: str = "") -> None:
        self.folder = folder
        self.site = site
        self.bots = [self._bot(n, world, site) for n in range(count)]
        first = self.bots[0]
        self.repo: Repository = first.shop(max_parallel=4)
        first.task(
            "hold",
            ["sh", "-c", f'until [ -e {folder}/go-"$1" ]; do sleep 0.05; done; echo x > "$1"; echo done', "hold"],
        )
        first.config = first.config.replace("poll_seconds = 5", "poll_seconds = 120") + more
        for bot in self.bots:
            bot.config = first.config

    def _bot(self, number: int, world: World, site: Site) -> TicketTown:
        home = self.folder / f"bot-{number}"
        home.mkdir()
        return TicketTown(home, world, site, as_=USERS[number % len(USERS)])

    def start(self) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda bot: bot.start(), self.bots))

    def close(self) -> None:
        for bot in self.bots:
            bot.close()

    def ask(self) -> int:
        """A new ticket that a person asks the bots to work; all are told at once."""
        number = self.site.ticket("a race")
        self.site.change(number, notes=f"/run hold -- {number}")
        for bot in self.bots:
            bot.ring("poll", "work")
        return number

    def go(self, number: int) -> None:
        """Lets the run on that ticket come to its end."""
        (self.folder / f"go-{number}").touch()

    def conceded(self, number: int, count: int) -> None:
        self.bots[0].until(
            f"{count} have conceded ticket {number}", lambda: len(self.notes(number, "conceded to")) >= count
        )

    def notes(self, number: int, start: str) -> list[str]:
        return [note for note in self.site.notes(number) if note.startswith(start)]

    def race(self) -> int:
        """One round: all want it, one gets it, the others say so, and its report ends it."""
        number = self.ask()
        self.conceded(number, len(self.bots) - 1)
        self.go(number)
        self.bots[0].note(number, "# REPORT -")
        self.check(number)
        return number

    def check(self, number: int) -> None:
        """One claim, one report, and everybody else conceded to that one."""
        claims, reports = self.notes(number, "claimed by"), self.notes(number, "# REPORT -")
        conceded = self.notes(number, "conceded to")
        assert (len(claims), len(reports), len(conceded)) == (1, 1, len(self.bots) - 1), self.site.notes(number)
        winner = _run(r"run (\S+)\n", claims[0])
        assert _run(r"# REPORT - run (\S+) ", reports[0]) == winner
        assert {_run(r"conceded to \S+ run (\S+):", note) for note in conceded} <= {winner}
        assert self.site.status(number) == "Resolved"
        started = [run.name for bot in self.bots for run in bot.runs() if self._is_on(run, number) and _ran(run)]
        assert started == [winner]

    def _is_on(self, run: Path, number: int) -> bool:
        intent = run / "intent.json"
        return intent.exists() and f'"number":{number},' in intent.read_text()

    def closed(self) -> None:
        """Nothing is left of any run, on the forge or on any host."""
        for bot in self.bots:
            bot.until("its runs are closed", lambda bot=bot: all((r / "closed.json").exists() for r in bot.runs()))
        for bot in self.bots:  # the claims of all of them are on the one remote
            bot.assert_nothing_is_left(self.repo)

    def with_run(self, number: int) -> TicketTown:
        """The bot whose run works the ticket."""

        def look() -> TicketTown | None:
            for bot in self.bots:
                if any(self._is_on(run, number) and _ran(run) for run in bot.runs()):
                    return bot
            return None

        return self.bots[0].until(f"somebody works ticket {number}", look)

    def freeze(self, bot: TicketTown, *, on: bool) -> None:
        """Suspends the server, or lets it go on."""
        assert bot.server is not None
        bot.server.send_signal(signal.SIGSTOP if on else signal.SIGCONT)


def _ran(run: Path) -> bool:
    return (run / "status.json").exists()


def _run(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, text
    return found[1]

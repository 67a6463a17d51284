"""A server that kills itself at a named point of the road: `python -m tests.stories.mortal HOME CONFIG POINT`.

POINT is `STEP:begins` or `STEP:ended` for a step of `bot.road`, or one of `remembered` (a delivery is on disk, nothing
was decided), `decided` (carried out, the delivery is not done yet), `posted` (a comment is out, and not written down),
`prepared` (the worktree is made, and not written down), `started` (the supervisor runs, nothing was written down),
`claimed` (the claim is on the remote, and not written down),
`noted` (it is on the ticket, too, and not written down), `uploaded` (the tracker has the log, and no note has it yet),
`pushed` (the commit is on the remote, and not written down), `told` (the ticket has its last note, and nothing more),
`closed` (the run is, and the index does not say so), `resumed` (the next start is written down, and did not come).
`poisoned` does not kill: each comment that holds "poison" trips over an error. It is the real server and its own parts.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bot import handoff, road, steps
from bot.ages import Step
from bot.cli import serve
from bot.cli.server import Serving
from bot.dispatch import Hint
from bot.model import Commented, Event
from bot.wiring.bot import Bot


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def mortal(point: str) -> road.Observer | None:
    """Tells the timeline as ever, and dies at the point."""
    step, _, when = point.partition(":")

    def observe(run_id: str, seen: Step, *, ended: bool) -> None:
        if step == seen and (when == "ended") == ended:
            die()

    return observe if when else None


def arm(serving: Serving, point: str) -> None:
    """The points that are no steps."""
    bot: Bot = serving.bot
    if point == "remembered":
        bot.lanes.work = lambda _lane: die()  # type: ignore[method-assign]
    if point == "decided":
        bot.inbox.done = lambda _number: die()  # type: ignore[method-assign]
    if point == "closed":
        bot.road._steps.enter_closed = lambda _ages: die()  # type: ignore[method-assign]
    calls: dict[str, list[tuple[Any, str]]] = {
        "posted": [(forge, "post") for forge in bot.outside.forges.values()],
        "claimed": [(bot.ticketing.claims, "take")],
        "noted": [(bot.ticketing.tickets, "claim")],
        "uploaded": [(tracker, "upload") for tracker in bot.outside.trackers.values()],
        "told": [(bot.ticketing.tickets, "finish")],
        "prepared": [(bot.road._steps._worksite, "prepare")],
        "started": [(steps, "start")],
        "pushed": [(bot.road._steps._landing, "land")],
        "resumed": [(handoff, "_prepare_again")],
    }
    for where, name in calls.get(point, ()):
        _die_after(where, name)
    if point == "poisoned":
        bot.lanes._decide = _poisoned(bot.lanes._decide)  # type: ignore[method-assign]


def _poisoned(real: Callable[[Event], list[Hint]]) -> Callable[[Event], list[Hint]]:
    """An error of ours, whenever a comment holds the word."""

    def decide(event: Event) -> list[Hint]:
        if isinstance(event.what, Commented) and "poison" in event.what.text:
            raise ZeroDivisionError
        return real(event)

    return decide


def _die_after(where: Any, name: str) -> None:
    real = getattr(where, name)

    def last(*args: Any, **kwargs: Any) -> Any:
        real(*args, **kwargs)
        die()

    setattr(where, name, last)


def main() -> int:
    home, config, point = sys.argv[1:]

    class Mortal(Serving):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs, observe=mortal(point))
            arm(self, point)

    serve.Serving = Mortal  # type: ignore[misc]
    sys.argv = ["leadsman", "--home", home, "--config", config, "serve"]
    from bot.cli import main as leadsman

    return leadsman()


if __name__ == "__main__":
    Path("/proc/self/comm").write_text("leadsman")
    sys.exit(main())

"""`leadsman demo`: one comment from the door to the published branch, then the same with the server killed midway."""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import click
from rich.console import Console
from rich.markdown import Markdown

from bot.cli import table
from bot.cli.clicked import examples
from bot.cli.demo_world import LOOK, Demo, Place, environment, events
from bot.timeline import marks

PULL = "local:demo/abacus#1"


@click.command("demo", epilog=examples("leadsman demo", "leadsman demo --keep"))
@click.option("--keep", is_flag=True, help="Leave the server on and its folder in place, and print where they are.")
def command(keep: bool) -> int:
    """A whole run on this machine, without any account: comment, run, branch, report; then again with a kill -9."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, _end)
    console = Console(highlight=False)
    root = Path(tempfile.mkdtemp(prefix="leadsman-demo-"))
    try:
        _shown(console, root, keep=keep)
    finally:
        if not keep:
            shutil.rmtree(root, ignore_errors=True)
    return 0


def _end(number: int, _frame: FrameType | None) -> None:
    """Whoever ends the demonstration ends its server."""
    sys.exit(128 + number)


def _shown(console: Console, root: Path, *, keep: bool) -> None:
    demo = Demo(Place(root), environment(root))
    ended = False
    try:
        address = demo.serve()
        console.rule("1. A comment becomes a published commit")
        console.print(f"A repository whose test fails, a pull request, and a server at {address}.", soft_wrap=True)
        _first(console, demo, address)
        console.rule("2. The server is killed in the middle of a run")
        address = _second(console, demo, address)
        ended = True
        _where_to_look(console, demo, address, keep=keep)
    finally:
        demo.close(keep=keep and ended)


def _first(console: Console, demo: Demo, address: str) -> None:
    console.print("Alice comments [bold]/run fix[/bold]; the forge signs the delivery and posts it.")
    _, posted = demo.comment(address, "/run fix")
    run_id = demo.seen("the run", lambda: demo.run_of("fix"))
    with _progress(console, demo, run_id):
        demo.seen("the run's end", lambda: True if demo.phase(run_id) == "closed" else None)
    report = demo.seen("the report", lambda: _report(demo, run_id))
    if console.is_terminal:
        console.print(Markdown(report))
    else:
        console.print(report, markup=False, soft_wrap=True)
    branch = f"leadsman/run/{run_id}"
    console.print(f"[bold]git log main..{branch}[/bold]")
    console.print(demo.log_of(branch), markup=False)
    console.print()
    table.show(("when", "ms after the delivery", "step"), _timeline(demo, run_id, posted))


def _second(console: Console, demo: Demo, address: str) -> str:
    console.print("Alice comments [bold]/run slow-fix[/bold].")
    demo.comment(address, "/run slow-fix")
    run_id = demo.seen("the run", lambda: demo.run_of("slow-fix"))
    demo.seen("the command at work", lambda: True if demo.status(run_id).get("state") == "running" else None)
    began = demo.status(run_id)["started"]
    console.print(f"[bold]kill -9 {demo.kill()}[/bold] while the command works; the run goes on without a server:")
    demo.seen("the command's end", lambda: True if demo.status(run_id).get("finished") else None)
    console.print(f"it ended with exit code {demo.status(run_id)['exit_code']}, and nobody has heard of it yet.")
    address = demo.serve()
    console.print("The server is started again.")
    demo.seen("the run's end", lambda: True if demo.phase(run_id) == "closed" else None)
    demo.seen("the report", lambda: _report(demo, run_id))
    said = [body for author, body, _ in demo.comments() if author != "alice" and run_id in body]
    branches = [name for name in demo.branches() if run_id in name]
    started_once = demo.status(run_id)["started"] == began
    commits = demo.log_of(branches[0]).splitlines() if branches else []
    rows = [
        ("starts of the command", "1" if started_once else "more than one"),
        ("published branches", str(len(branches))),
        ("commits on it", str(len([line for line in commits if "Add instead" in line]))),
        ("comments of the bot", str(len(said))),
        ("outcome", said[0].split("**")[1] if said else "none"),
    ]
    table.show((f"run {run_id}", "seen"), rows)
    return address


def _report(demo: Demo, run_id: str) -> str | None:
    """The comment once it holds the report: what stands on the pull request, not what the bot meant to say."""
    path = demo.place.run(run_id) / "report.md"
    if not path.exists():
        return None
    report = path.read_text().strip()
    return report if any(report.splitlines()[0] in body for _, body, _ in demo.comments()) else None


@contextmanager
def _progress(console: Console, demo: Demo, run_id: str) -> Iterator[None]:
    """The steps as they come, on a terminal as one line that changes."""
    over = threading.Event()

    def tell() -> None:
        shown = ""
        with console.status("waiting") as status:
            while not over.wait(LOOK):
                phase = demo.phase(run_id)
                if phase != shown:
                    status.update(f"run {run_id}: {phase}")
                    shown = phase

    thread = threading.Thread(target=tell, daemon=True)
    if console.is_terminal:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if thread.is_alive():
            thread.join()


def _timeline(demo: Demo, run_id: str, posted: float) -> list[tuple[str, str, str]]:
    seen = [("delivered", posted)]
    said = events(demo.place.home)
    seen += [("acknowledged", _at(e["at"])) for e in said if e["event"] == "acknowledged" and e.get("on") == PULL][:1]
    status = demo.status(run_id)
    seen += [("started", _at(status["started"])), ("ended", _at(status["finished"]))]
    steps = {mark.step: mark.at for mark in marks(demo.place.run(run_id))}
    seen += [("checked", steps["check"]), ("published", steps["publish"])]
    reported = [_at(e["at"]) for e in said if e["event"] == "answered" and _at(e["at"]) >= steps["report"]]
    seen += [("reported", at) for at in reported[:1]]
    return [
        (datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S.%f")[:-3], f"{(at - posted) * 1000:.0f}", name)
        for name, at in sorted(seen, key=lambda pair: pair[1])
    ]


def _at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _where_to_look(console: Console, demo: Demo, address: str, *, keep: bool) -> None:
    if not keep:
        console.print("\nAll of it is gone again. [bold]leadsman demo --keep[/bold] leaves it, to look around in.")
        return
    known = Path(shutil.which("leadsman") or "").resolve() == Path(sys.argv[0]).resolve()
    called = "leadsman" if known else sys.argv[0]  # as in `make demo`
    home = shlex.join([called, "--home", str(demo.place.home), "--config", str(demo.place.config)])
    console.print(f"\nThe server stays on: [bold]{address}[/bold]. Look further with", soft_wrap=True)
    for words in ("runs", "show RUN", "logs RUN", "deliveries", "doctor", 'comment demo/abacus#1 "/status"'):
        console.print(f"  {home} {words}", soft_wrap=True, markup=False)
    note = (demo.place.home / "server.json").read_text()
    pid = note.partition('"pid":')[2].partition(",")[0].strip()
    console.print(
        f"and end it with: kill {pid}; rm -r {shlex.quote(str(demo.place.root))}", soft_wrap=True, markup=False
    )

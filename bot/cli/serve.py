"""`leadsman serve`: the server: door, dispatcher and pages in one process."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

import click

from bot import home
from bot.cli.clicked import Setting, examples
from bot.cli.server import Serving
from bot.config import Config
from bot.errors import UserError
from bot.serving import address_of
from webhooks.server import Server, bound

log = logging.getLogger("leadsman")


@click.command(
    "serve",
    epilog=examples(
        "leadsman serve",
        "leadsman --home /srv/leadsman serve --listen 127.0.0.1:0",
        note="Ends well on SIGTERM and SIGINT (runs go on), reads its configuration anew on SIGHUP. "
        "Exit code 4: another server holds the home.",
    ),
)
@click.option("--listen", metavar="ADDRESS:PORT", help="In place of [server] listen; port 0 = any free one.")
@click.pass_obj
def command(setting: Setting, listen: str | None) -> int:
    """The server: takes deliveries, starts runs, publishes, reports, and shows its pages."""
    config = _with_listen(setting.config(), listen)
    logging.basicConfig(
        level=logging.DEBUG if setting.verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    folder = home.make(setting.home)
    with home.serving(folder) as lock:
        host, port = config.server.address
        try:
            sock = bound(host, port)
        except OSError as problem:
            raise UserError(
                f"{config.server.listen} can't be listened at: {problem.strerror}. Name another with [server] listen."
            ) from problem
        address = f"http://{_in_url(host)}:{sock.getsockname()[1]}"
        config = _with_address(config, address)
        pinned = replace(setting, config_file=config.source or setting.config_file)  # gone later, it is not "none"
        serving = Serving(
            config, folder, os.environ, reread=lambda: _with_address(_with_listen(pinned.config(), listen), address)
        )
        server = Server(serving.application, sock)
        with _at_work(server, serving) as broken:
            lock.listens_at(address)  # from here on others send signals
            for warning in config.warnings:
                log.warning("%s", warning)
            print(f"leadsman listens at {address}, home {folder}", flush=True)
            with server.hearing_signals():
                server.run()
    return 1 if broken.is_set() else 0


def _with_listen(config: Config, listen: str | None) -> Config:
    if listen is None:
        return config
    try:
        address_of(listen)
    except ValueError as problem:
        raise UserError(f"--listen {problem}.", code=2) from problem
    return replace(config, server=config.server.model_copy(update={"listen": listen}))


def _with_address(config: Config, address: str) -> Config:
    """With port 0, links point to the port that was found."""
    if config.server.public_url is not None:
        return config
    return replace(config, server=config.server.model_copy(update={"public_url": address}))


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@contextmanager
def _at_work(server: Server, serving: Serving) -> Iterator[threading.Event]:
    """The bot works, and signals reach it: SIGTERM and SIGINT end the server, SIGHUP reloads.

    Yields what is set where the server ends by a failure.
    """
    reload_wanted = threading.Event()
    over, broken = threading.Event(), threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.stop()

    def reload(_number: int, _frame: FrameType | None) -> None:
        reload_wanted.set()

    def reloader() -> None:
        try:
            while reload_wanted.wait() and not over.is_set():
                reload_wanted.clear()
                serving.reload()
        except Exception:
            # The bot that worked has ended: better no server than one that takes what nobody works.
            log.exception("A reload failed half way, so the server ends. Start it again: it goes on where it was.")
            broken.set()
            server.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGHUP, reload)
    serving.start()
    thread = threading.Thread(target=reloader, name="reload", daemon=True)
    thread.start()  # not before: only a bot that has begun can be replaced
    try:
        yield broken
    finally:
        over.set()
        reload_wanted.set()
        thread.join()
        serving.stop()

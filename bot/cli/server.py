"""The serving process: the bot of the configuration in force, its door, and how both are replaced on a reload."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile

from bot.config import Config
from bot.dashboard import pages
from bot.dashboard.wellknown import well_known
from bot.dispatch import Hint
from bot.errors import Unavailable, UserError
from bot.rebuilding import denied, open_or_rebuild
from bot.road import Observer
from bot.store.engine import Store
from bot.wake import Doorbell
from bot.wiring.bot import Bot
from bot.wiring.outside import World
from webhooks.receiver import Application, Door

log = logging.getLogger("leadsman")


class Serving:
    """Holds the bot that works now. A reload ends it and starts the next one over the same store: all that is under
    way is in files, so there is nothing to hand over."""

    def __init__(
        self,
        config: Config,
        home: Path,
        environ: Mapping[str, str],
        *,
        reread: Callable[[], Config],
        observe: Observer | None = None,
    ) -> None:
        self._world = World(home=home, environ=environ)
        self._reread = reread
        self._observe = observe
        self._lock = threading.Lock()
        self._wrong_config = ""
        for folder in (self._world.runs, home / "worktrees", home / "checkouts", home / "mirrors"):
            folder.mkdir(mode=0o700, exist_ok=True)
        self.store: Store
        self.store, rebuilt = open_or_rebuild(config.store, home)
        if rebuilt is not None and (rebuilt.runs or rebuilt.unreadable):
            log.warning("The store was missing; %s", rebuilt)
        self.bot = Bot(config, self._world, self.store, observe)
        self._door = Door(self.bot.outside.tables, self.bot.inbox, self._wake_lane)
        self.application = Application(
            self._door,
            self.checks,
            [pages(lambda: self.bot.view(self._notices)), well_known(lambda: self.bot.key.public.pem)],
        )
        self._doorbell = Doorbell(home, lambda kind, key: self.bot.dispatcher.put(Hint(kind, key)))

    def _notices(self) -> tuple[str, ...]:
        if not self._wrong_config:
            return ()
        return (f"The configuration is wrong, and the last good one is in force: {self._wrong_config}",)

    def _wake_lane(self, lane: str) -> None:
        self.bot.dispatcher.put(Hint("lane", lane))  # whichever bot works now

    def start(self) -> None:
        try:
            self.bot.join()
        except Unavailable as problem:  # what opens may be broken further in
            raise denied(problem, self.bot.config.store) from problem
        self.bot.start()
        self._doorbell.start()

    def stop(self) -> None:
        self._doorbell.stop()
        with self._lock:
            self.bot.stop()
        self.store.close()

    def reload(self) -> None:
        """Takes up the changed configuration; a wrong one leaves the last good one in force, and is said."""
        begun = self._world.clock()
        try:
            config = self._reread()
            # A secret that is missing shows only here.
            bot = Bot(config, self._world, self.store, self._observe, after=self.bot, read_at=begun)
            bot.join()  # a store that is away shows only here: the bot that works is not ended for one that can't
        except UserError as problem:
            self._keep_on("The configuration is wrong", problem.text, begun)
            return
        except Unavailable as problem:
            self._keep_on("The configuration can't be taken up now", str(problem), begun)
            return
        except Exception as problem:  # a border: the bot that works goes on, and who asked is told
            log.exception("A reload failed inside Leadsman")
            self._keep_on("The configuration can't be taken up now", f"Leadsman failed at it: {problem!r}", begun)
            return
        with self._lock:
            self._wrong_config = ""
            if config.store != self.bot.config.store or config.server.listen != self.bot.config.server.listen:
                log.warning("[store] and [server] listen are taken up by a restart, not by a reload.")
            self.bot.stop()
            bot.slots.peak = max(bot.slots.peak, self.bot.slots.peak)
            self.bot = bot
            self._door.tables, self._door.inbox = self.bot.outside.tables, self.bot.inbox
            self.bot.start()
        log.info("The configuration was read anew.")

    def _keep_on(self, what: str, why: str, begun: float) -> None:
        self._wrong_config = why
        log.warning("%s, the last good one stays in force: %s", what, why)
        self.bot.say_configuration_is_wrong(why, begun)

    def checks(self) -> dict[str, str]:
        """What readiness is made of."""
        return {
            "store": self._store_check(),
            "home": "ok",  # its lock is held for as long as this process lives
            "git": "ok" if shutil.which("git", path=self._world.environ.get("PATH")) else "git is not on PATH",
            "disk": self._disk_check(),
            "configuration": "ok" if not self._wrong_config else f"wrong, not taken up: {self._wrong_config}",
        }

    def _store_check(self) -> str:
        try:
            self.store.check()
            with self.store.write() as connection:
                connection.exec_driver_sql("SELECT 1")
        except Unavailable as problem:
            return str(problem)
        return "ok"

    def _disk_check(self) -> str:
        try:
            with TemporaryFile(dir=self._world.home, buffering=0) as probe:
                probe.write(b"x")
        except OSError as problem:
            return f"{self._world.home} can't be written: {problem.strerror}"
        free = os.statvfs(self._world.home)
        share = free.f_bavail * free.f_frsize
        return "ok" if share > 64 * 1024 * 1024 else f"only {share} bytes are free"

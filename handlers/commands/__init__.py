"""The commands that exist. A new one is a file beside this one, and its name here."""

from __future__ import annotations

from collections.abc import Mapping

from handlers.commands.cancel import CANCEL
from handlers.commands.claim import CLAIM, RELEASE
from handlers.commands.help import HELP
from handlers.commands.hold import HOLD, UNHOLD
from handlers.commands.logs import LOGS
from handlers.commands.ok_to_test import OK_TO_TEST
from handlers.commands.resume import RESUME
from handlers.commands.retry import RETRY
from handlers.commands.run import RUN
from handlers.commands.status import STATUS
from handlers.commands.tasks import TASKS
from handlers.commands.verify import VERIFY
from handlers.record import Command

COMMANDS: Mapping[str, Command] = {
    "help": HELP,
    "tasks": TASKS,
    "run": RUN,
    "status": STATUS,
    "logs": LOGS,
    "cancel": CANCEL,
    "resume": RESUME,
    "retry": RETRY,
    "claim": CLAIM,
    "release": RELEASE,
    "verify": VERIFY,
    "hold": HOLD,
    "unhold": UNHOLD,
    "ok-to-test": OK_TO_TEST,
}

"""`/help`: what this person may do here."""

from __future__ import annotations

from bot import wording
from bot.model import Permission
from bot.nearest import nearest
from handlers import permission
from handlers.arguments import Spec
from handlers.decision import Say
from handlers.record import Ask, Record
from handlers.views import Desk


def _handle(ask: Ask, desk: Desk) -> tuple[Say, ...]:  # noqa: ARG001
    wanted = ask.arguments.word(0)
    if wanted is not None:
        return (_of(wanted.lower().removeprefix("/"), ask),)
    rows = [
        (command.usage, command.help, denied is not None)
        for command in ask.commands.values()
        if (denied := permission.check(command, ask.permission, ask.who)) is None or permission.asker_may(command)
    ]
    return (Say(wording.help_page(rows, who=ask.who.login, has=permission.word(ask.permission))),)


def _of(name: str, ask: Ask) -> Say:
    command = ask.commands.get(name)
    if command is None:
        return Say(wording.unknown_command(name, nearest(name, ask.commands)), well=False)
    return Say(
        wording.help_of(
            usage=command.usage,
            text=command.help,
            needs=permission.word(command.needs),
            or_asker=permission.asker_may(command),
        )
    )


HELP = Record(
    name="help",
    usage="/help [COMMAND]",
    help="what you may do here",
    needs=Permission.NONE,
    takes=Spec(optional=("COMMAND",)),
    handle=_handle,
)

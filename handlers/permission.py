"""Who may use a command: the one place that says no."""

from __future__ import annotations

from dataclasses import dataclass

from bot import wording
from bot.model import Actor, Permission
from handlers.record import Command, RunRecord
from handlers.views import RunView


@dataclass(frozen=True, slots=True)
class Denied:
    """Not with this permission: what is needed, and what the person has."""

    needs: Permission
    has: Permission


def check(command: Command, has: Permission, who: Actor, run: RunView | None = None) -> Denied | None:
    """None where `who` may use the command; for one that is about a run: on that `run`."""
    if has >= command.needs or (run is not None and asker_may(command) and asked_for(run, who)):
        return None
    return Denied(command.needs, has)


def asker_may(command: Command) -> bool:
    return isinstance(command, RunRecord) and command.or_asker


def asked_for(run: RunView, who: Actor) -> bool:
    """People are told apart by the forge's id: a login can be renamed, and taken by somebody else."""
    return run.asked_by.id == who.id


def explain(denied: Denied, command: Command, who: Actor) -> str:
    return wording.denied(
        command.name, needs=word(denied.needs), has=word(denied.has), who=who.login, or_asker=asker_may(command)
    )


def word(permission: Permission) -> str:
    return permission.name.lower()

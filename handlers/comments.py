"""From a comment to what is to be done about each of its commands."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from bot import wording
from bot.errors import Forbidden, Gone, UserError
from bot.forges import Comment
from bot.invisible import made_visible
from bot.markdown import inline
from bot.model import Actor, BranchRef, Commented, Event, Ignored, Permission, Thread
from bot.projects import Project
from bot.store.books import name_of
from handlers import misread, permission
from handlers.arguments import Arguments, parse
from handlers.choosing import choose
from handlers.commands import COMMANDS
from handlers.decision import Answer, Decision, Obeyed, Result, Say
from handlers.grammar import MAX_COMMANDS, Line, Misread, Words, commands_in, read
from handlers.patience import patience
from handlers.record import Ask, Command, RunRecord
from handlers.views import Desk

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""What the door writes as U+FFFD in what was delivered; the forge's own answer still has it."""

_REMEMBERED = 200
"""Characters of a command's text that are kept as they are."""


def decide_comment(event: Event, what: Commented, project: Project, desk: Desk) -> Decision | Ignored:
    """Nothing that the payload says counts unless the forge says so now: the text, its author, their permission."""
    on = event.subject
    if isinstance(on, BranchRef):
        return Ignored("Comments on branches are not read.")
    words = Words(frozenset(COMMANDS), desk.bot_names(on))
    reading = read(what.text, words, before=what.before)
    if not reading.commands:
        return Ignored("The comment holds no new command.")
    talk = desk.talk(on)
    if (why := _not_counted(what.author, talk.me(), desk, event)) is not None:
        return Ignored(why)
    try:
        with patience(event, desk.now()):
            live = talk.comment(on, what.comment_id)
    except Gone:
        return Ignored("The comment is gone.")
    if (why := _not_counted(live.author, talk.me(), desk, event)) is not None:
        return Ignored(why)
    if what.before is not None and event.actor.id != live.author.id:
        return Ignored("The comment was edited by somebody else than its author.")
    new = _still_to_do(reading.commands, live, on, words, desk)
    if not new:
        return Ignored("Each command of the comment was obeyed before, or is no longer in it.")
    answer = Answer(_key(on, live.id, new[0]), on, live.id)
    turn = _Turn(event=replace(event, actor=live.author), on=on, live=live, project=project, desk=desk, answer=answer)
    results = turn.all_of(new)
    if reading.left_out:
        results = (*results, Say(wording.too_many(MAX_COMMANDS, reading.left_out), well=False))
    return Decision(results, answer, tuple(_obeyed(on, live, done) for done in new))


def _not_counted(author: Actor, me: Actor, desk: Desk, event: Event) -> str | None:
    """Why a comment of this author is not listened to, or None where it is."""
    if author.id == me.id:
        return "The comment is the bot's own."
    allowed = {login.lower() for login in desk.allowed_bots(event.subject)}
    if author.is_bot and author.login.lower() not in allowed:
        return f"{author.login} is a bot that is not listed in allowed_bots."
    return None


def _still_to_do(
    commands: tuple[Line | Misread, ...], live: Comment, on: Thread, words: Words, desk: Desk
) -> tuple[Line | Misread, ...]:
    """Those that the comment still holds now, and that were not obeyed before."""
    there = {(_as_delivered(now.text), now.occurrence) for now in commands_in(live.body, words)}
    return tuple(
        command
        for command in commands
        if (_as_delivered(command.text), command.occurrence) in there
        and not _is_in_the_books(_obeyed(on, live, command), desk)
    )


def _as_delivered(text: str) -> str:
    return _NO_TEXT.sub("\ufffd", text)


def _obeyed(on: Thread, live: Comment, command: Line | Misread) -> Obeyed:
    """A database takes no NUL and no half characters, and no index takes 8,192 characters."""
    text = made_visible(command.text)
    if len(text) > _REMEMBERED:
        text = f"{text[:_REMEMBERED]}... {hashlib.sha256(text.encode()).hexdigest()}"
    return Obeyed(on.repo, name_of(on, live.id), text, command.occurrence)


def _is_in_the_books(done: Obeyed, desk: Desk) -> bool:
    return desk.memory.already_obeyed(done.repo, done.comment_id, done.line, done.occurrence)


def _key(on: Thread, comment_id: str, first: Line | Misread) -> str:
    """A name for the answer that stays the same when the same commands are decided again. It stands in an HTML
    comment, so nothing that people wrote may be in it."""
    whole = "\0".join([on.kind, str(on), comment_id, first.text, str(first.occurrence)])
    return f"comment-{hashlib.sha256(whole.encode(errors='surrogatepass')).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One comment's commands, decided one after the other. `event.actor` is the comment's author."""

    event: Event
    on: Thread
    live: Comment
    project: Project
    desk: Desk
    answer: Answer

    def all_of(self, commands: tuple[Line | Misread, ...]) -> tuple[Result, ...]:
        try:
            has = self.desk.talk(self.on).permission(self.on, self.event.actor)
        except Gone:
            has = Permission.NONE
        except Forbidden as problem:
            return (Say(wording.no_right(str(problem)), well=False),)
        results: tuple[Result, ...] = ()
        for ordinal, written in enumerate(commands):
            results += self._one(written, ordinal, has, results)
        return results

    def _one(
        self, written: Line | Misread, ordinal: int, has: Permission, earlier: tuple[Result, ...]
    ) -> tuple[Result, ...]:
        if isinstance(written, Misread):
            return (Say(misread.explain(written.why, usage="", passes_on=False), well=False),)
        command = COMMANDS[written.name]
        if not permission.asker_may(command):
            denied = permission.check(command, has, self.event.actor)
            if denied is not None:
                return (Say(permission.explain(denied, command, self.event.actor), well=False),)
        arguments = parse(written.rest, command.takes)
        if not isinstance(arguments, Arguments):
            why = misread.explain(arguments, usage=command.usage, passes_on=command.takes.more)
            return (Say(why, well=False),)
        return self._handled(command, self._ask(written, ordinal, arguments, has, earlier))

    def _ask(
        self, written: Line, ordinal: int, arguments: Arguments, has: Permission, earlier: tuple[Result, ...]
    ) -> Ask:
        return Ask(
            event=self.event,
            on=self.on,
            line=written.text,
            ordinal=ordinal,
            arguments=arguments,
            permission=has,
            project=self.project,
            made_at=self.live.created_at,
            now=self.desk.now(),
            answer=self.answer.key,
            commands=COMMANDS,
            earlier=earlier,
        )

    def _handled(self, command: Command, ask: Ask) -> tuple[Result, ...]:
        """What the command comes to; what the person or the forge's rights stand against becomes an answer."""
        try:
            with patience(self.event, ask.now):
                if not isinstance(command, RunRecord):
                    return command.handle(ask, self.desk)
                run = choose(command, ask, self.desk.runs)
                return (run,) if isinstance(run, Say) else command.handle(ask, self.desk, run)
        except UserError as problem:
            return (Say(inline(problem.text), well=False),)
        except Gone as problem:
            return (Say(wording.not_found(str(problem)), well=False),)
        except Forbidden as problem:
            return (Say(wording.no_right(str(problem)), well=False),)

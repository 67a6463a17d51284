"""`leadsman comment`: says something on a local pull request or issue, as a person would, and waits for the answer."""

from __future__ import annotations

import json
import math
import sys
import time

import click

from bot.cli.awaiting import Answer, await_answer
from bot.cli.clicked import Setting, examples, json_option
from bot.cli.local_desk import Desk, Subject, Told, as_option, desk
from bot.cli.local_shown import plain
from bot.errors import UserError
from bot.forges.local import Act

TIMED_OUT = 124


@click.command(
    "comment",
    epilog=examples(
        'leadsman comment acme/shop#1 "/run test" --wait',
        'leadsman comment acme/shop#1 --as rita "/help"',
        note="Exit codes with --wait: 0 all of it went well, 1 the bot refused or a run failed, 124 the time ran out.",
    ),
)
@click.argument("subject", metavar="REPO#N")
@click.argument("text")
@as_option
@click.option("--wait", is_flag=True, help="Wait until the bot has answered to the end, and print that.")
@click.option("--timeout", type=click.FloatRange(min=0), default=600.0, show_default=True, help="Seconds of --wait.")
@json_option
@click.pass_obj
def command(
    setting: Setting, *, subject: str, text: str, author: str, wait: bool, timeout: float, as_json: bool
) -> int:
    """Writes TEXT as a comment on a local pull request or issue."""
    if math.isnan(timeout):
        raise UserError("--timeout takes a number of seconds. For example: `--timeout 60`.", code=2)
    with desk(setting) as here:
        on = here.subject(subject)
        act = on.people.comment(on.repo, on.number, author=author, text=text)
        told = here.tell(on.forge, [act.event])
        if not wait:
            _say(on, act, told, here, as_json=as_json)
            return 0
        if not told.server:
            print(f"{told.note} Start it to get an answer.", file=sys.stderr)
            return 1
        answer = await_answer(here, on, act, time.monotonic() + timeout)
        return _answered(on, act, answer, timeout, as_json=as_json)


def _say(on: Subject, act: Act, told: Told, here: Desk, *, as_json: bool) -> None:
    url = on.forge.comment_url(act.on, act.comment_id)
    if as_json:
        print(json.dumps({"subject": str(on), "comment": act.comment_id, "url": url, "told": told.to}))
        return
    print(f"{act.event.actor.login} on {on}: {url}")
    print(told.note)
    if advice := here.advice(on.forge, on.repo):
        print(advice, file=sys.stderr)


def _answered(on: Subject, act: Act, answer: Answer | None, timeout: float, *, as_json: bool) -> int:
    if as_json:
        text, well = (answer.text, answer.well) if answer else (None, None)
        print(json.dumps({"subject": str(on), "comment": act.comment_id, "answer": text, "well": well}))
    elif answer is None:
        print(
            f"No answer to the end within {timeout:g} s. `leadsman local show {on}` shows how it goes on.",
            file=sys.stderr,
        )
    else:
        print(plain(answer.text))
    if answer is None:
        return TIMED_OUT
    return 0 if answer.well else 1

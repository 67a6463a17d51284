"""`leadsman key`: the key that this home's reports are signed with, as others need it to check them."""

from __future__ import annotations

import json

import click

from bot import home
from bot.cli.clicked import Setting, examples, json_option
from bot.signing import own_key


@click.command(epilog=examples("leadsman key > leadsman.pub"))
@json_option
@click.pass_obj
def command(setting: Setting, *, as_json: bool) -> None:
    """Prints the public key that reports are signed with (PEM); it is made where there is none yet.

    Give it to whoever is to check a report. A server shows the same one at /.well-known/leadsman.pub.
    """
    key = own_key(home.make(setting.home)).public
    click.echo(json.dumps({"id": key.id, "pem": key.pem}) if as_json else key.pem, nl=as_json)

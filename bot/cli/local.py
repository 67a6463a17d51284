"""`leadsman local`: repositories, pull requests and issues on this host, without an account anywhere."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click

from bot.cli import local_hook, local_shown, table
from bot.cli.clicked import Setting, examples, json_option
from bot.cli.local_desk import Desk, Subject, as_option, desk
from bot.forges.local import Act, Local, account
from bot.model import Event


@click.group(
    "local",
    epilog=examples(
        "leadsman local init-repo acme/shop",
        "leadsman local pull acme/shop topic",
        "leadsman local show acme/shop#1",
        note='Needs [forges.<name>] with kind = "local".',
    ),
)
def command() -> None:
    """Repositories, pull requests and issues on this host, without any account."""


@command.command("init-repo", epilog=examples("leadsman local init-repo acme/shop --from ~/src/shop"))
@click.argument("repo", metavar="OWNER/NAME")
@click.option("--from", "origin", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Copy this one.")
@as_option
@json_option
@click.pass_obj
def init_repo(setting: Setting, *, repo: str, origin: Path | None, author: str, as_json: bool) -> None:
    """Makes a bare repository: empty but for a README, or with the branches and tags of another."""
    with desk(setting) as here:
        forge, name = here.forge(repo)
        place = here.people(forge).make_repository(name, source=origin, author=author)
        local_hook.install(place, here.around.home, here.config, f"{forge.name}:{name}")
        if as_json:
            print(json.dumps({"repository": name, "forge": forge.name, "path": str(place)}))
            return
        print(f"{name} is at {place}. Next:\n\n  git clone {shlex.quote(str(place))}")
        print(f"  leadsman local issue {name} 'The tests are slow'")
        if advice := here.advice(forge, name):
            print(f"\n{advice}")


@command.command("list", epilog=examples("leadsman local list", "leadsman local list acme/shop"))
@click.argument("repo", metavar="[OWNER/NAME]", required=False)
@json_option
@click.pass_obj
def list_(setting: Setting, *, repo: str | None, as_json: bool) -> None:
    """The repositories; or the pull requests and issues of one, the newest first."""
    with desk(setting) as here:
        if repo is None:
            _list_repositories(here, as_json=as_json)
            return
        forge, name = here.forge(repo)
        forge.bares.path(name)
        found = forge.threads.listing(name)
        if as_json:
            print(json.dumps([local_shown.facts(forge, thread) for thread in found]))
            return
        rows = [(f"#{one.number}", one.kind, one.state, local_shown.plain(one.title), one.author) for one in found]
        table.show(("number", "kind", "state", "title", "author"), rows)


@command.command("pull", epilog=examples("leadsman local pull acme/shop topic --title 'Adds a flag'"))
@click.argument("repo", metavar="OWNER/NAME")
@click.argument("branch")
@click.option("--base", help="The branch it is meant for; default: the repository's default branch.")
@click.option("--title", help="Default: the branch's name.")
@click.option("--body", default="", help="Its text.")
@as_option
@json_option
@click.pass_obj
def pull(
    setting: Setting,
    *,
    repo: str,
    branch: str,
    base: str | None,
    title: str | None,
    body: str,
    author: str,
    as_json: bool,
) -> None:
    """Opens a pull request for BRANCH, which must have been pushed."""
    with desk(setting) as here:
        forge, name = here.forge(repo)
        act = here.people(forge).open_pull(name, head=branch, base=base, title=title, author=author, body=body)
        _opened(here, forge, act, as_json=as_json)


@command.command("issue", epilog=examples("leadsman local issue acme/shop 'The tests are slow'"))
@click.argument("repo", metavar="OWNER/NAME")
@click.argument("title")
@click.option("--body", default="", help="Its text.")
@as_option
@json_option
@click.pass_obj
def issue(setting: Setting, *, repo: str, title: str, body: str, author: str, as_json: bool) -> None:
    """Opens an issue."""
    with desk(setting) as here:
        forge, name = here.forge(repo)
        act = here.people(forge).open_issue(name, title=title, author=author, body=body)
        _opened(here, forge, act, as_json=as_json)


@command.command("show", epilog=examples("leadsman local show acme/shop#1"))
@click.argument("subject", metavar="REPO#N")
@json_option
@click.pass_obj
def show(setting: Setting, *, subject: str, as_json: bool) -> None:
    """A pull request or issue as it is now, with its comments."""
    with desk(setting) as here:
        on = here.subject(subject)
        thread = on.people.thread(on.repo, on.number)
        said = on.forge.threads.conversation(on.repo, on.number)
        facts = local_shown.facts(on.forge, thread, said)
        print(json.dumps(facts) if as_json else local_shown.page(thread, facts, said))


@command.command("edit", epilog=examples("leadsman local edit acme/shop#1 3 '/run test'"))
@click.argument("subject", metavar="REPO#N")
@click.argument("comment", metavar="COMMENT")
@click.argument("text")
@as_option
@json_option
@click.pass_obj
def edit(setting: Setting, *, subject: str, comment: str, text: str, author: str, as_json: bool) -> None:
    """Gives a comment another text."""
    with desk(setting) as here:
        on = here.subject(subject)
        event = on.people.edit_comment(on.repo, on.number, comment, editor=author, text=text)
        _done(here, on, event, f"Comment {comment} of {on} was edited.", as_json=as_json)


@command.command("label", epilog=examples("leadsman local label acme/shop#1 bot"))
@click.argument("subject", metavar="REPO#N")
@click.argument("label")
@click.option("--remove", is_flag=True, help="Take it off.")
@as_option
@json_option
@click.pass_obj
def label(setting: Setting, *, subject: str, label: str, remove: bool, author: str, as_json: bool) -> None:
    """Sets a label, or takes it off."""
    with desk(setting) as here:
        on = here.subject(subject)
        if remove:
            was = label in on.people.thread(on.repo, on.number).labels
            event = on.people.unlabel(on.repo, on.number, label, author=author)
            _done(here, on, event, f"{label} was {'taken off' if was else 'not on'} {on}.", as_json=as_json)
            return
        event = on.people.label(on.repo, on.number, label, author=author)
        _done(here, on, event, f"{label} {'is' if event else 'was already'} on {on}.", as_json=as_json)


@command.command("assign", epilog=examples("leadsman local assign acme/shop#1 alice"))
@click.argument("subject", metavar="REPO#N")
@click.argument("who", metavar="USER")
@click.option("--remove", is_flag=True, help="Assign it to USER no longer.")
@as_option
@json_option
@click.pass_obj
def assign(setting: Setting, *, subject: str, who: str, remove: bool, author: str, as_json: bool) -> None:
    """Assigns a pull request or issue to somebody."""
    with desk(setting) as here:
        on = here.subject(subject)
        event = on.people.assign(on.repo, on.number, who, on=not remove, author=author)
        now = ", ".join(on.people.thread(on.repo, on.number).assignees) or "nobody"
        _done(here, on, event, f"{on} is assigned to {now}.", as_json=as_json)


@command.command("close", epilog=examples("leadsman local close acme/shop#1"))
@click.argument("subject", metavar="REPO#N")
@as_option
@json_option
@click.pass_obj
def close(setting: Setting, *, subject: str, author: str, as_json: bool) -> None:
    """Closes a pull request or issue. A pull request that was pushed to its base is merged by that."""
    with desk(setting) as here:
        on = here.subject(subject)
        event = on.people.close(on.repo, on.number, author=author)
        _done(here, on, event, f"{on} {'is' if event else 'was already'} closed.", as_json=as_json)


@command.command("received", hidden=True)
@click.argument("repo", metavar="OWNER/NAME")
@click.pass_obj
def received(setting: Setting, *, repo: str) -> None:
    """What git's post-receive hook calls: lines of `<before> <after> <ref>` on stdin."""
    with desk(setting) as here:
        forge, name = here.forge(repo)
        people = here.people(forge)
        events = [
            event
            for update in local_hook.updates(sys.stdin.buffer.read())
            for event in people.pushed(name, update.ref, update.before, update.after, author=account())
        ]
        if events:
            print(here.tell(forge, events).note)


def _list_repositories(here: Desk, *, as_json: bool) -> None:
    found = [(forge, name) for forge in here.forges.values() for name in forge.bares.names()]
    if as_json:
        print(json.dumps([{"forge": forge.name, "repository": name} for forge, name in found]))
    elif found:
        table.show(("forge", "repository", "path"), [(f.name, name, str(f.bares.path(name))) for f, name in found])
    else:
        print("There is no repository yet. `leadsman local init-repo acme/shop` makes one.")


def _opened(here: Desk, forge: Local, act: Act, *, as_json: bool) -> None:
    told = here.tell(forge, [act.event])
    subject, url = f"{act.on.repo.name}#{act.on.number}", forge.thread_url(act.on)
    if as_json:
        print(json.dumps({"subject": subject, "kind": act.on.kind, "url": url, "told": told.to}))
        return
    print(f"{subject}: {url}\n{told.note}")
    if advice := here.advice(forge, act.on.repo.name):
        print(advice, file=sys.stderr)


def _done(here: Desk, on: Subject, event: Event | None, text: str, *, as_json: bool) -> None:
    """Says what was done; where it was news, tells the bot first."""
    told = here.tell(on.forge, [event]) if event else None
    if as_json:
        print(json.dumps({"subject": str(on), "told": told.to if told else None}))
        return
    print(text if told is None else f"{text} {told.note}")

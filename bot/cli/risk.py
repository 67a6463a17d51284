"""`leadsman risk`: the tier of a change in a clone, as a report tells it, without a server and without network."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from bot.cli.clicked import examples, json_option
from bot.cli.options import say
from bot.errors import UsageError, UserError
from bot.invisible import made_visible
from bot.paths import REPOSITORY_FILE
from bot.weighing import Weighed, weigh
from gitops import clones
from gitops.git import Git, GitError
from gitops.objects import merge_base


@click.command(
    epilog=examples(
        "leadsman risk main..HEAD",
        "leadsman risk origin/main..topic --json",
        "leadsman risk BASE..TIP --rules main",
        note="Exit code 0 if it could be told, 1 if not, 2 for words that are off and for rules that are wrong.",
    )
)
@click.argument("change", metavar="BASE..HEAD")
@click.option(
    "--rules", "rules_from", metavar="COMMIT", help=f"The commit whose {REPOSITORY_FILE} counts; default: BASE."
)
@click.option("--repo", metavar="DIR", default=".", help="A folder in the clone; default: the one that you are in.")
@json_option
def command(*, change: str, rules_from: str | None, repo: str, as_json: bool) -> None:
    """The risk tier of a change, T0 to T3, and why: by the rules that BASE has, never by those of HEAD.

    What HEAD changes is counted from where the two parted. A side that is left out is what is checked out.
    """
    base_name, head_name = _sides(change)
    clone = clones.git_dir_of(Path.cwd() / repo)
    if clone is None:
        raise UserError(f"{Path.cwd() / repo} is in no clone. Call it inside one, or name its folder with --repo.")
    try:
        base, head = _commit(clone, base_name), _commit(clone, head_name)
        rules_at = base if rules_from is None else _commit(clone, rules_from)
        with clones.apart(clone) as git:
            _connected(git, base, head, change)
            weighed = weigh(git, base, head, rules_at=rules_at)
    except GitError as problem:
        raise UserError(f"The clone can't be read: {problem.brief}.") from problem
    for warning in weighed.warnings:
        say(f"warning: {made_visible(str(warning))}", sys.stderr)
    if as_json:
        _print_json(weighed, base, head, rules_at)
    else:
        _print_text(weighed, head, rules_at)


def _sides(change: str) -> tuple[str, str]:
    base, dots, head = change.partition("..")
    head = head.removeprefix(".")  # `BASE...HEAD` is how git writes what is counted from where they parted
    if not dots or not (base or head) or ".." in head:
        raise UsageError(f'Name two commits with two dots between them, like "main..HEAD", not "{change}".')
    return base or "HEAD", head or "HEAD"


def _commit(clone: Path, name: str) -> str:
    found = clones.commit_of(clone, name)
    if found is None:
        raise UserError(f"There is no commit {name} in this clone. Fetch it first, or name another one.")
    return found


def _connected(git: Git, base: str, head: str, change: str) -> None:
    """Where a part of the history is missing, that two commits share nothing of it says nothing."""
    if clones.is_cut(git) and merge_base(git, base, head) is None:
        raise UserError(f"This clone has not enough history to tell {change}. `git fetch --unshallow` gets the rest.")


def _print_json(weighed: Weighed, base: str, head: str, rules_at: str) -> None:
    found = weighed.assessment
    answer = {
        "tier": found.tier,
        "reasons": found.reasons,
        "files": found.files,
        "additions": found.added,
        "deletions": found.deleted,
        "base": base,
        "head": head,
        "merge_base": weighed.since,
        "rules": rules_at if weighed.has_rules else None,
    }
    print(json.dumps(answer, indent=2))


def _print_text(weighed: Weighed, head: str, rules_at: str) -> None:
    found = weighed.assessment
    say(found.tier or "no tier")
    for reason in found.reasons:
        say(f"  {made_visible(reason)}")
    noun = "file" if found.files == 1 else "files"
    say(f"{found.files} {noun}, +{found.added} -{found.deleted}, from {weighed.since} to {head}")
    there = "" if weighed.has_rules else ", which has none"
    say(f"rules: {REPOSITORY_FILE} at {rules_at}{there}")

"""`leadsman verify`: checks a report again, with nothing of the bot that wrote it but its public key."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click

from bot import recheck, sources
from bot.cli import table
from bot.cli.clicked import Setting, examples, json_option
from bot.cli.options import say
from bot.errors import Forbidden, Gone, Unavailable, UserError
from bot.invisible import made_visible
from bot.model import IssueRef, PullRef
from bot.recheck import Finding
from bot.rerun import Rerun
from bot.signing import KEY_FILE, Envelope, Malformed, PublicKey, envelope, own_key, public_key
from bot.statement import Statement, carried_in, opened
from gitops import clones, notes
from gitops.git import GitError
from gitops.mirror import Mirror
from gitops.names import is_sha


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be checked: a text with signed reports, and how it was come by."""

    text: str
    commit: str | None = None
    folder: Path | None = None


@click.command(
    epilog=examples(
        "leadsman verify HEAD --key leadsman.pub",
        "leadsman verify report.json --logs . --rerun",
        note="Exit code 0: all of it holds; 1: something differs; 3: something could not be checked, or nothing could.",
    )
)
@click.argument("report")
@click.option("--key", metavar="FILE|URL", help="The bot's public key; default: this home's own.")
@click.option("--repo", metavar="DIR|URL", help="The repository; default: the clone that you are in.")
@click.option("--logs", metavar="DIR", help="A folder with the logs; default: the one that the report is in.")
@click.option("--no-logs", is_flag=True, help="Leave the logs out: they are on the host that ran it.")
@click.option(
    "--rerun", is_flag=True, help="Run each check again, on a clean checkout; a command that left no commit, itself."
)
@json_option
@click.pass_obj
def command(
    setting: Setting,
    *,
    report: str,
    key: str | None,
    repo: str | None,
    logs: str | None,
    no_logs: bool,
    rerun: bool,
    as_json: bool,
) -> int:
    """Checks a report again. REPORT is its file, the address of the comment that it stands in, or a commit.

    The signature, the published ref, the figures of the change, its risk tier and the logs: each claim gets a verdict
    of its own.
    """
    findings: list[Finding] = []
    about: list[str] = []
    with tempfile.TemporaryDirectory(prefix="leadsman-verify-") as folder, _nothing_checked():
        verifier = _key(setting, key)
        against = sources.repository(repo, Path.cwd(), os.environ)
        asked = _asked(setting, report, against, Path(folder))
        for number, found in enumerate(sources.envelopes(asked.text)):
            check = _Check(asked, found, verifier, against, Path(folder) / str(number))
            findings += check.findings()
            about += check.about()
            if check.statement is not None and not no_logs:
                findings += recheck.of_logs(check.statement, Path(logs) if logs else asked.folder)
            if rerun:
                findings += check.again()
    return _tell(findings, about, as_json=as_json)


@contextmanager
def _nothing_checked() -> Iterator[None]:
    """What ends the whole of it says nothing about the report: 3, where 1 would say that something differs."""
    try:
        yield
    except UserError as problem:
        raise UserError(problem.text, code=2 if problem.code == 2 else 3) from problem
    except GitError as problem:
        raise UserError(f"The repository can't be read: {problem.brief}.", code=3) from problem
    except Unavailable as problem:
        raise UserError(f"It can't be checked now: {problem}", code=3) from problem
    except OSError as problem:
        raise UserError(f"It can't be checked here: {problem.strerror} ({problem.filename}).", code=3) from problem


def _key(setting: Setting, named: str | None) -> PublicKey | None:
    """The key to check against: never one that the report itself brings along."""
    if named is None:
        return own_key(setting.home).public if (setting.home / KEY_FILE).exists() else None
    text = sources.fetch(named, os.environ) if sources.is_address(named) else sources.read_file(Path(named))
    return public_key(text.encode())


def _asked(setting: Setting, report: str, against: sources.Repository | None, folder: Path) -> Asked:
    """What REPORT names. Raises `UserError`."""
    if sources.is_address(report):
        return Asked(_comment_of_ours(setting, report) or sources.body_of(sources.fetch(report, os.environ)))
    path = Path(report)
    if path.is_file():
        return Asked(sources.body_of(sources.read_file(path)), folder=path.absolute().parent)
    return _noted(report, against, folder)


def _noted(name: str, against: sources.Repository | None, folder: Path) -> Asked:
    """The note on a commit."""
    if against is None:
        raise UserError(f"There is no file {name}. For a commit, call it inside a clone, or name one with --repo.")
    commit = name if is_sha(name) else against.clone and clones.commit_of(against.clone, name)
    if not commit:
        raise UserError(f"There is no file and no commit {name} here. Give a commit's whole id, or fetch it first.")
    try:
        note = notes.read(against.mirror(folder / "notes.git", ()), commit)
    except GitError as problem:
        raise UserError(f"{against.remote.url} can't be read: {problem.brief}.") from problem
    if note is None:
        raise UserError(f"There is no note on {commit} in {notes.REF} of {against.remote.url}.")
    return Asked(note.decode("utf-8", "replace"), commit=commit)


def _comment_of_ours(setting: Setting, url: str) -> str | None:
    """The comment, if it is on a configured forge: that is asked with the bot's own credential, or is this host's."""
    from bot.store.engine import open_store
    from bot.wiring.outside import World, around, connect

    number, comment = _numbers(url)
    if not number or not comment or not setting.home.is_dir():
        return None
    try:
        config = setting.config()
        if not config.projects:
            return None
    except UserError:
        return None  # another machine, which has no configuration: nothing is wrong with that
    store = open_store(config.store, setting.home)
    try:
        forges = connect(config, around(config, World(home=setting.home, environ=os.environ), store))
        for project in config.projects:
            for ref in (PullRef(project.repo, number), IssueRef(project.repo, number)):
                if forges[project.forge].comment_url(ref, comment) == url:
                    return forges[project.forge].comment(ref, comment).body
    except (Gone, Forbidden, Unavailable) as problem:
        raise UserError(f"{url} can't be read: {problem}") from problem
    finally:
        store.close()
    return None


def _numbers(url: str) -> tuple[int, str]:
    """The last number of the address's path, and the one at its end."""
    parts = urlsplit(url)
    number, comment = parts.path.rpartition("/")[2], parts.fragment.rpartition("-")[2]
    return (int(number), comment) if number.isdecimal() and comment.isdecimal() and len(number) < 10 else (0, "")


class _Check:
    """One signed report under examination. `place` is a folder for what is fetched and run."""

    def __init__(
        self,
        asked: Asked,
        found: Envelope,
        key: PublicKey | None,
        against: sources.Repository | None,
        place: Path,
    ) -> None:
        self._asked = asked
        self._found = found
        self._place = place
        self._signature = recheck.of_signature(found, key)
        self.statement: Statement | None = None
        self._trouble = ""
        try:
            self.statement = opened(found)
        except Malformed as problem:
            self._trouble = str(problem)
        self._mirror = self._fetched(against) if self.statement else None

    def findings(self) -> Iterator[Finding]:
        yield self._signature
        if self.statement is None:
            yield recheck.differs("report", self._trouble)
            return
        yield from self._as_it_reads(self.statement)
        yield from recheck.of_commit(self.statement, self._mirror, asked=self._asked.commit)

    def about(self) -> Iterator[str]:
        """What it is a report of: one that is whole and in the wrong place is told by that alone."""
        if self.statement is not None:
            report = self.statement.report
            yield made_visible(
                f"Run {report.run} of {report.task} for {report.subject}, reported {report.at:%F %T} UTC"
            )

    def _as_it_reads(self, statement: Statement) -> Iterator[Finding]:
        """What people read around a report that is carried along, wherever the text came from."""
        text = self._asked.text
        carried = next((one for one in carried_in(text) if envelope(one) == self._found), None)
        if carried is None:
            return
        if "<html" in text:
            from bot.dashboard.reportpage import page

            yield recheck.of_page(text, page(statement, carried))
        else:
            yield recheck.of_comment(text, statement.report)

    def again(self) -> Iterator[Finding]:
        """Its checks, run anew. What anybody could have written is not run."""
        if self._signature.verdict != "holds" or self.statement is None:
            yield recheck.unknown("checks", "what an unproved report names is not run")
        elif self._mirror is None:
            yield recheck.unknown("checks", recheck.NO_REPOSITORY)
        else:
            yield from Rerun(self.statement.report, self._mirror, self._place, os.environ).findings()

    def _fetched(self, against: sources.Repository | None) -> Mirror | None:
        report = self.statement.report if self.statement else None
        if report is None:
            return None
        if against is None and report.repository.url and self._signature.verdict == "holds":
            against = sources.repository(report.repository.url, self._place, os.environ)
        if against is None:
            return None
        rules_at = report.risk and report.risk.rules_at
        named = (report.tip, report.base, report.changes_since, rules_at)
        commits = tuple(sha for sha in named if sha and is_sha(sha))
        return against.mirror(self._place / "mirror.git", commits)


def _tell(findings: list[Finding], about: list[str], *, as_json: bool) -> int:
    code = recheck.exit_code(findings)
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
        return code
    for line in about:
        say(line)
    rows = [(made_visible(one.claim), one.verdict, made_visible(one.detail)) for one in findings]
    table.show(("claim", "verdict", "seen"), rows)
    return code

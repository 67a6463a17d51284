"""Checks a report again: each of its claims gets a verdict of our own, from git and from the logs, not from the bot.

What can't be seen is said to be so; it is never taken for right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bot.config import ConfigErrors
from bot.logs import digest_of
from bot.masking import Masking
from bot.model import UNSEEN, Failed
from bot.paths import shown_path
from bot.publishing import RUN_BRANCHES
from bot.rendering import render
from bot.reports import Report, Risk
from bot.signing import Envelope, Malformed, PublicKey, envelope
from bot.statefiles import read_plain
from bot.statement import Statement, opened, without_carried
from bot.weighing import weigh
from gitops import evidence, publish
from gitops.git import GitError
from gitops.mirror import Mirror
from gitops.names import is_ref, is_sha

Verdict = Literal["holds", "differs", "could not check"]


_MARKER = re.compile(r"<!-- leadsman [^<>]{0,200} -->")

_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)

_READS_OTHERWISE = "it does not read as the report does: it was edited, or another version of Leadsman wrote it"

SQUASHED_INTO = 20
"""How many branches are looked at for the content of one that is gone."""

NO_REPOSITORY = "no repository: call it inside a clone, or name one with --repo"


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim of the report, and how it stands. `detail` says what was seen."""

    claim: str
    verdict: Verdict
    detail: str


def exit_code(findings: Sequence[Finding]) -> int:
    """0 only if all of them hold, 1 where one differs, 3 where one could not be checked, or there is none."""
    verdicts = {finding.verdict for finding in findings}
    if "differs" in verdicts:
        return 1
    return 0 if verdicts == {"holds"} else 3


def holds(claim: str, detail: str) -> Finding:
    return Finding(claim, "holds", detail)


def differs(claim: str, detail: str) -> Finding:
    return Finding(claim, "differs", detail)


def unknown(claim: str, detail: str) -> Finding:
    return Finding(claim, "could not check", detail)


def of_signature(found: Envelope, key: PublicKey | None) -> Finding:
    """Whose it is, and that not a byte was changed since."""
    if key is None:
        return unknown("signature", "no public key was given: --key takes the one that `leadsman key` printed")
    if found.signed_by(key):
        return holds("signature", f"by the key {key.id[:16]}…")
    signers = [one.key_id for one in found.signatures if one.key_id]
    if key.id in signers:
        return differs("signature", "the report was changed after it was signed")
    whose = f"by another key ({signers[0][:16]}…)" if signers else "by nobody who says who they are"
    return differs("signature", f"it is signed {whose}, not by {key.id[:16]}…")


def of_run(folder: Path, key: PublicKey, mirror_of: Callable[[Report], Mirror]) -> list[Finding]:
    """All that can be checked of the report in a run's directory; nothing where there is none."""
    try:
        text = read_plain(folder / "report.json")
        if text is None:
            return []
        found = envelope(text)
    except (OSError, Malformed) as problem:
        return [differs("report", str(problem))]
    signature = of_signature(found, key)
    try:
        statement = opened(found)
    except Malformed as problem:
        return [signature, differs("report", str(problem))]
    return [signature, *of_commit(statement, mirror_of(statement.report)), *of_logs(statement, folder)]


def of_comment(text: str, report: Report) -> Finding:
    """That the comment reads as its report does: the part between the markers, letter for letter."""
    plain = without_carried(text.replace("\r\n", "\n"))
    lines = [line for line in plain.split("\n") if not _MARKER.fullmatch(line)]
    parts = [part.strip() for part in "\n".join(lines).split("\n\n---\n\n")]
    should = render(report).strip()
    if any(part == should or (part.startswith("**Outdated**") and part.endswith(should)) for part in parts):
        return holds("comment", "it reads as the report does")
    return differs("comment", _READS_OTHERWISE)


def of_page(text: str, should: str) -> Finding:
    """That the page reads as the one that is made of its report, whatever it looks like."""
    if _STYLE.sub("", text).split() == _STYLE.sub("", should).split():
        return holds("page", "it reads as the report does")
    return differs("page", _READS_OTHERWISE)


def of_commit(statement: Statement, mirror: Mirror | None, *, asked: str | None = None) -> Iterator[Finding]:
    """What the report says of commits, against a repository that is not the bot's. `asked`: the commit in question."""
    report = statement.report
    if report.ref is None or report.tip is None:
        yield from _nothing_published(report, mirror)
        return
    if not (is_sha(report.tip) and is_sha(report.changes_since) and is_sha(report.base) and is_ref(report.ref)):
        yield differs("commit", "what it names are no commits and refs")
        return
    named = {subject.digest for subject in statement.subjects if subject.kind == "gitCommit"}
    if named != {report.tip} or asked not in (None, report.tip):
        yield differs("commit", f"it is about {', '.join(sorted(named))}, not {asked or report.tip}")
        return
    if mirror is None:
        for claim in ("published ref", "figures"):
            yield unknown(claim, NO_REPOSITORY)
        return
    yield _published(report, mirror)
    yield from _figures(report, mirror)


def of_logs(statement: Statement, folder: Path | None) -> Iterator[Finding]:
    """The logs that lie in `folder` as they lie in the run's directory."""
    for log in statement.logs:
        claim = f"log {log.name}"
        path = None if folder is None else folder / log.name
        if path is None or not path.resolve().is_relative_to(folder.resolve() if folder else path):
            yield unknown(claim, "the logs are on the host that ran it; --logs names a folder with a copy")
            continue
        found = digest_of(path)
        if found is None:
            yield unknown(claim, f"{path} is not there")
        elif found[1] == log.digest:
            yield holds(claim, f"{found[0]} bytes, SHA-256 {log.digest[:16]}…")
        else:
            yield differs(claim, f"its SHA-256 is {found[1][:16]}…, and was {log.digest[:16]}…")


def _nothing_published(report: Report, mirror: Mirror | None) -> Iterator[Finding]:
    claim = report.outcome.published if isinstance(report.outcome, Failed) else "nothing was published"
    ref = f"refs/heads/{RUN_BRANCHES}{report.run}"
    if mirror is None or not is_ref(ref):
        yield unknown(claim, NO_REPOSITORY)
        return
    try:
        seen = mirror.remote_ref(ref)
    except GitError as problem:
        yield unknown(claim, problem.brief)
        return
    told = f"there is no {ref}" if seen is None else f"{ref} holds {seen}"
    if isinstance(report.outcome, Failed) and report.outcome.stage == UNSEEN:
        yield unknown(claim, told)
    else:
        yield holds(claim, told) if seen is None else differs(claim, told)
    if report.tip is not None and is_sha(report.tip) and is_sha(report.changes_since) and is_sha(report.base):
        yield from _figures(report, mirror)  # the bot's own mirror has its commits


def _published(report: Report, mirror: Mirror) -> Finding:
    """The ref holds the tip, or has gone on from it."""
    claim, ref, tip = "published ref", str(report.ref), str(report.tip)
    try:
        seen = mirror.remote_ref(ref)
        if seen == tip:
            return holds(claim, f"{ref} holds {tip}")
        if seen is None:
            return _removed(claim, report, mirror)
        mirror.fetch_commit(seen, ref=ref)
        mirror.fetch_commit(tip)
    except GitError as problem:
        return unknown(claim, problem.brief)
    if mirror.is_ancestor(tip, seen):
        return holds(claim, f"{ref} holds {tip} and what came after it, up to {seen}")
    return differs(claim, f"{ref} holds {seen}, which has not {tip} in it: it was pushed over")


def _removed(claim: str, report: Report, mirror: Mirror) -> Finding:
    """A branch that is gone was merged, as it is or as one commit of the same content, or is missed."""
    ref, tip = str(report.ref), str(report.tip)
    mirror.refresh()
    heads = _heads(mirror)
    merged = next((name for name, head in heads if mirror.is_ancestor(tip, head)), None)
    if merged is not None:
        return holds(claim, f"{ref} was removed; {merged} has {tip} in it")
    since = report.changes_since
    near = heads[:SQUASHED_INTO] if mirror.fetch_commit(tip) and mirror.fetch_commit(since) else []
    same = next((name for name, head in near if publish.already_merged(mirror, tip, since, head)), None)
    if same is not None:
        return holds(claim, f"{ref} was removed; {same} has the same content")
    return differs(claim, f"there is no {ref} any more, and no branch has {tip} in it")


def _heads(mirror: Mirror) -> list[tuple[str, str]]:
    """The branches, those with the newest commits first."""
    newest = ("--sort=-committerdate", "--format=%(refname:lstrip=3) %(objectname)")
    lines = mirror.git.run("for-each-ref", *newest, "refs/remotes/origin/").text
    return [(name, sha) for name, _, sha in (line.rpartition(" ") for line in lines.splitlines())]


def _figures(report: Report, mirror: Mirror) -> Iterator[Finding]:
    tip, since = str(report.tip), str(report.changes_since)
    try:
        here = [mirror.fetch_commit(sha) for sha in (tip, since, report.base)]
    except GitError as problem:
        yield unknown("figures", problem.brief)
        return
    if not all(here):
        yield unknown("figures", f"the repository has not all of {since}, {tip} and the base")
        return
    figures = evidence.figures(mirror, since, tip)
    as_told = Masking()  # a name that looks like a secret was masked before the report was signed
    now = {(as_told(shown_path(file.path)), file.added, file.deleted) for file in figures.files}
    then = {(as_told(change.path), change.added, change.deleted) for change in report.changes}
    said = f"{len(now)} files, +{figures.additions} -{figures.deletions}"
    yield holds("figures", said) if now == then else differs("figures", f"{_difference(now, then)}; it is {said}")
    commits = int(mirror.git.run("rev-list", "--count", tip, "--not", since).text)
    right = commits == report.commits
    yield (holds if right else differs)("commits", f"{commits}" if right else f"{commits}, not {report.commits}")
    yield _history(report, tip, mirror)
    if report.risk is not None:
        yield _risk(report.risk, since, tip, mirror)


def _history(report: Report, tip: str, mirror: Mirror) -> Finding:
    """What descends from its base when it is sealed is put on top of the commits of others where these came first."""
    rebased = report.descends and bool(report.incorporated)
    root, name = (report.changes_since, "what came first") if rebased else (report.base, "the base")
    descends = mirror.is_ancestor(root, tip)
    told = f"it descends from {name}" if descends else f"it does not descend from {name}"
    return (holds if descends == report.descends else differs)("history", told)


def _risk(then: Risk, since: str, tip: str, mirror: Mirror) -> Finding:
    """The tier, weighed again by the very rules that the report names."""
    claim, rules_at = "risk tier", then.rules_at
    if then.tier == "unknown":
        return unknown(claim, f"the report could not tell it: {'; '.join(then.reasons)}")
    if rules_at is None or not is_sha(rules_at):
        return differs(claim, "it names no commit with rules, though something changed")
    try:
        if not mirror.fetch_commit(rules_at):
            return unknown(claim, f"the repository has not {rules_at}, whose rules count")
        now = weigh(mirror.git, since, tip, rules_at=rules_at).assessment
    except GitError as problem:
        return unknown(claim, problem.brief)
    except ConfigErrors as wrong:
        return unknown(claim, f"the rules at {rules_at} can't be read: {wrong.problems[0]}")
    as_told = Masking()
    reasons = tuple(map(as_told, now.reasons))
    said = f"{now.tier or 'no tier'}: {'; '.join(reasons)}"
    if now.tier != then.tier:
        return differs(claim, f"it is {said}; the report says {then.tier or 'no tier'}")
    return holds(claim, said) if reasons == then.reasons else differs(claim, f"for another reason it is {said}")


def _difference(now: set[tuple[str, int | None, int | None]], then: set[tuple[str, int | None, int | None]]) -> str:
    path, *_ = min(now ^ then, key=lambda change: change[0])
    return f"{path} is not as it says"

"""Weighs the change between two commits: the rules come from a commit that is not part of it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.config.problems import ConfigErrors, Problem
from bot.config.repository import FILE_BYTES, RiskRules, risk_rules, too_large
from bot.model import Sha
from bot.paths import REPOSITORY_FILE
from bot.reports import Risk
from bot.risk import Assessment, RiskSettings, assess
from gitops.changes import changed
from gitops.git import Git, GitError
from gitops.locks import LockTimeout
from gitops.mirror import Mirror
from gitops.objects import TooLarge, merge_base, read_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What the change is, since which commit it was counted, and what is odd in the rules."""

    assessment: Assessment
    since: str
    """The best common ancestor of both; the base itself where they have none."""
    has_rules: bool
    """There is a file that could hold some."""
    warnings: tuple[Problem, ...]


def weigh(git: Git, base: str, tip: str, *, rules_at: str) -> Weighed:
    """The change that `tip` is to `base`, by the rules of the commit `rules_at`. All of them are here.

    Raises `GitError`, and `ConfigErrors` where the rules are wrong.
    """
    rules = _rules(git, rules_at)
    settings = rules.settings if rules is not None else RiskSettings()
    since = merge_base(git, base, tip) or base
    return Weighed(
        assessment=assess(settings, changed(git, since, tip, patches=settings.reads_patches)),
        since=since,
        has_rules=rules is not None,
        warnings=rules.warnings if rules is not None else (),
    )


def risk_of(mirror: Mirror, base: Sha, tip: Sha, *, branch: str, rules_at: Sha | None) -> Risk:
    """The change's tier for a report: by the rules of `rules_at`, or where that is None of what the remote's `branch`
    holds now; never by what a run may have put into the mirror. What can't be told is said to be unknown: it is no
    reason to keep a report back."""
    try:
        rules_at = rules_at or _head_of(mirror, branch)
        if rules_at is None:
            return Risk(tier="unknown", reasons=(f"there is no branch {branch} any more",), branch=branch)
        found = weigh(mirror.git, base, tip, rules_at=rules_at).assessment
    except ConfigErrors as wrong:
        return Risk(tier="unknown", reasons=(str(wrong.problems[0]),), branch=branch, rules_at=rules_at)
    except (GitError, LockTimeout, OSError) as problem:
        why = problem.brief if isinstance(problem, GitError) else str(problem)
        return Risk(tier="unknown", reasons=(why,), branch=branch, rules_at=rules_at)
    return Risk(tier=found.tier, reasons=found.reasons, branch=branch, rules_at=rules_at)


def _head_of(mirror: Mirror, branch: str) -> Sha | None:
    ref = f"refs/heads/{branch}"
    seen = mirror.remote_ref(ref)
    if seen is not None:
        mirror.fetch_commit(seen, ref=ref)
    return None if seen is None else Sha(seen)


def _rules(git: Git, commit: str) -> RiskRules | None:
    data = read_file(git, commit, REPOSITORY_FILE, limit=FILE_BYTES)
    if isinstance(data, TooLarge):
        raise too_large()
    return None if data is None else risk_rules(data)

"""Removes the branches of runs whose work is proved to be merged, where that is wished. What can't be proved stays."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from bot.ages import Ages
from bot.codec import Unreadable
from bot.errors import Forbidden, Gone, Unavailable
from bot.journal import Journal
from bot.model import Intent, Published, PullRef, Repo
from bot.publishing import RUN_BRANCHES
from bot.repositories import Repositories, git_trouble
from gitops import publish
from gitops.mirror import Mirror

HOUR = 3600.0

_PREFIX = f"refs/heads/{RUN_BRANCHES}"


class Merged:
    """Looks once an hour, and whenever a pull request was closed."""

    def __init__(
        self, repositories: Repositories, runs_dir: Path, repos: Collection[Repo], *, journal: Journal
    ) -> None:
        self._repositories = repositories
        self._runs_dir = runs_dir
        self._repos = repos
        self._journal = journal

    def sweep(self, _key: str = "") -> float:
        """Returns when to look again."""
        for repo in self._repos:
            try:
                self._sweep_one(repo)
            except (Unavailable, Gone, Forbidden) as problem:
                self._journal.say("unmerged", repo=str(repo), why=str(problem))
        return HOUR

    def _sweep_one(self, repo: Repo) -> None:
        mirror = self._repositories.known_mirror(repo)
        if mirror is None:
            return
        with git_trouble(f"The merged branches of {repo} can't be removed"):
            there = mirror.remote_refs(f"{_PREFIX}*")
            wished = {ref: intent for ref, tip in there.items() if (intent := self._wished(repo, ref, tip)) is not None}
            if not wished:
                return
            mirror.refresh()
            for ref, intent in wished.items():
                self._remove_if_merged(mirror, ref, there[ref], intent)

    def _wished(self, repo: Repo, ref: str, tip: str) -> Intent | None:
        """What the run of that branch was to do, if the branch is still as it was published, and may be removed."""
        ages = Ages(self._runs_dir / ref.removeprefix(_PREFIX))
        try:
            ended, intent = (ages.ended, ages.intent) if ages.has("closed") else (None, None)
        except (Unreadable, OSError):
            return None
        if ended is None or intent is None or not isinstance(ended.outcome, Published):
            return None
        ours = intent.event.subject.repo == repo and ended.outcome.tip == tip
        return intent if ours and intent.publish.remove_merged else None

    def _remove_if_merged(self, mirror: Mirror, ref: str, tip: str, intent: Intent) -> None:
        for branch in self._meant_for(mirror, intent, tip):
            into = mirror.tracked(branch)
            if into is not None and publish.already_merged(mirror, tip, intent.head, into):
                gone = publish.remove(mirror, ref, expect=tip)
                self._journal.say("merged", run=intent.run_id, ref=ref, into=branch, removed=gone)
                return

    def _meant_for(self, mirror: Mirror, intent: Intent, tip: str) -> list[str]:
        """The branches that its work was for: the base, and the head of the pull request that it was done on.

        The base of one that is not merged proves nothing as long as it has not what the run began with: work that takes
        back what the pull request brings looks as if it were there already.
        """
        subject = intent.event.subject
        if not isinstance(subject, PullRef):
            return [intent.base_ref]
        pull = self._repositories.forge(subject.repo).pull(subject)
        heads = [] if pull.is_fork else [pull.head_ref]
        base = mirror.tracked(pull.base_ref)
        if base is None or (not pull.merged and not _has_both(mirror, intent.head, tip, base)):
            return heads
        return [pull.base_ref, *heads]


def _has_both(mirror: Mirror, head: str, tip: str, into: str) -> bool:
    since = mirror.merge_base(head, into)
    begun = since is not None and publish.already_merged(mirror, head, since, into)
    return begun or mirror.is_ancestor(tip, into)

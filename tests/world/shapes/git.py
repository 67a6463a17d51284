"""Branches, commits, files, statuses and checks as GitHub writes them down."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.world.gitrepo import Change, Commit, Entry
from tests.world.shapes.apps import AppShapes
from tests.world.shapes.people import Json, maybe, stamp
from tests.world.shapes.repositories import RepositoryShapes
from tests.world.state import Activity, CheckRun, Status

if TYPE_CHECKING:
    from tests.world.repository import Repository


class GitShapes(RepositoryShapes, AppShapes):
    def ref(self, repo: Repository, ref: str, sha: str) -> Json:
        api = self.repo_api(repo)
        target = {"type": "commit", "sha": sha, "url": f"{api}/git/commits/{sha}"}
        return {"ref": ref, "node_id": self.node(ref, repo.id), "url": f"{api}/git/{ref}", "object": target}

    def branch(self, repo: Repository, name: str, commit: Commit) -> Json:
        url = f"{self.repo_api(repo)}/branches/{name}"
        return {
            "name": name,
            "commit": self.commit(repo, commit),
            "_links": {"self": url, "html": f"{self.repo_web(repo)}/tree/{name}"},
            "protected": name in repo.protected,
            "protection": {
                "enabled": name in repo.protected,
                "required_status_checks": {"enforcement_level": "off", "contexts": [], "checks": []},
            },
            "protection_url": f"{url}/protection",
        }

    def activity(self, one: Activity) -> Json:
        return {
            "id": one.id,
            "node_id": self.node("PSH", one.id),
            "before": one.before,
            "after": one.after,
            "ref": one.ref,
            "timestamp": stamp(one.at),
            "activity_type": one.kind,
            "actor": self.user(one.actor),
        }

    def rule(self, repo: Repository, kind: str) -> Json:
        source = {"ruleset_source_type": "Repository", "ruleset_source": repo.full_name, "ruleset_id": repo.id}
        return {"type": kind, **source}

    def commit(self, repo: Repository, commit: Commit) -> Json:
        api, sha = self.repo_api(repo), commit.sha
        people = {"author": commit.author, "committer": commit.committer}
        signature = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}
        return {
            "sha": sha,
            "node_id": self.node("C", repo.id),
            "commit": {
                **{key: {"name": name, "email": email, "date": at} for key, (name, email, at) in people.items()},
                "message": commit.message,
                "tree": {"sha": commit.tree, "url": f"{api}/git/trees/{commit.tree}"},
                "url": f"{api}/git/commits/{sha}",
                "comment_count": 0,
                "verification": signature,
            },
            "url": f"{api}/commits/{sha}",
            "html_url": f"{self.repo_web(repo)}/commit/{sha}",
            "comments_url": f"{api}/commits/{sha}/comments",
            "author": None,
            "committer": None,
            "parents": [
                {"sha": one, "url": f"{api}/commits/{one}", "html_url": f"{self.repo_web(repo)}/commit/{one}"}
                for one in commit.parents
            ],
        }

    def comparison(self, repo: Repository, base: Commit, head: Commit, files: list[Change]) -> Json:
        """https://docs.github.com/en/rest/commits/commits#compare-two-commits - at most 300 files."""
        meeting = repo.git.merge_base(base.sha, head.sha)
        ahead, behind = repo.git.log(base.sha, head.sha), repo.git.log(head.sha, base.sha)
        states = {
            (False, False): "identical",
            (True, False): "ahead",
            (False, True): "behind",
            (True, True): "diverged",
        }
        web = f"{self.repo_web(repo)}/compare/{base.sha}...{head.sha}"
        return {
            "url": f"{self.repo_api(repo)}/compare/{base.sha}...{head.sha}",
            "html_url": web,
            "permalink_url": web,
            "diff_url": f"{web}.diff",
            "patch_url": f"{web}.patch",
            "base_commit": self.commit(repo, base),
            "merge_base_commit": self.commit(repo, repo.git.read(meeting)),
            "status": states[bool(ahead), bool(behind)],
            "ahead_by": len(ahead),
            "behind_by": len(behind),
            "total_commits": len(ahead),
            "commits": [self.commit(repo, commit) for commit in ahead],
            "files": [self.file_change(repo, change, head.sha) for change in files[:300]],
        }

    def pushed_commit(self, repo: Repository, commit: Commit) -> Json:
        """As push deliveries list it."""
        changes = repo.git.changes(commit.parents[0], commit.sha) if commit.parents else []
        listed = {"added": ("added", "renamed", "copied"), "removed": ("removed",), "modified": ("modified", "changed")}
        people = {"author": commit.author, "committer": commit.committer}
        return {
            "id": commit.sha,
            "tree_id": commit.tree,
            "distinct": True,
            "message": commit.message,
            "timestamp": commit.committer[2],
            "url": f"{self.repo_web(repo)}/commit/{commit.sha}",
            **{key: {"name": name, "email": mail, "username": name} for key, (name, mail, _) in people.items()},
            **{key: [change.path for change in changes if change.status in kinds] for key, kinds in listed.items()},
        }

    def file_change(self, repo: Repository, change: Change, head: str) -> Json:
        renamed = {"previous_filename": change.before} if change.before else {}
        return {
            "sha": change.blob,
            "filename": change.path,
            "status": change.status,
            "additions": change.additions,
            "deletions": change.deletions,
            "changes": change.additions + change.deletions,
            "blob_url": f"{self.repo_web(repo)}/blob/{head}/{quote(change.path)}",
            "raw_url": f"{self.repo_web(repo)}/raw/{head}/{quote(change.path)}",
            "contents_url": f"{self.repo_api(repo)}/contents/{quote(change.path)}?ref={head}",
            **renamed,
        }

    def content(self, repo: Repository, path: str, ref: str, entry: Entry) -> Json:
        """Above a megabyte GitHub leaves the content out and says `none` for its encoding."""
        url = f"{self.repo_api(repo)}/contents/{quote(path)}?ref={ref}"
        git, html = f"{self.repo_api(repo)}/git/blobs/{entry.oid}", f"{self.repo_web(repo)}/blob/{ref}/{quote(path)}"
        shown: Json = {
            "name": path.rpartition("/")[2],
            "path": path,
            "sha": entry.oid,
            "size": len(entry.content),
            "url": url,
            "html_url": html,
            "git_url": git,
            "download_url": f"{self.repo_web(repo)}/raw/{ref}/{quote(path)}",
            "_links": {"self": url, "git": git, "html": html},
        }
        if entry.kind == "symlink":
            return shown | {"type": "symlink", "target": entry.content.decode()}
        large = len(entry.content) > 1024 * 1024
        text = "" if large else base64.encodebytes(entry.content).decode()
        return shown | {"type": "file", "content": text, "encoding": "none" if large else "base64"}

    def blob(self, repo: Repository, oid: str, content: bytes) -> Json:
        return {
            "sha": oid,
            "node_id": self.node("B", repo.id),
            "size": len(content),
            "url": f"{self.repo_api(repo)}/git/blobs/{oid}",
            "content": base64.encodebytes(content).decode(),
            "encoding": "base64",
        }

    def status(self, repo: Repository, status: Status) -> Json:
        at = stamp(status.at)
        return {
            "url": f"{self.repo_api(repo)}/statuses/{status.sha}",
            "avatar_url": f"{self.web}/avatars/u/{status.creator.id}?v=4",
            "id": status.id,
            "node_id": self.node("SC", status.id),
            "state": status.state,
            "description": status.description,
            "target_url": status.target_url,
            "context": status.context,
            "created_at": at,
            "updated_at": at,
            "creator": self.user(status.creator),
        }

    def check_run(self, repo: Repository, run: CheckRun) -> Json:
        url = f"{self.repo_api(repo)}/check-runs/{run.id}"
        output = {key: run.output.get(key) for key in ("title", "summary", "text")}
        return {
            "id": run.id,
            "head_sha": run.head_sha,
            "node_id": self.node("CR", run.id),
            "external_id": run.external_id,
            "url": url,
            "html_url": f"{self.repo_web(repo)}/runs/{run.id}",
            "details_url": run.details_url,
            "status": run.status,
            "conclusion": run.conclusion,
            "started_at": stamp(run.started_at),
            "completed_at": maybe(run.completed_at),
            "output": output | {"annotations_count": 0, "annotations_url": f"{url}/annotations"},
            "name": run.name,
            "check_suite": {"id": repo.id},
            "app": None if run.app is None else self.app(run.app),
            "pull_requests": [],
        }

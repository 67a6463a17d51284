"""The calls on branches, commits, files, statuses and checks."""

from __future__ import annotations

import fnmatch
import posixpath
from datetime import datetime

from tests.world.calls import Call, Refuse, invalid, not_found
from tests.world.exchange import Answer
from tests.world.gitrepo import Entry
from tests.world.repository import Repository
from tests.world.state import CheckRun, Status


def _commit(repo: Repository, name: str) -> str | None:
    """The SHA that a branch's name, a ref's or a SHA stands for."""
    for full in (f"refs/heads/{name}", f"refs/{name}", name):
        if sha := repo.git.sha(full):
            return sha
    return None


def _existing(call: Call, name: str) -> str:
    sha = _commit(call.repo, name)
    if sha is None:
        raise Refuse(422, f"No commit found for SHA: {name}")
    return sha


def branches(call: Call) -> Answer:
    repo = call.repo
    api = call.world.shapes.repo_api(repo)
    short = [
        {"name": name, "commit": {"sha": sha, "url": f"{api}/commits/{sha}"}, "protected": name in repo.protected}
        for name, sha in sorted(repo.branches.items())
    ]
    return call.page(short)


def branch(call: Call) -> Answer:
    repo, name = call.repo, call.args["branch"]
    sha = repo.branches.get(name)
    if sha is None:
        raise Refuse(404, "Branch not found")
    return Answer(200, call.world.shapes.branch(repo, name, repo.git.read(sha)))


def rules(call: Call) -> Answer:
    """What rulesets have for a branch, which need not exist."""
    repo, name = call.repo, call.args["branch"]
    kinds = [kind for glob, types in repo.rules.items() if fnmatch.fnmatchcase(name, glob) for kind in types]
    return call.page([call.world.shapes.rule(repo, kind) for kind in kinds])


def activity(call: Call) -> Answer:
    """Newest first."""
    ref = call.query.get("ref")
    shown = [one for one in reversed(call.repo.activity) if ref in (None, one.ref)]
    return call.page([call.world.shapes.activity(one) for one in shown])


def ref(call: Call) -> Answer:
    """`heads/main`: exactly that one."""
    full = f"refs/{call.args['ref']}"
    refs = call.repo.git.refs()
    if not refs:
        raise Refuse(409, "Git Repository is empty.")
    if full not in refs:
        raise not_found()
    return Answer(200, call.world.shapes.ref(call.repo, full, refs[full]))


def commit(call: Call) -> Answer:
    return Answer(200, call.world.shapes.commit(call.repo, call.repo.git.read(_existing(call, call.args["ref"]))))


def compare(call: Call) -> Answer:
    repo = call.repo
    base, dots, head = call.args["basehead"].partition("...")
    ends = [_commit(repo, name) for name in (base, head)]
    if not dots or None in ends:
        raise not_found()
    one, other = (repo.git.read(sha or "") for sha in ends)
    return Answer(200, call.world.shapes.comparison(repo, one, other, repo.git.changes(one.sha, other.sha)))


def blob(call: Call) -> Answer:
    try:
        return Answer(
            200, call.world.shapes.blob(call.repo, call.args["file_sha"], call.repo.git.content(call.args["file_sha"]))
        )
    except RuntimeError:
        raise not_found() from None


def content(call: Call) -> Answer:
    """A link to a file of the repository is answered with that file."""
    repo, path = call.repo, call.args["path"]
    name = call.query.get("ref", repo.default_branch)
    at = _commit(repo, name)
    if at is None:
        raise Refuse(404, f"No commit found for the ref {name}")
    found = repo.git.entry(at, path)
    if found is not None and found.kind == "symlink":
        target = repo.git.entry(
            at, posixpath.normpath(f"{posixpath.dirname(path)}/{found.content.decode()}").lstrip("/")
        )
        found = target if target is not None and target.kind == "blob" else found
    if found is None:
        raise not_found()
    if found.kind in ("blob", "symlink"):
        return Answer(200, call.world.shapes.content(repo, path, name, found))
    listing = repo.git.git("ls-tree", "-z", "-l", at, f"{path}/").split("\0")[:-1]
    return Answer(200, [_entry(call, line, name) for line in listing])


def _entry(call: Call, line: str, ref: str) -> dict[str, object]:
    """A line of a folder's listing: `mode type oid size<TAB>path`."""
    head, _, path = line.partition("\t")
    _, kind, oid, size = head.split()
    shown = call.world.shapes.content(call.repo, path, ref, Entry("blob", oid, b""))
    del shown["content"], shown["encoding"]
    return shown | {"type": "file" if kind == "blob" else "dir", "size": 0 if size == "-" else int(size)}


def add_status(call: Call) -> Answer:
    repo, sha = call.needs("push"), _existing(call, call.args["sha"])
    state, context = call.text("Status", "state"), call.body.get("context", "default")
    if state not in ("error", "failure", "pending", "success"):
        raise invalid("Status", "state")
    description, target = call.body.get("description"), call.body.get("target_url")
    status = Status(call.world.new_id(), sha, state, context, description, target, call.user, call.world.now())
    repo.statuses.append(status)
    return Answer(201, call.world.shapes.status(repo, status))


def combined_status(call: Call) -> Answer:
    """The newest status of each context, and what they make together."""
    repo, sha = call.repo, _existing(call, call.args["ref"])
    latest = {status.context: status for status in repo.statuses if status.sha == sha}
    states = {status.state for status in latest.values()}
    state = "failure" if states & {"failure", "error"} else "success" if states == {"success"} else "pending"
    api = call.world.shapes.repo_api(repo)
    answer = {
        "state": state,
        "statuses": [call.world.shapes.status(repo, status) for status in latest.values()],
        "sha": sha,
        "total_count": len(latest),
        "repository": call.world.shapes.repository(repo),
        "commit_url": f"{api}/commits/{sha}",
        "url": f"{api}/commits/{sha}/status",
    }
    return Answer(200, answer)


def _checked(call: Call) -> Repository:
    """Only Apps write check runs."""
    repo = call.needs("push")
    if call.viewer is None or call.viewer.installation is None:
        raise Refuse(403, "You must authenticate via a GitHub App.")
    return repo


def add_check_run(call: Call) -> Answer:
    repo, now = _checked(call), call.world.now()
    sha = _existing(call, call.text("CheckRun", "head_sha"))
    installation = call.viewer.installation if call.viewer else None
    run = CheckRun(
        id=call.world.new_id(),
        head_sha=sha,
        name=call.text("CheckRun", "name"),
        status="queued",
        conclusion=None,
        details_url=call.body.get("details_url"),
        external_id=call.body.get("external_id", ""),
        output={},
        started_at=now,
        completed_at=None,
        app=installation.app if installation else None,
    )
    repo.check_runs.append(run)
    _update(run, call, now)
    return Answer(201, call.world.shapes.check_run(repo, run))


def edit_check_run(call: Call) -> Answer:
    repo = _checked(call)
    for run in repo.check_runs:
        if run.id == call.number("check_run_id"):
            _update(run, call, call.world.now())
            return Answer(200, call.world.shapes.check_run(repo, run))
    raise not_found()


def _update(run: CheckRun, call: Call, now: datetime) -> None:
    """A conclusion completes it."""
    body = call.body
    run.conclusion = body.get("conclusion", run.conclusion)
    run.status = "completed" if run.conclusion else body.get("status", run.status)
    run.completed_at = now if run.conclusion else None
    run.output = run.output | body.get("output", {})


def check_runs(call: Call) -> Answer:
    sha = _existing(call, call.args["ref"])
    runs = [run for run in call.repo.check_runs if run.head_sha == sha]
    return call.page([call.world.shapes.check_run(call.repo, run) for run in runs], wrap="check_runs")

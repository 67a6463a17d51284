"""The calls on issues, pull requests, comments, labels and reactions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

from tests.world.calls import Call, Refuse, invalid, not_found
from tests.world.exchange import Answer
from tests.world.state import Comment
from tests.world.threads import Issue

Thread = TypeVar("Thread", bound=Issue)

LONGEST_BODY = 65_536
"""Characters of a comment, an issue's or a pull request's body."""


def _body(call: Call, resource: str) -> str:
    text = call.text(resource, "body")
    if len(text) > LONGEST_BODY:
        message = f"body is too long (maximum is {LONGEST_BODY} characters)"
        errors = [{"resource": resource, "code": "unprocessable", "field": "data", "message": message}]
        raise Refuse(422, "Validation Failed", errors)
    return text


# pull requests


def pulls(call: Call) -> Answer:
    state, head, base = (call.query.get(name) for name in ("state", "head", "base"))
    found = [
        pull
        for pull in reversed(call.repo.pulls())
        if _in_state(pull, state or "open")
        and head in (None, f"{pull.head_owner.login}:{pull.head_ref}")
        and base in (None, pull.base_ref)
    ]
    return call.page([call.world.shapes.pull_simple(pull) for pull in _sorted(call, found)])


def _sorted(call: Call, threads: Sequence[Thread]) -> list[Thread]:
    """Newest first where not said otherwise."""
    by_update = call.query.get("sort", "created") == "updated"
    newest_first = call.query.get("direction", "desc") == "desc"
    return sorted(
        threads,
        key=lambda thread: (thread.updated_at if by_update else thread.created_at, thread.number),
        reverse=newest_first,
    )


def pull(call: Call) -> Answer:
    return Answer(200, call.world.shapes.pull(call.pull()))


def add_pull(call: Call) -> Answer:
    """The head must exist, differ from the base, and have no open pull request yet."""
    repo, author = call.repo, call.user
    title, head, base = (call.text("PullRequest", name) for name in ("title", "head", "base"))
    owner, _, branch = head.rpartition(":")
    source = call.world.reachable(f"{owner}/{repo.name}", call.viewer) if owner else repo
    if source is None or branch not in source.branches:
        raise invalid("PullRequest", "head")
    if not call.world.may(source, call.viewer, "push"):
        raise Refuse(403, "Resource not accessible by integration")
    if base not in repo.branches:
        raise invalid("PullRequest", "base")
    if source.branches[branch] == repo.branches[base]:
        raise _pull_refused(f"No commits between {base} and {branch}")
    for other in repo.pulls():
        if other.open and (other.head_repo, other.head_ref, other.base_ref) == (source, branch, base):
            raise _pull_refused(f"A pull request already exists for {source.owner.login}:{branch}.")
    made = repo.open_pull(title, call.body.get("body"), author, head=(source, branch), base=base)
    made.draft = bool(call.body.get("draft"))
    return Answer(201, call.world.shapes.pull(made))


def _pull_refused(message: str) -> Refuse:
    return Refuse(422, "Validation Failed", [{"resource": "PullRequest", "code": "custom", "message": message}])


def files(call: Call) -> Answer:
    """At most 3,000 files are ever listed."""
    pull, repo = call.pull(), call.repo
    changes = repo.git.changes(pull.base_sha, pull.head_sha)[:3000]
    return call.page([call.world.shapes.file_change(repo, change, pull.head_sha) for change in changes])


# issues


def _in_state(thread: Issue, state: str) -> bool:
    return state == "all" or (state == "open") is thread.open


def _since(call: Call) -> datetime:
    text = call.query.get("since")
    return datetime.fromisoformat(text) if text else datetime.fromtimestamp(0, UTC)


def issues(call: Call) -> Answer:
    """Pull requests are listed, too."""
    threads = _sorted(call, list(call.repo.threads.values()))
    state, since = call.query.get("state", "open"), _since(call)
    wanted = {name.casefold() for name in call.query.get("labels", "").split(",") if name}
    shown = [
        thread
        for thread in threads
        if _in_state(thread, state)
        and _whole(thread.updated_at) >= since
        and wanted <= {label.name.casefold() for label in thread.labels}
    ]
    return call.page([call.world.shapes.issue(thread) for thread in shown])


def timeline(call: Call) -> Answer:
    """Comments and events of one issue, as they came."""
    shapes, thread = call.world.shapes, call.issue()
    return call.page(
        [
            shapes.comment_event(thread.repo, one)
            if isinstance(one, Comment)
            else shapes.timeline_event(thread.repo, one)
            for one in thread.timeline
        ]
    )


def issue_events(call: Call) -> Answer:
    """Of the whole repository, newest first."""
    return call.page([call.world.shapes.issue_event(call.repo, one) for one in reversed(call.repo.issue_events)])


def issue(call: Call) -> Answer:
    return Answer(200, call.world.shapes.issue(call.issue()))


def add_issue(call: Call) -> Answer:
    labels = tuple(call.body.get("labels", ())) if call.world.may(call.repo, call.viewer, "push") else ()
    title = call.text("Issue", "title")
    made = call.repo.issue(title, author=call.user, body=call.body.get("body"), labels=labels)
    return Answer(201, call.world.shapes.issue(made))


def edit_issue(call: Call) -> Answer:
    thread = call.issue()
    if thread.author is not call.user:
        call.needs("triage")
    for name in ("title", "body"):
        if name in call.body:
            setattr(thread, name, call.body[name])
    state = call.body.get("state")
    if state == "closed" and thread.open:
        thread.close(by=call.user)
    elif state == "open" and not thread.open:
        thread.reopen(by=call.user)
    thread.touch()
    return Answer(200, call.world.shapes.issue(thread))


def add_labels(call: Call) -> Answer:
    """GitHub takes the names in an object, and, as PyGithub sends them, bare."""
    call.needs("triage")
    thread = call.issue()
    sent = call.request.json
    for name in sent if isinstance(sent, list) else call.body.get("labels", ()):
        if call.repo.label(name) not in thread.labels:
            thread.label(name, by=call.user)
    return Answer(200, [call.world.shapes.label(thread.repo, label) for label in thread.labels])


def remove_label(call: Call) -> Answer:
    call.needs("triage")
    thread, name = call.issue(), call.args["name"]
    if call.repo.label(name) not in thread.labels:
        raise Refuse(404, "Label does not exist")
    thread.unlabel(name, by=call.user)
    return Answer(200, [call.world.shapes.label(thread.repo, label) for label in thread.labels])


def add_assignees(call: Call) -> Answer:
    """Who can't be assigned is passed over in silence."""
    call.needs("triage")
    thread = call.issue()
    for login in call.body.get("assignees", ()):
        person = call.world.users.get(login)
        if person is not None and person not in thread.assignees and thread.repo.may(person, "pull"):
            thread.assign(person, by=call.user)
    return Answer(201, call.world.shapes.issue(thread))


def remove_assignees(call: Call) -> Answer:
    call.needs("triage")
    thread, gone = call.issue(), set(call.body.get("assignees", ()))
    for person in [one for one in thread.assignees if one.login in gone]:
        thread.unassign(person, by=call.user)
    return Answer(200, call.world.shapes.issue(thread))


# comments


def _whole(at: datetime) -> datetime:
    """Times are shown, and compared, in whole seconds."""
    return at.replace(microsecond=0)


def comments(call: Call) -> Answer:
    thread, since = call.issue(), _since(call)
    shown = [comment for comment in thread.comments if _whole(comment.updated_at) >= since]
    return call.page([call.world.shapes.comment(thread.repo, comment) for comment in shown])


def all_comments(call: Call) -> Answer:
    """Of the whole repository, oldest first; a direction counts only with `sort`."""
    since, by_update = _since(call), call.query.get("sort") == "updated"
    shown = [comment for comment in call.repo.comments.values() if _whole(comment.updated_at) >= since]
    shown.sort(key=lambda comment: (comment.updated_at if by_update else comment.created_at, comment.id))
    if "sort" in call.query and call.query.get("direction") == "desc":
        shown.reverse()
    return call.page([call.world.shapes.comment(call.repo, comment) for comment in shown])


def add_comment(call: Call) -> Answer:
    thread, author = call.issue(), call.user
    if thread.locked and not call.world.may(thread.repo, call.viewer, "push"):
        raise Refuse(403, "Unable to create comment because issue is locked.")
    made = thread.comment(author, _body(call, "IssueComment")).comment
    return Answer(201, call.world.shapes.comment(thread.repo, _there(made)))


def _there(comment: Comment | None) -> Comment:
    if comment is None:
        raise not_found()
    return comment


def _comment(call: Call) -> Comment:
    return _there(call.repo.comments.get(call.number("comment_id")))


def _own(call: Call) -> tuple[Issue, Comment]:
    """Its author may change a comment, and whoever may push."""
    comment = _comment(call)
    if comment.author is not call.user and not call.world.may(call.repo, call.viewer, "push"):
        raise Refuse(403, "Must have admin rights to Repository.")
    return call.repo.threads[comment.number], comment


def comment(call: Call) -> Answer:
    return Answer(200, call.world.shapes.comment(call.repo, _comment(call)))


def edit_comment(call: Call) -> Answer:
    thread, comment = _own(call)
    thread.edit(comment, _body(call, "IssueComment"), by=call.user)
    return Answer(200, call.world.shapes.comment(call.repo, comment))


def delete_comment(call: Call) -> Answer:
    thread, comment = _own(call)
    thread.delete(comment, by=call.user)
    return Answer(204)


def comment_reactions(call: Call) -> Answer:
    return call.page([call.world.shapes.reaction(one) for one in _comment(call).reactions])


def react(call: Call) -> Answer:
    comment, content = _comment(call), call.text("Reaction", "content")
    if content not in ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"):
        raise invalid("Reaction", "content")
    reaction, new = call.repo.threads[comment.number].react(comment, call.user, content)
    return Answer(201 if new else 200, call.world.shapes.reaction(reaction))

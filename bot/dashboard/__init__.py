"""The read-only pages: what runs, what waits and why, what came of it. No page changes anything."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from flask import Blueprint, Response, abort, jsonify, render_template
from werkzeug.exceptions import HTTPException

from bot.dashboard import answers, folder, prose
from bot.dashboard.chart import chart
from bot.dashboard.views import RunPage, View
from bot.errors import Unavailable

LOG_TAIL = 16_384
"""Bytes of a log that a run's page shows."""
REPORT_LIMIT = 100_000
REFRESH_SECONDS = 5
MAX_NUMBER = 2**31 - 1

Value = TypeVar("Value")


def pages(view: Callable[[], View], *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Blueprint:
    """The pages, for a Flask application to take up. `view` is asked for anew by each request: a reload changes it."""
    site = Blueprint(
        "pages", __name__, template_folder="templates", static_folder="static", static_url_path="/static/leadsman"
    )
    site.before_request(lambda: answers.known_host(view().public_url))
    # For the whole application: an address that leads nowhere is answered like any other page.
    site.after_app_request(answers.guarded)
    site.app_errorhandler(HTTPException)(answers.problem)
    site.app_errorhandler(Unavailable)(answers.unavailable)
    site.app_context_processor(lambda: _words(view(), clock()))
    _runs(site, view, clock)
    _local(site, view)
    return site


def _runs(site: Blueprint, view: Callable[[], View], clock: Callable[[], datetime]) -> None:
    def text(page: RunPage, name: str, limit: int) -> str | None:
        if page.folder is None:
            return None
        return folder.text_of(page.folder, name, limit, view().masking, grows=page.line.is_open)

    def whole(run_id: str, name: str, kind: str = "text/plain; charset=utf-8") -> Response:
        page = _found(view().run(run_id))
        there = _found(page.folder)
        found = folder.open_file(there, name, view().masking, grows=page.line.is_open)
        return answers.file_answer(_found(found), kind)

    @site.get("/")
    def board() -> str:
        shown = view().board()
        return render_template("board.html", board=shown, refresh=REFRESH_SECONDS if shown.live else None)

    @site.get("/runs/<run_id>")
    def run(run_id: str) -> str:
        page = _found(view().run(run_id))
        return render_template(
            "run.html",
            page=page,
            bars=chart(page.steps, clock()),
            report=text(page, "report.md", REPORT_LIMIT),
            words=text(page, "status.log", LOG_TAIL),
            log=text(page, "worker.log", LOG_TAIL),
            files=folder.files(page.folder) if page.folder else [],
            refresh=REFRESH_SECONDS if page.line.is_open else None,
        )

    @site.get("/runs/<run_id>/log")
    def log(run_id: str) -> Response:
        return whole(run_id, "worker.log")

    @site.get("/runs/<run_id>/report.json")
    def report(run_id: str) -> Response:
        return whole(run_id, "report.json", "application/json")

    @site.get("/runs/<run_id>/files/<path:name>")
    def file(run_id: str, name: str) -> Response:
        return whole(run_id, name)

    @site.get("/deliveries")
    def deliveries() -> str:
        return render_template("deliveries.html", deliveries=view().deliveries(), refresh=None)


def _local(site: Blueprint, view: Callable[[], View]) -> None:
    @site.get("/local/<owner>/<name>")
    def repository(owner: str, name: str) -> str:
        page = _found(view().repository(f"{owner}/{name}"))
        return render_template("repository.html", page=page, refresh=None)

    @site.get("/local/<owner>/<name>/<int:number>")
    def thread(owner: str, name: str, number: int) -> str:
        page = _found(view().thread(f"{owner}/{name}", number) if number <= MAX_NUMBER else None)
        live = any(line.is_open for line in page.runs)
        return render_template("thread.html", page=page, refresh=REFRESH_SECONDS if live else None)

    @site.get("/local/<owner>/<name>/<int:number>/comments/<int:comment>")
    def remark(owner: str, name: str, number: int, comment: int) -> Response:
        """As a forge's API answers it: with the report that a page doesn't show."""
        page = _found(view().thread(f"{owner}/{name}", number) if number <= MAX_NUMBER else None)
        said = _found(next((one for one in page.remarks if one.id == str(comment)), None))
        return jsonify(id=said.id, author=said.author, body=said.body)

    @site.get("/local/<owner>/<name>/commit/<sha>")
    def commit(owner: str, name: str, sha: str) -> str:
        text = _found(view().commit(f"{owner}/{name}", sha))
        return render_template("commit.html", repo=f"{owner}/{name}", sha=sha, text=text, refresh=None)

    @site.get("/local/<owner>/<name>/branch/<path:branch>")
    def tip(owner: str, name: str, branch: str) -> str:
        branches = dict(_found(view().repository(f"{owner}/{name}")).branches)
        return commit(owner, name, _found(branches.get(branch)))


def _words(view: View, now: datetime) -> dict[str, Any]:
    """What every template may use."""
    return {
        "now": now,
        "markdown": prose.markdown,
        "plain": prose.plain,
        "duration": prose.duration,
        "took": prose.took,
        "moment": prose.moment,
        "ago": prose.ago,
        "size": prose.size,
        "repositories": view.repositories,
    }


def _found(value: Value | None) -> Value:
    if value is None:
        abort(404)
    return value

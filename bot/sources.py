"""Where a report to be checked comes from, and the repository that it is checked against."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPMessage
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from bot.errors import UserError
from bot.secret import Secret
from bot.signing import Envelope, Malformed, envelope
from bot.statement import LARGEST, carried_in
from gitops import clones
from gitops.credentials import Remote
from gitops.mirror import Mirror

SECONDS = 20.0


def envelopes(text: str) -> list[Envelope]:
    """The signed reports in a text: an envelope as JSON, a note with one a paragraph, a comment or page that carries
    some. Raises `UserError` where there is none."""
    found = [*carried_in(text)] or [part for part in text.split("\n\n") if part.lstrip().startswith("{")]
    try:
        return [envelope(one) for one in found or [text]]
    except Malformed as problem:
        raise UserError(
            f"There is no signed report in it: {problem}. Name a run's report.json, the address of the comment with "
            "the report, or the commit that was published."
        ) from problem


def body_of(text: str) -> str:
    """A comment as a forge's API answers it, as JSON: its text. Anything else as it is."""
    try:
        answer = json.loads(text)
    except ValueError:
        return text
    body = answer.get("body") if isinstance(answer, dict) else None
    return body if isinstance(body, str) else text


def read_file(path: Path) -> str:
    """Raises `UserError`."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8", "replace")
    except OSError as problem:
        raise UserError(f"{path} can't be read: {problem.strerror}.") from problem


def is_address(text: str) -> bool:
    return urlsplit(text).scheme in ("http", "https")


def fetch(url: str, environ: Mapping[str, str]) -> str:
    """The text at an address; of a comment on a forge its own, asked for at the API. Raises `UserError`."""
    comment = api_address(url)
    headers = {"User-Agent": "leadsman"}
    if comment and (token := token_for(comment, environ)) is not None:
        headers["Authorization"] = f"Bearer {token.reveal()}"
    request = urllib.request.Request(comment or url, headers=headers)  # noqa: S310 - http and https, by `is_address`
    try:
        with urllib.request.build_opener(_Careful).open(request, timeout=SECONDS) as answer:
            text: str = answer.read(LARGEST).decode("utf-8", "replace")
        return str(json.loads(text)["body"]) if comment else text
    except (OSError, ValueError, LookupError, TypeError) as problem:
        raise UserError(f"{url} can't be read: {problem}.") from problem


def token_for(url: str, environ: Mapping[str, str]) -> Secret | None:
    """GITHUB_TOKEN, for the one server that it is for: GITHUB_SERVER_URL, as a workflow has it, or github.com."""
    server = urlsplit(environ.get("GITHUB_SERVER_URL") or "https://github.com").netloc
    token = environ.get("GITHUB_TOKEN", "").strip()
    parts = urlsplit(url)
    return Secret(token) if token and parts.scheme == "https" and parts.netloc in (server, f"api.{server}") else None


def api_address(url: str) -> str | None:
    """Where the forge has the comment, as JSON, that the address leads to; None for another address.

    https://docs.github.com/en/rest/issues/comments#get-an-issue-comment
    """
    parts = urlsplit(url)
    *above, first, second, third, number = ["", "", "", *parts.path.strip("/").split("/")]
    on, dash, comment = parts.fragment.partition("-")
    if not dash or not comment.isdecimal():
        return None
    if on == "issuecomment" and third in ("pull", "issues") and not any(above):
        api = "https://api.github.com" if parts.netloc == "github.com" else f"{parts.scheme}://{parts.netloc}/api/v3"
        return f"{api}/repos/{first}/{second}/issues/comments/{comment}"
    if on == "comment" and first == "local" and number.isdecimal():  # a page of ours: local/OWNER/NAME/NUMBER
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/comments/{comment}"
    return None


class _Careful(urllib.request.HTTPRedirectHandler):
    """Takes no token along to another host."""

    def redirect_request(  # noqa: PLR0917 - as the library calls it
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        again = super().redirect_request(req, fp, code, msg, headers, newurl)
        if again is not None and urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
            again.remove_header("Authorization")
        return again


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository to check against: its remote, and a clone on this disk that may have the commits already."""

    remote: Remote
    clone: Path | None

    def mirror(self, folder: Path, commits: tuple[str, ...]) -> Mirror:
        """A mirror of it in `folder`, with those `commits` of the clone. Raises `GitError`."""
        mirror = Mirror(folder, self.remote)
        mirror.ensure()
        if self.clone is not None:
            near = Mirror(folder, Remote(str(self.clone)))
            for commit in commits:
                near.fetch_commit(commit)
        return mirror


def repository(named: str | None, here: Path, environ: Mapping[str, str]) -> Repository | None:
    """The repository of that address or folder; else the clone that `here` is in, and where it came from.

    Raises `UserError` for what can be neither.
    """
    if named is not None and is_address(named):
        return Repository(_remote(named, environ), None)
    clone = clones.git_dir_of(here / (named or "."))
    if clone is None:
        if named is not None:
            raise UserError(f"{named} is no repository. Name a clone's folder, or an address.")
        return None
    return Repository(_remote(clones.origin_of(clone) or str(clone), environ), clone)


def _remote(url: str, environ: Mapping[str, str]) -> Remote:
    try:
        return Remote(url, token=token_for(url, environ))
    except ValueError as problem:
        raise UserError(f"{problem} Name the repository with --repo.") from problem

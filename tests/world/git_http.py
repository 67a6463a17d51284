"""git over HTTP: `git http-backend`, with a forge's rules on who may read and write."""

from __future__ import annotations

import base64
import subprocess
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.world.gitrepo import clean_environment

if TYPE_CHECKING:
    from tests.world.exchange import Request
    from tests.world.repository import Repository
    from tests.world.server import Handler
    from tests.world.state import Viewer
    from tests.world.world import World


def serve(handler: Handler, world: World, request: Request, name: str, service: str) -> None:
    """One request of git's smart protocol on `owner/name`."""
    viewer, known = _viewer(world, request.headers.get("authorization", ""))
    repo = world.reachable(name, viewer)
    writes = service == "git-receive-pack" or "service=git-receive-pack" in request.query
    if not known or (viewer is None and (repo is None or writes)):
        return _refuse(handler, request, 401, {"WWW-Authenticate": 'Basic realm="GitHub"'})
    if repo is None:
        return _refuse(handler, request, 404, {})
    if writes and not (viewer and world.may(repo, viewer, "push")):
        return _refuse(handler, request, 403, {})
    before = repo.git.refs()
    done = partial(_tell, repo, before, viewer) if service == "git-receive-pack" and viewer else lambda: None
    return _backend(handler, request, repo, service, done)


def _viewer(world: World, header: str) -> tuple[Viewer | None, bool]:
    """Whose token it is, and whether what was sent is any good (nothing sent is)."""
    if not header:
        return None, True
    kind, _, value = header.partition(" ")
    password = base64.b64decode(value).decode().partition(":")[2] if kind.lower() == "basic" else ""
    viewer = world.viewer(password)
    return viewer, viewer is not None


def _refuse(handler: Handler, request: Request, status: int, headers: dict[str, str]) -> None:
    for _ in handler.chunks():
        pass  # git does not read an answer before it has sent everything
    request.status = status
    handler.send_response(status)
    for key, value in headers.items():
        handler.send_header(key, value)
    handler.send_header("Content-Length", "0")
    handler.end_headers()
    handler.wfile.flush()


def _tell(repo: Repository, before: dict[str, str], viewer: Viewer) -> None:
    with repo.world.lock:
        after = repo.git.refs()
        for ref in sorted(before.keys() | after.keys()):
            if before.get(ref) != after.get(ref) and ref.startswith(("refs/heads/", "refs/tags/")):
                repo.moved(ref, before.get(ref), after.get(ref), viewer.user)


def _backend(handler: Handler, request: Request, repo: Repository, service: str, done: Callable[[], None]) -> None:
    """`done` is called when git has done its work, before the client learns that."""
    env = clean_environment() | {
        "GIT_PROJECT_ROOT": str(repo.world.git_root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{repo.full_name}.git/{service}",
        "QUERY_STRING": request.query,
        "REQUEST_METHOD": request.method,
        "CONTENT_TYPE": request.headers.get("content-type", ""),
        "REMOTE_ADDR": handler.client_address[0],
        "REMOTE_USER": "somebody",  # who is not named may not push, and who may was decided
        "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
        "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
    }
    if "content-length" in request.headers:
        env["CONTENT_LENGTH"] = request.headers["content-length"]
    with subprocess.Popen(["git", "http-backend"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        feeder = threading.Thread(target=_feed, args=(handler, process.stdin))
        feeder.start()
        _relay(handler, request, process.stdout)
        feeder.join()
        done()
        handler.wfile.write(b"0\r\n\r\n")
        handler.wfile.flush()


def _feed(handler: Handler, stdin: Any) -> None:
    try:
        with stdin:
            for data in handler.chunks():
                stdin.write(data)
    except BrokenPipeError:
        for _ in handler.chunks():
            pass


def _relay(handler: Handler, request: Request, stdout: Any) -> None:
    """The CGI answer: its head translated, its body chunked and not yet ended."""
    request.status, headers = 200, []
    while line := stdout.readline().strip():
        key, _, value = line.decode().partition(": ")
        if key.lower() == "status":
            request.status = int(value.split()[0])
        else:
            headers.append((key, value))
    handler.send_response(request.status)
    for key, value in headers:
        handler.send_header(key, value)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    while data := stdout.read1(65536):
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

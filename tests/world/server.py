"""The world's one HTTP server: reads requests, injects the faults that a test ordered, and hands on to REST or git."""

from __future__ import annotations

import http.server
import json
import re
import socket
import sys
import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tests.world import git_http, rest
from tests.world.exchange import API, Answer, Request

if TYPE_CHECKING:
    from tests.world.world import World

_GIT = re.compile(r"/([^/]+/[^/]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one packet
    server: Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Quiet: the world's request log is what tests read."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The `Date` header goes by the world's clock, too."""
        return super().date_time_string(self.server.world.now().timestamp() if timestamp is None else timestamp)

    def handle_any(self) -> None:
        world = self.server.world
        target, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, target.removeprefix(API), query, headers)
        world.requests.append(request)
        fault = world.faults.strike(request.method, request.path)
        if fault is not None and fault.seconds:
            world.closing.wait(fault.seconds)
        if fault is not None and fault.status:
            request.body = b"".join(self.chunks())
            self.reply(request, Answer(fault.status, fault.body, fault.headers))
        elif target.startswith(API):
            request.body = b"".join(self.chunks())
            self.reply(request, rest.answer(world, request))
        elif match := _GIT.fullmatch(unquote(target)):
            git_http.serve(self, world, request, *match.groups())
        else:
            self.reply(request, Answer(404, {"message": "Not Found"}))

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any  # noqa: N815 - the base class's names

    def chunks(self) -> Iterator[bytes]:
        """The request's body. git sends packs of more than a megabyte chunked."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left > 0:
            data = self.rfile.read(min(left, 65536))
            if not data:
                return
            left -= len(data)
            yield data

    def reply(self, request: Request, answer: Answer) -> None:
        request.status, request.answer = answer.status, answer.body
        raw = b"" if answer.body is None else _encode(answer.body)
        self.send_response(answer.status, _phrase(answer.status))
        self.send_header("Content-Type", "application/json; charset=utf-8")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, world: World, port: int = 0) -> None:
        self.world = world
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class's
        """A client that hung up is no fault of the world's; anything else is kept for the test to fail with."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | ValueError):
            self.world.errors.append(error)

    def stop(self) -> None:
        """Refuses new connections and cuts the open ones, as a host that went down."""
        self.shutdown()
        self.server_close()
        self._thread.join()
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it had ended on its own


def _encode(body: Any) -> bytes:
    """Text as it is (a proxy's page), all else as JSON."""
    return body.encode() if isinstance(body, str) else json.dumps(body).encode("utf-8", "surrogatepass")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"

"""The HTTP server: waitress, with what a door needs beside it.

A body is announced by its headers. Where these are enough to refuse it, the answer goes out at once, and what the
caller still sends is read and dropped, or the answer would be lost to it: a socket closed over unread bytes resets.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher, WSGITask
from waitress.utilities import RequestEntityTooLarge

from webhooks.receiver import SIZE, TOO_LARGE, Answer, Application
from webhooks.signals import Signals
from webhooks.sources import Headers

log = logging.getLogger(__name__)

Refusal = Callable[[str, str, Headers, int | None], Answer | None]

SMALL = 64 * 1024
"""Bytes of a body that is taken in before anything is asked: nine of ten deliveries are smaller than half of it."""

LARGE_AT_ONCE = 8
"""How many larger bodies are taken in at a time: they are in memory, and a stranger can fake all but the signature."""

BUSY = Answer(503, "busy")

LINGER = 2 * SIZE
"""Bytes that are read and dropped behind a refusal."""

CONTROL = 8 * 1024
"""Bytes that a chunk's head or the trailer may have; waitress looks for their end anew with each piece it gets."""

IDLE = 30
"""Seconds after which a silent connection is closed."""

PATIENCE = 60
"""Seconds that a request may take to come in, even if it is never silent."""


def _shown(path: str) -> str:
    """As far as the sender's name: a token may stand behind it."""
    return ascii("/".join(path.split("/")[:3]))[1:-1][:80]


class _Refused:
    """An error as waitress wants it: the answer to a request whose body is not awaited."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def to_response(self, _ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        headers = [pair for pair in self._answer.headers if pair[0] != "Content-Length"]  # waitress adds it
        return self._answer.line, headers, self._answer.body


class _Parser(HTTPRequestParser):  # type: ignore[misc] # waitress has no types
    """Asks `refusal` as soon as the headers are there, where the body is large or its size not told."""

    chunked: bool
    content_length: int
    body_rcv: Any
    error: Any

    def __init__(self, adj: Adjustments, *, refusal: Refusal, large: WeakSet[_Parser]) -> None:
        super().__init__(adj)
        self.begun = time.monotonic()
        self._refusal = refusal
        self._large = large

    def parse_header(self, header_plus: bytes) -> None:
        try:
            super().parse_header(header_plus)
        except ValueError as problem:  # int() takes no more than 4,300 digits
            raise ParsingError("Content-Length is invalid") from problem
        if not self.chunked and self.content_length <= SMALL:
            return
        headers = {name.replace("_", "-").lower(): text for name, text in self.headers.items()}
        size = None if self.chunked else self.content_length
        answer = self._refusal(self.command, self.path, headers, size)
        if answer is None and len(self._large) >= LARGE_AT_ONCE:
            answer = BUSY
        if answer is None:
            self._large.add(self)  # until this request is gone, however it went
        else:
            self._refuse(answer)

    def received(self, data: bytes) -> int:
        consumed: int = super().received(data)
        if self.chunked and self.body_rcv is not None:
            if isinstance(self.error, RequestEntityTooLarge):
                self._refuse(TOO_LARGE)
            elif len(self.body_rcv.control_line) + len(self.body_rcv.trailer) > CONTROL:
                self._refuse(Answer(400, "chunked_wrongly"))
        return consumed

    def _refuse(self, answer: Answer) -> None:
        log.info("%s: %s, before all of its body", _shown(self.path), answer.word)
        self.error = _Refused(answer)
        self.completed = True
        self.expect_continue = False
        self.content_length = 0
        self.close()
        self.body_rcv = None


class _Task(WSGITask):  # type: ignore[misc]
    """Sends a short answer as one piece: one system call and one segment instead of two each."""

    wrote_header: bool
    content_length: Any

    def write(self, data: bytes) -> None:
        short = 0 < len(data) == self.content_length <= SMALL
        if self.wrote_header or not short or not self.has_body:
            super().write(data)
            return
        self.channel.write_soon(self.build_response_header() + data)
        self.wrote_header = True
        self.content_bytes_written = len(data)


class _Channel(HTTPChannel):  # type: ignore[misc]
    """A connection."""

    task_class = _Task
    will_close: bool

    def __init__(self, server: _Listener, sock: socket.socket, addr: Any, adj: Adjustments, map: Any = None) -> None:  # noqa: A002
        super().__init__(server, sock, addr, adj, map=map)
        self.parser_class = functools.partial(_Parser, refusal=server.refusal, large=server.large)
        self._refused = False

    @property
    def idle(self) -> bool:
        return not (self.requests or self.request or self.total_outbufs_len)

    def writable(self) -> bool:
        # While its thread is about to send an answer, the loop has nothing to send: it would find the socket writable
        # and the buffer locked, over and over, and keep that thread from the interpreter (seen: 3 ms a request).
        if self.requests and self.total_outbufs_len < SMALL:
            return False
        return bool(HTTPChannel.writable(self))

    def received(self, data: bytes) -> bool:
        taken: bool = super().received(data)
        self._refused = self._refused or any(isinstance(request.error, _Refused) for request in self.requests)
        return taken

    def handle_close(self) -> None:
        if self.will_close and self._refused and self.socket is not None:
            self._refused = False
            with contextlib.suppress(OSError):  # the other end may be gone already
                self.socket.shutdown(socket.SHUT_WR)
                _Drain(self.socket.dup(), self._map)
        super().handle_close()


class _Drain(wasyncore.dispatcher):  # type: ignore[misc]
    """Behind a refusal: our side is closed, and what still comes is dropped, for a while."""

    def __init__(self, sock: socket.socket, map: dict[int, Any]) -> None:  # noqa: A002
        super().__init__(sock, map)
        self._left = LINGER
        self._end = time.monotonic() + IDLE

    def readable(self) -> bool:
        if time.monotonic() >= self._end:
            self.close()
        return self.socket is not None

    def writable(self) -> bool:
        return False

    def handle_read(self) -> None:
        self._left -= len(self.recv(SMALL))
        if self._left <= 0:
            self.close()

    def handle_close(self) -> None:
        self.close()


class _Listener(TcpWSGIServer):  # type: ignore[misc]
    """Accepts connections. What wakes its loop is a pipe: once that is closed, its number may be another file's."""

    channel_class = _Channel

    def __init__(self, *args: Any, refusal: Refusal, **named: Any) -> None:
        self.refusal = refusal
        self.large: WeakSet[_Parser] = WeakSet()
        self._waking = threading.RLock()  # a signal handler may come in while its own thread holds it
        self._ended = False
        super().__init__(*args, **named)

    def pull_trigger(self) -> None:
        with self._waking:
            if not self._ended:
                super().pull_trigger()

    def maintenance(self, now: float) -> None:
        super().maintenance(now)
        for channel in self.active_channels.values():
            if channel.request and time.monotonic() - channel.request.begun > PATIENCE:
                channel.will_close = True

    def end(self) -> None:
        """Closes everything."""
        with self._waking:
            self._ended = True
            wasyncore.close_all(self._map)


class Server:
    """Listens on a bound socket. `run()` serves until another thread (or a signal handler) calls `stop()`."""

    def __init__(self, app: Application, sock: socket.socket, *, threads: int = 32) -> None:
        adjustments = Adjustments(
            sockets=[sock],
            threads=threads,
            ident=None,
            recv_bytes=64 * 1024,
            max_request_body_size=SIZE + 1,  # waitress refuses what is as long as this
            inbuf_overflow=SIZE + 1,  # nothing of a stranger's is written to disk
            max_request_header_size=64 * 1024,
            channel_timeout=IDLE,
            cleanup_interval=IDLE // 3,
            connection_limit=900,
            asyncore_use_poll=True,
            log_socket_errors=False,
        )
        self.address: tuple[str, int] = sock.getsockname()[:2]
        self._map: dict[int, Any] = {}
        self._workers = ThreadedTaskDispatcher()
        self._workers.set_thread_count(threads)
        self._listener = _Listener(
            app,
            self._map,
            True,
            sock,
            dispatcher=self._workers,
            adj=adjustments,
            bind_socket=False,
            sockinfo=(sock.family, sock.type, sock.proto, sock.getsockname()),
            refusal=app.refusal,
        )
        self._signals = Signals(self._map)
        self._stopping = threading.Event()
        # It warns of every request that has to wait for a thread, which is what a queue is for.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)

    def run(self, *, grace: float = 10.0) -> None:
        """Serves. When stopped it takes no new connection, and answers for up to `grace` seconds what has come in."""
        try:
            while not self._stopping.is_set():
                self._turn(IDLE / 3)
            self._finish(grace)
        finally:
            self._workers.shutdown(timeout=1)
            self._listener.end()

    def stop(self) -> None:
        """Asks `run()` to end; returns at once, and may be called more than once and from a signal handler."""
        self._stopping.set()
        self._listener.pull_trigger()

    @contextlib.contextmanager
    def hearing_signals(self) -> Iterator[None]:
        """Handlers of signals run at once, though `run()` waits. For the main thread, which has to be the one that runs
        it."""
        before = signal.set_wakeup_fd(self._signals.wake, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)

    def _turn(self, timeout: float) -> None:
        wasyncore.loop(timeout=timeout, map=self._map, use_poll=True, count=1)

    def _finish(self, grace: float) -> None:
        end = time.monotonic() + grace
        self._listener.del_channel(self._map)
        self._listener.socket.close()
        while self._leave(late=time.monotonic() >= end):
            self._turn(min(1.0, max(0.0, end - time.monotonic())))

    def _leave(self, *, late: bool) -> bool:
        """Closes the connections on which nothing is under way, or all; says whether any is left."""
        for channel in list(self._listener.active_channels.values()):
            if channel.idle or late:
                channel.handle_close()
        return bool(self._listener.active_channels)


def bound(host: str, port: int) -> socket.socket:
    """A socket on that address; port 0 = any free one. Raises `OSError`."""
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024)

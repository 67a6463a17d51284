"""How fast the door is: signed deliveries of 8 KB, over keep-alive connections, against servers in their own process.

    python tests/bench/intake.py [--requests N] [--connections 1,16,64]

In one run, so that the ratios hold on a noisy machine: the real server; the same without a store; the same with a
connection and a commit for each request; and the bare database doing the same group commits.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import select
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flask

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from bot.secret import Secret  # noqa: E402
from bot.store import StoreSettings  # noqa: E402
from bot.store.engine import Store, open_store  # noqa: E402
from webhooks.inbox import Delivery, Inbox, Verdict  # noqa: E402
from webhooks.receiver import Application, Door, Table  # noqa: E402
from webhooks.server import Server, bound  # noqa: E402
from webhooks.signature import Key, sign  # noqa: E402

SECRET = Secret("a secret of the bench")
SERVERS = ("leadsman", "no store", "commit a thread", "all through Flask")
SECONDS = 60
"""No measurement takes longer."""


class Counting(Inbox):
    """An inbox that only counts."""

    def remember(self, delivery: Delivery) -> Verdict:
        self._room += bool(delivery)
        return Verdict.ACCEPTED


class Alone(Inbox):
    """What group commit replaces: each request's thread with its own connection and its own commit."""

    def __init__(self, home: Path, store: Store) -> None:
        super().__init__(store, time.time)
        self._file = home / "leadsman.db"

    def remember(self, delivery: Delivery) -> Verdict:
        row = self._row(_waiting(delivery))
        connection = sqlite3.connect(self._file, timeout=30)
        try:
            connection.execute("PRAGMA synchronous=FULL")
            with connection:
                connection.execute(_insert(row), row)
        finally:
            connection.close()
        return Verdict.ACCEPTED


class ThroughFlask(Application):
    """What stands in front for the hot path is left out: Flask finds the way to the door."""

    def __init__(self, door: Door) -> None:
        super().__init__(door, dict)

        def receive(name: str) -> flask.Response:
            request = flask.request
            headers = {header.lower(): text for header, text in request.headers.items()}
            answer = door.receive(request.method, name, headers, request.content_length, request.stream.read)
            return flask.Response(answer.body, answer.status, answer.headers)

        self._app = flask.Flask(__name__)
        self._app.post("/webhooks/<name>")(receive)

    def __call__(self, environ: Any, start_response: Any) -> Any:
        return self._app(environ, start_response)


def _waiting(delivery: Delivery) -> Any:
    from hashlib import sha256

    from webhooks.inbox import _Waiting

    return _Waiting(delivery, sha256(delivery.body).hexdigest())


def _insert(row: dict[str, object]) -> str:
    return f"INSERT INTO deliveries ({', '.join(row)}) VALUES ({', '.join(':' + name for name in row)})"


def serve(kind: str, home: Path, threads: int) -> None:
    """The server's process: prints its port, then serves until it is told to stop."""
    logging.basicConfig(level=logging.INFO, filename=home / "log")
    store = open_store(StoreSettings(), home)
    inboxes: dict[str, Inbox] = {
        "leadsman": Inbox(store, time.time, limit=10_000_000),
        "no store": Counting(store, time.time),
        "commit a thread": Alone(home, store),
        "all through Flask": Inbox(store, time.time, limit=10_000_000),
    }
    door = Door({"github": Table("github", (Key(SECRET),))}, inboxes[kind], lambda _lane: None)
    app = ThroughFlask(door) if kind == "all through Flask" else Application(door, dict)
    server = Server(app, bound("127.0.0.1", 0), threads=threads)
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    print(server.address[1], flush=True)
    server.run()


def payload() -> bytes:
    """A comment on a pull request, 8 KB of it."""
    told = {
        "action": "created",
        "repository": {"full_name": "acme/shop"},
        "issue": {"number": 7, "pull_request": {}},
        "comment": {"id": 1, "body": "/run fix", "user": {"login": "alice", "id": 1, "type": "User"}},
        "sender": {"login": "alice", "id": 1, "type": "User"},
        "links": [{"url": f"https://api.example.org/repos/acme/shop/things/{n:04}"} for n in range(120)],
    }
    return json.dumps(told).encode().ljust(8192)


def request(body: bytes, number: int) -> bytes:
    head = (
        "POST /webhooks/github HTTP/1.1\r\nHost: localhost\r\nUser-Agent: GitHub-Hookshot/1\r\nAccept: */*\r\n"
        "Content-Type: application/json\r\nX-GitHub-Event: issue_comment\r\n"
        f"X-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-{number:012}\r\n"
        f"X-Hub-Signature-256: sha256={sign(body, SECRET)}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@dataclass(frozen=True)
class Figures:
    """Requests a second, and milliseconds."""

    rate: float
    p50: float
    p99: float


def load(port: int, connections: int, requests: int) -> Figures:
    """Keeps `connections` busy, one request at a time each, until `requests` have been answered."""
    body, sent, took = payload(), 0, []
    signature = sign(body, SECRET)
    template = request(body, 0).replace(b"-000000000000", b"-%012d")
    assert signature.encode() in template
    before, after = template.split(b"%012d")
    poll, peers = select.epoll(), {}
    for _ in range(connections):
        peer = socket.create_connection(("127.0.0.1", port))
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(peer, select.EPOLLIN)
        peers[peer.fileno()] = peer
    begun: dict[int, float] = {}
    answers: dict[int, bytes] = {}
    start = time.perf_counter()
    for number, peer in peers.items():
        begun[number] = time.perf_counter()
        peer.sendall(before + b"%012d" % sent + after)
        sent += 1
    while len(took) < requests and time.perf_counter() - start < SECONDS:
        for number, _ in poll.poll(5):
            answer = answers.pop(number, b"") + peers[number].recv(4096)
            if not answer.endswith(b"}\n"):
                answers[number] = answer
                continue
            if b" 202 " not in answer[:16]:
                raise SystemExit(f"not accepted: {answer[:200]!r}")
            now = time.perf_counter()
            took.append((now - begun[number]) * 1000)
            begun[number] = now
            peers[number].sendall(before + b"%012d" % sent + after)
            sent += 1
    rate = len(took) / (time.perf_counter() - start)
    for peer in peers.values():
        peer.close()
    cuts = statistics.quantiles(took, n=100)
    return Figures(rate, cuts[49], cuts[98])


def measure(kind: str, connections: int, requests: int, threads: int) -> Figures:
    with tempfile.TemporaryDirectory() as home:
        argv = [sys.executable, __file__, "--serve", kind, "--home", home, "--threads", str(threads)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as server:
            assert server.stdout
            try:
                return load(int(server.stdout.readline()), connections, requests)
            finally:
                server.terminate()


def bare(batch: int, requests: int) -> float:
    """Rows a second of SQLite itself, `batch` a commit, each flushed to disk."""
    with tempfile.TemporaryDirectory() as home:
        store = open_store(StoreSettings(), Path(home))
        inbox = Inbox(store, time.time)
        connection = sqlite3.connect(Path(home) / "leadsman.db", isolation_level=None)
        connection.execute("PRAGMA synchronous=FULL")
        told = Delivery(source="github", delivery="", event="push", headers={}, body=payload(), lane="github:acme/shop")
        row = inbox._row(_waiting(told))
        statement, done, start = _insert(row), 0, time.perf_counter()
        while done < requests and time.perf_counter() - start < SECONDS:
            rows = [row | {"delivery": str(done + n)} for n in range(batch)]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(statement, rows)
            connection.execute("COMMIT")
            done += batch
        took = time.perf_counter() - start
        connection.close()
        store.close()
        return done / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=8000, help="a measurement (default: 8000)")
    parser.add_argument("--connections", default="1,16,64")
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--serve", choices=SERVERS, help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve, args.home, args.threads)
        return
    size, busy = len(payload()), os.getloadavg()[0]
    print(f"{os.cpu_count()} CPUs, load {busy:.1f}, {size} bytes a delivery, {args.threads} threads")
    for connections in (int(text) for text in args.connections.split(",")):
        requests = args.requests if connections > 1 else args.requests // 4
        found = {kind: measure(kind, connections, requests, args.threads) for kind in SERVERS}
        print(f"\n{connections} connections          requests/s      p50 ms      p99 ms")
        for kind, figures in found.items():
            print(f"  {kind:24}{figures.rate:12,.0f}{figures.p50:12.1f}{figures.p99:12.1f}")
        rows = bare(min(connections, args.threads), requests)
        print(f"  {'bare SQLite, rows':24}{rows:12,.0f}")
        ours, free, alone, flasks = (found[kind] for kind in SERVERS)
        print(f"  rate over no store {ours.rate / free.rate:.2f}, over all through Flask {ours.rate / flasks.rate:.2f}")
        print(f"  p99 over commit a thread {ours.p99 / alone.p99:.2f}")


if __name__ == "__main__":
    main()

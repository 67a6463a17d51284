"""Those who stand before the door: signed deliveries, a real server on a loopback port, plain sockets."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.secret import Secret
from bot.store import StoreSettings
from bot.store.engine import Store, open_store
from webhooks.inbox import Inbox
from webhooks.receiver import Answer, Application, Door, Table
from webhooks.server import Server, bound
from webhooks.signature import Key, sign

SECRET = Secret("the live one")
OLD = Secret("the one before")
SHOPS = Secret("the shop's own")
SHA = "0123456789abcdef0123456789abcdef01234567"


def comment(text: str = "/run fix", *, repository: str = "acme/shop") -> bytes:
    """GitHub's news of a comment on pull request 7, cut to what is read of it."""
    alice = {"login": "alice", "id": 1, "type": "User"}
    told = {
        "action": "created",
        "repository": {"full_name": repository},
        "issue": {"number": 7, "pull_request": {"url": "https://api.github.com/repos/acme/shop/pulls/7"}},
        "comment": {"id": 99, "body": text, "user": alice},
        "sender": alice,
    }
    return json.dumps(told).encode()


def signed(
    body: bytes, *, delivery: str = "d-1", event: str = "issue_comment", secret: Secret = SECRET
) -> dict[str, str]:
    """GitHub's headers for it."""
    return {
        "content-type": "application/json",
        "x-github-delivery": delivery,
        "x-github-event": event,
        "x-hub-signature-256": f"sha256={sign(body, secret)}",
    }


TABLES: Mapping[str, Table] = {
    "github": Table("github", (Key(SECRET), Key(OLD), Key(SHOPS, "acme/shop"))),
    "here": Table("local", (Key(SECRET),)),
    "open": Table("github", ()),
    "empty": Table("github", (Key(Secret("")),)),
}


@dataclass
class House:
    """A door over a store in a folder; `woken` are the lanes it reported."""

    home: Path
    limit: int = 100
    woken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store: Store = open_store(StoreSettings(), self.home)
        self.inbox = Inbox(self.store, time.time, limit=self.limit)
        self.door = Door(TABLES, self.inbox, self.woken.append)

    def post(self, body: bytes, headers: Mapping[str, str], *, to: str = "github", method: str = "POST") -> Answer:
        return self.door.receive(method, to, headers, len(body), lambda size: body[:size])

    def close(self) -> None:
        self.store.close()


@contextmanager
def serving(house: House, *, grace: float = 5.0, checks: Mapping[str, str] | None = None) -> Iterator[Server]:
    """The real server of `house`, until the end of the block."""
    server = Server(Application(house.door, lambda: checks or {}), bound("127.0.0.1", 0), threads=8)
    thread = threading.Thread(target=lambda: server.run(grace=grace))
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(grace + 10)
        assert not thread.is_alive()


@dataclass(frozen=True)
class Said:
    """A server's answer as it came over the wire."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def word(self) -> str:
        return str(json.loads(self.body)["status"])


def connected(server: Server) -> socket.socket:
    peer = socket.create_connection(server.address, timeout=60)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def head(headers: Mapping[str, str], *, path: str = "/webhooks/github", method: str = "POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", *(f"{name}: {text}" for name, text in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def answer(peer: socket.socket) -> Said:
    """Reads one answer, by its Content-Length."""
    file = peer.makefile("rb")
    status = int(file.readline().split()[1])
    headers = {}
    while line := file.readline().strip():
        name, _, text = line.decode().partition(": ")
        headers[name.lower()] = text
    return Said(status, headers, file.read(int(headers["content-length"])))


def ask(
    server: Server, body: bytes, headers: Mapping[str, str], *, path: str = "/webhooks/github", method: str = "POST"
) -> Said:
    """One request on a connection of its own."""
    with connected(server) as peer:
        peer.sendall(head({**headers, "content-length": str(len(body))}, path=path, method=method) + body)
        return answer(peer)

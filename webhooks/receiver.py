"""The door: what is asked of a delivery, in this order, before it is let in; and the WSGI application around it.

method and size, its source, its signature, its content type, its JSON, then one transaction. Nothing is kept of a
caller who did not sign, and no answer says more than one word.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import flask

from bot.secret import Secret
from webhooks.inbox import Delivery, Inbox, Verdict
from webhooks.payload import Misshapen, clean, parse
from webhooks.signature import Key
from webhooks.sources import SIGNATURES, SOURCES, Headers, signed_by, signs

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger(__name__)

SIZE = 25 * 1024 * 1024
"""Bytes of the largest body: GitHub sends nothing above it."""

PATH = "/webhooks/"

_REASONS = {
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    503: "Service Unavailable",
}
NAME = re.compile(r"[!-~]{1,200}")
"""A delivery's id, and an event's name."""


@dataclass(frozen=True, slots=True)
class Table:
    """A configured sender: its kind, and the keys that are live now. Without one it is refused, never open.

    `token`: what a sender that signs nothing has behind the name in the address, in place of a signature.
    """

    kind: str
    keys: tuple[Key, ...]
    token: Secret | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and one word."""

    status: int
    word: str

    @property
    def line(self) -> str:
        return f"{self.status} {_REASONS[self.status]}"

    @property
    def body(self) -> bytes:
        return b'{"status": "%s"}\n' % self.word.encode()

    @property
    def headers(self) -> list[tuple[str, str]]:
        found = [("Content-Type", "application/json"), ("Content-Length", str(len(self.body)))]
        if self.status == 405:
            found.append(("Allow", "POST"))
        if self.status == 503:
            found.append(("Retry-After", "10"))
        return found


NO_METHOD = Answer(405, "post_only")
TOO_LARGE = Answer(413, "too_large")
UNKNOWN = Answer(404, "unknown")
CLOSED = Answer(403, "no_secret")
UNSIGNED = Answer(401, "unsigned")
NO_JSON_TYPE = Answer(415, "json_only")
NO_JSON = Answer(400, "not_json")
NAMELESS = Answer(400, "no_delivery_or_event")
TRUNCATED = Answer(400, "truncated")
IGNORED = Answer(202, "ignored")

_SAID = {
    Verdict.ACCEPTED: Answer(202, Verdict.ACCEPTED.value),
    Verdict.DUPLICATE: Answer(200, Verdict.DUPLICATE.value),
    Verdict.MISMATCH: Answer(409, Verdict.MISMATCH.value),
    Verdict.FULL: Answer(503, Verdict.FULL.value),
    Verdict.AWAY: Answer(503, Verdict.AWAY.value),
}


Read = Callable[[int], bytes]


class Door:
    """Judges deliveries and hands them to the inbox. Thread-safe.

    `tables` maps the last part of the address to its sender; give it new ones, and the inbox that counts then, when the
    configuration has changed.
    `wake` is told the lane in which something new waits.
    """

    def __init__(self, tables: Mapping[str, Table], inbox: Inbox, wake: Callable[[str], None]) -> None:
        self.tables = tables
        self.inbox = inbox
        self._wake = wake

    def receive(self, method: str, name: str, headers: Headers, size: int | None, read: Read) -> Answer:
        """Answers a request to `/webhooks/<name>`.

        `headers` has its names in lower case, `size` is the body's (None: not announced), `read(n)` gets it.
        """
        begun = time.perf_counter()
        answer, delivery = self._receive(method, name, headers, size, read)
        about = f"{delivery.event} {delivery.delivery}" if delivery else "-"  # unsigned words reach no log
        log.info("%s %s: %s, %.1f ms", _shown(name), about, answer.word, (time.perf_counter() - begun) * 1000)
        return answer

    def refusal(self, method: str, name: str, headers: Headers, size: int | None) -> Answer | None:
        """What can be said before the body is there: the answer that no body could change, or None.

        `size` is the body's, None where it is not announced.
        """
        if method != "POST":
            return NO_METHOD
        if size is not None and size > SIZE:
            return TOO_LARGE
        name, slash, token = name.partition("/")
        table = self.tables.get(name)
        if table is None or (slash and not _is_token(table, token)):
            return UNKNOWN
        if slash:
            return None
        if not any(key.secret for key in table.keys):
            return CLOSED
        return None if signs(table.kind, headers) else UNSIGNED

    def _receive(
        self, method: str, name: str, headers: Headers, size: int | None, read: Read
    ) -> tuple[Answer, Delivery | None]:
        if (refusal := self.refusal(method, name, headers, size)) is not None:
            return refusal, None
        body = read(SIZE + 1 if size is None else size)
        if len(body) != size and (size is not None or len(body) > SIZE):
            return (TRUNCATED if size is not None else TOO_LARGE), None
        name, slash, _ = name.partition("/")
        table = self.tables.get(name)
        if table is None:  # taken out of the configuration while the body came in
            return UNKNOWN, None
        is_unsigned = SIGNATURES.isdisjoint(headers)  # one that is there must be good, whatever the address holds
        own = (Key(table.token),) if slash and table.token and is_unsigned else ()
        keys = own or signed_by(table.kind, headers, body, (key for key in table.keys if key.secret))
        if not keys:
            return UNSIGNED, None
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return NO_JSON_TYPE, None
        found = _delivery(name, table.kind, headers, body, keys)
        if isinstance(found, Answer):
            return found, None
        verdict = self.inbox.remember(found)
        if verdict is Verdict.ACCEPTED and found.ignored:
            return IGNORED, found
        if verdict in {Verdict.ACCEPTED, Verdict.DUPLICATE}:  # what is sent again is tried again at once
            self._wake(found.lane)
        return _SAID[verdict], found


def _delivery(name: str, kind: str, headers: Headers, body: bytes, keys: tuple[Key, ...]) -> Delivery | Answer:
    source = SOURCES[kind]
    try:
        payload = parse(body)
    except Misshapen:
        return NO_JSON
    repository = source.repository(payload)
    if not any(key.counts_for(repository) for key in keys):
        return UNSIGNED  # signed, with the key of another repository
    delivery, event = source.delivery(headers, body), source.event(headers, payload)
    if not (NAME.fullmatch(delivery) and NAME.fullmatch(event)):
        return NAMELESS
    unwanted = source.unwanted(event, payload)
    return Delivery(
        source=name,
        delivery=delivery,
        event=event,
        headers={name: clean(text) for name, text in headers.items()},
        body=body,
        lane=name if repository is None else f"{name}:{repository}",
        ignored=unwanted.reason if unwanted else "",
    )


def _is_token(table: Table, token: str) -> bool:
    return table.token is not None and hmac.compare_digest(table.token.reveal().encode(), token.encode())


def _shown(name: str) -> str:
    """Without what stands behind the name: it may be a token."""
    return ascii(name.partition("/")[0])[1:-1][:80]


Checks = Callable[[], Mapping[str, str]]
"""What readiness is made of: name -> `ok`, or what is wrong."""


class Application:
    """The door in front, for the one hot path; every other path is Flask's. A WSGI application."""

    def __init__(self, door: Door, checks: Checks, pages: Iterable[flask.Blueprint] = ()) -> None:
        self.door = door
        self._flask: WSGIApplication = _flask(checks, pages)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path: str = environ["PATH_INFO"]
        if not path.startswith(PATH):
            return self._flask(environ, start_response)
        answer = self._answer(path.removeprefix(PATH), environ)
        start_response(answer.line, answer.headers)
        return (answer.body,)

    def _answer(self, name: str, environ: WSGIEnvironment) -> Answer:
        read: Read = environ["wsgi.input"].read
        return self.door.receive(environ["REQUEST_METHOD"], name, _headers(environ), _size(environ), read)

    def refusal(self, method: str, path: str, headers: Headers, size: int | None) -> Answer | None:
        """What the server may answer before it takes in a body (`webhooks.server`)."""
        if not path.startswith(PATH):
            return TOO_LARGE  # no page takes a body worth the name
        return self.door.refusal(method, path.removeprefix(PATH), headers, size)


def _headers(environ: WSGIEnvironment) -> dict[str, str]:
    found = {name[5:].replace("_", "-").lower(): text for name, text in environ.items() if name[:5] == "HTTP_"}
    if "CONTENT_TYPE" in environ:
        found["content-type"] = environ["CONTENT_TYPE"]
    return found


def _size(environ: WSGIEnvironment) -> int | None:
    text = environ.get("CONTENT_LENGTH") or ""
    if not (text.isascii() and text.isdecimal()):
        return None
    return int(text.lstrip("0")[:18] or 0)  # int() raises for thousands of digits; 18 of them are too large as well


def _flask(checks: Checks, pages: Iterable[flask.Blueprint]) -> flask.Flask:
    app = flask.Flask("leadsman", static_folder=None)

    @app.get("/healthz")
    def alive() -> flask.Response:
        return _json(200, {"status": "ok"})

    @app.get("/readyz")
    def ready() -> flask.Response:
        found = checks()
        well = all(text == "ok" for text in found.values())
        return _json(200 if well else 503, {"status": "ok" if well else "not_ready", "checks": dict(found)})

    for blueprint in pages:
        app.register_blueprint(blueprint)
    return app


def _json(status: int, said: object) -> flask.Response:
    return flask.Response(json.dumps(said) + "\n", status, mimetype="application/json")

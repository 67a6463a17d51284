"""How the pages answer: the headers that keep a browser safe, files in part or whole, and problems in plain words."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from flask import Response, abort, render_template, request
from werkzeug.exceptions import HTTPException

from bot.dashboard import folder
from bot.errors import Unavailable

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
MAX_TAIL = 100_000
NOTHING = "There is nothing here, or not any more."


def guarded(answer: Response) -> Response:
    """The answer with HEADERS. Pages are never kept; the stylesheet is, for an hour."""
    answer.headers.extend(HEADERS)
    answer.headers["Cache-Control"] = "max-age=3600" if request.endpoint == "pages.static" else "no-store"
    return answer


def known_host(public_url: str) -> None:
    """Refuses a request for a host name that isn't ours (421).

    A stranger's page can let its own name point to 127.0.0.1 and then read what is served there (DNS rebinding). That
    takes a name: an address in digits, `localhost` and the public name are safe.
    """
    name = urlsplit(f"//{request.host}").hostname or ""
    if name in {"localhost", urlsplit(public_url).hostname}:
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        abort(421, f"These pages are at {public_url}, not at {name}. Set [server] public_url if they are to be there.")


def problem(what: HTTPException) -> tuple[str, int]:
    code = what.code or 500
    text = NOTHING if code == 404 else what.description
    return render_template("problem.html", code=code, name=what.name, text=text, refresh=None), code


def unavailable(what: Unavailable) -> tuple[str, int]:
    return render_template("problem.html", code=503, name="Not now", text=str(what), refresh=None), 503


def file_answer(found: folder.OpenFile, kind: str) -> Response:
    """The file, whole, or its last `?tail=<lines>`, or the one range of bytes that was asked for. Closes it."""
    start, stop, status = _wanted(found)
    answer = Response(found.read(start, stop), status=status, content_type=kind)
    answer.call_on_close(found.close)
    answer.headers["Accept-Ranges"] = "bytes"
    if status == 416:
        answer.headers["Content-Range"] = f"bytes */{found.size}"
    elif status == 206:
        answer.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{found.size}"
    answer.content_length = stop - start
    return answer


def _wanted(found: folder.OpenFile) -> tuple[int, int, int]:
    """First byte, byte behind the last, and the status."""
    lines = request.args.get("tail", type=int)
    if lines is not None:
        return found.start_of_last(min(max(lines, 0), MAX_TAIL)), found.size, 200
    # Several ranges at once would be a multipart answer; nobody reads a log like that, and whole is allowed (RFC 9110).
    if request.range is None or request.range.units != "bytes" or len(request.range.ranges) != 1:
        return 0, found.size, 200
    part = request.range.range_for_length(found.size)
    return (part[0], part[1], 206) if part else (0, 0, 416)
